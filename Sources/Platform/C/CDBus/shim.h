// The parts of libdbus-1 that Swift cannot import: the initializer macro.
// The type codes (DBUS_TYPE_*) are cast macros, so Swift code has ASCII literals instead.
#pragma once
#include <dbus/dbus.h>

// DBUS_ERROR_INIT is a compound-literal macro.
static inline DBusError cdbus_error_init(void) {
    DBusError error = DBUS_ERROR_INIT;
    return error;
}
