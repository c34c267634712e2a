// A relay that decides nothing: it receives a call, sends a signal to other clients, and answers. Its messages have the
// types and the length of the daemon's signals. Arguments: the address of the bus.
#include "peers.h"

static void entry(DBusMessageIter *dictionary, const char *key, int type, const char *signature, const void *value) {
    DBusMessageIter pair, variant;
    dbus_message_iter_open_container(dictionary, DBUS_TYPE_DICT_ENTRY, NULL, &pair);
    dbus_message_iter_append_basic(&pair, DBUS_TYPE_STRING, &key);
    dbus_message_iter_open_container(&pair, DBUS_TYPE_VARIANT, signature, &variant);
    dbus_message_iter_append_basic(&variant, type, value);
    dbus_message_iter_close_container(&pair, &variant);
    dbus_message_iter_close_container(dictionary, &pair);
}

static void tell(DBusConnection *connection, const char *destination) {
    DBusMessage *signal = dbus_message_new_signal("/relay", "bench.Relay", "Told");
    const char *text = "default", *by = "/org/sessiond1/session/1", *name = "a session to measure";
    dbus_uint64_t sequence = 1;
    DBusMessageIter arguments, details;
    if (destination) dbus_message_set_destination(signal, destination);
    dbus_message_iter_init_append(signal, &arguments);
    dbus_message_iter_append_basic(&arguments, DBUS_TYPE_STRING, &text);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &details);
    entry(&details, "by", DBUS_TYPE_OBJECT_PATH, "o", &by);
    entry(&details, "by-name", DBUS_TYPE_STRING, "s", &name);
    entry(&details, "sequence", DBUS_TYPE_UINT64, "t", &sequence);
    dbus_message_iter_close_container(&arguments, &details);
    dbus_connection_send(connection, signal, NULL);
    dbus_message_unref(signal);
}

static DBusHandlerResult receive(DBusConnection *connection, DBusMessage *call, void *context) {
    (void)context;
    if (dbus_message_is_method_call(call, "bench.Relay", "Broadcast")) {
        tell(connection, NULL);
    } else if (dbus_message_is_method_call(call, "bench.Relay", "Unicast")) {
        char **names;
        int count;
        if (!dbus_message_get_args(
                call, NULL, DBUS_TYPE_ARRAY, DBUS_TYPE_STRING, &names, &count, DBUS_TYPE_INVALID))
            return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
        for (int i = 0; i < count; i++) tell(connection, names[i]);
        dbus_free_string_array(names);
    } else {
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    }
    DBusMessage *reply = dbus_message_new_method_return(call);
    dbus_connection_send(connection, reply, NULL);
    dbus_message_unref(reply);
    return DBUS_HANDLER_RESULT_HANDLED;
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    DBusConnection *connection = open_bus(arguments[1]);
    dbus_connection_add_filter(connection, receive, NULL, NULL);
    if (dbus_bus_request_name(connection, "bench.Relay", 0, NULL) != DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER) return 1;
    while (dbus_connection_read_write_dispatch(connection, -1)) {}
    return 0;
}
