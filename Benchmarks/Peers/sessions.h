// Creates sessions of the daemon.
#pragma once

#include "peers.h"

/// The size of a buffer for a session's path.
enum { session_path = 64 };

static inline void entry(DBusMessageIter *dictionary, const char *key, const char *value, int is_array) {
    DBusMessageIter pair, variant, array;
    dbus_message_iter_open_container(dictionary, DBUS_TYPE_DICT_ENTRY, NULL, &pair);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_STRING, &key);
    dbus_message_iter_open_container(&pair, DBUS_TYPE_VARIANT, is_array ? "as" : "s", &variant);
    if (is_array) {
        dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, "s", &array);
        dbus_message_iter_append_basic(&array, DBUS_TYPE_STRING, &value);
        dbus_message_iter_close_container(&variant, &array);
    } else {
        dbus_message_iter_append_basic(&variant, DBUS_TYPE_STRING, &value);
    }
    dbus_message_iter_close_container(&pair, &variant);
    dbus_message_iter_close_container(dictionary, &pair);
}

/// Creates a playback session of this class, with one option or none (NULL). Writes its path to `path`.
static inline void create_session(
    DBusConnection *connection, const char *class, const char *option, char path[session_path]) {
    DBusMessage *call = method("/org/sessiond1", "org.sessiond1.Manager", "CreateSession", "org.sessiond1");
    const char *name = "a session to measure", *made;
    DBusMessageIter arguments, options;
    dbus_message_iter_init_append(call, &arguments);
    dbus_message_iter_append_basic(&arguments, DBUS_TYPE_STRING, &name);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
    entry(&options, "category", "playback", 0);
    entry(&options, "class", class, 0);
    if (option) entry(&options, "options", option, 1);
    dbus_message_iter_close_container(&arguments, &options);
    DBusMessage *reply = ask(connection, call);
    dbus_message_get_args(reply, NULL, DBUS_TYPE_OBJECT_PATH, &made, DBUS_TYPE_INVALID);
    snprintf(path, session_path, "%s", made);
    dbus_message_unref(reply);
}
