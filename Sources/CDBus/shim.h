// What Swift cannot import from libdbus-1: the initializer macro.
// The type codes (DBUS_TYPE_*) are cast macros; Swift spells them as ASCII literals instead.
#pragma once
#include <dbus/dbus.h>

// DBUS_ERROR_INIT is a compound-literal macro.
static inline DBusError cdbus_error_init(void) {
    DBusError error = DBUS_ERROR_INIT;
    return error;
}
