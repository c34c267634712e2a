/* A radio in C, with libdbus: it is silent while another session interrupts it, and resumes afterwards. A real radio
 * would start and stop its sound where this program prints.
 *
 *     cc radio.c $(pkg-config --cflags --libs dbus-1) -o radio
 */
#include <dbus/dbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVICE "org.sessiond1"
#define SESSION "org.sessiond1.Session"

static DBusConnection *bus;
static char *session;

/* Prints a line immediately, also to a pipe. */
static void say(const char *line, const char *name)
{
    printf("%s%s\n", line, name);
    fflush(stdout);
}

/* Appends an entry with a string to an a{sv}. */
static void append_string(DBusMessageIter *dictionary, const char *key, const char *value)
{
    DBusMessageIter entry, variant;
    dbus_message_iter_open_container(dictionary, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &key);
    dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, "s", &variant);
    dbus_message_iter_append_basic(&variant, DBUS_TYPE_STRING, &value);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(dictionary, &entry);
}

/* Sends the call and returns its answer. Exits if the call is refused. */
static DBusMessage *call(DBusMessage *message)
{
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *answer = dbus_connection_send_with_reply_and_block(bus, message, -1, &error);
    dbus_message_unref(message);
    if (!answer) {
        fprintf(stderr, "%s: %s\n", error.name, error.message);
        exit(1);
    }
    return answer;
}

static void create_session(void)
{
    DBusMessage *message = dbus_message_new_method_call(SERVICE, "/org/sessiond1", "org.sessiond1.Manager", "CreateSession");
    DBusMessageIter arguments, options;
    const char *name = "Radio", *path;
    dbus_message_iter_init_append(message, &arguments);
    dbus_message_iter_append_basic(&arguments, DBUS_TYPE_STRING, &name);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
    append_string(&options, "category", "playback");
    dbus_message_iter_close_container(&arguments, &options);
    DBusMessage *answer = call(message);
    if (!dbus_message_get_args(answer, NULL, DBUS_TYPE_OBJECT_PATH, &path, DBUS_TYPE_INVALID))
        exit(1);
    session = strdup(path);
    dbus_message_unref(answer);
}

static void activate(void)
{
    DBusMessage *message = dbus_message_new_method_call(SERVICE, session, SESSION, "Activate");
    DBusMessageIter arguments, options;
    dbus_message_iter_init_append(message, &arguments);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
    dbus_message_iter_close_container(&arguments, &options);
    dbus_message_unref(call(message));
}

/* The string `key` of an a{sv}, or an empty string if there is none. */
static const char *string_in(DBusMessageIter *dictionary, const char *key)
{
    DBusMessageIter entry, field, variant;
    for (dbus_message_iter_recurse(dictionary, &entry); dbus_message_iter_get_arg_type(&entry) == DBUS_TYPE_DICT_ENTRY;
         dbus_message_iter_next(&entry)) {
        const char *name, *value;
        dbus_message_iter_recurse(&entry, &field);
        dbus_message_iter_get_basic(&field, &name);
        dbus_message_iter_next(&field);
        dbus_message_iter_recurse(&field, &variant);
        if (strcmp(name, key) == 0 && dbus_message_iter_get_arg_type(&variant) == DBUS_TYPE_STRING) {
            dbus_message_iter_get_basic(&variant, &value);
            return value;
        }
    }
    return "";
}

int main(void)
{
    DBusError error = DBUS_ERROR_INIT;
    bus = dbus_bus_get(DBUS_BUS_SESSION, &error);
    if (!bus) {
        fprintf(stderr, "%s\n", error.message);
        return 69;
    }
    /* Subscribes before it creates the session, so that it misses no signal. */
    dbus_bus_add_match(bus, "type='signal',sender='" SERVICE "',interface='" SESSION "'", NULL);
    create_session();
    activate();
    say("playing", "");
    while (dbus_connection_read_write(bus, -1)) {
        DBusMessage *message;
        while ((message = dbus_connection_pop_message(bus))) {
            DBusMessageIter arguments;
            /* The bus sends the signals of all sessions. */
            if (dbus_message_has_path(message, session) && dbus_message_iter_init(message, &arguments)) {
                if (dbus_message_is_signal(message, SESSION, "InterruptionBegan")) {
                    dbus_message_iter_next(&arguments);
                    say("silent: interrupted by ", string_in(&arguments, "by-name"));
                } else if (dbus_message_is_signal(message, SESSION, "InterruptionEnded")) {
                    dbus_bool_t should_resume;
                    dbus_message_iter_get_basic(&arguments, &should_resume);
                    if (should_resume)
                        activate();
                    say(should_resume ? "playing on" : "stopped", "");
                }
            }
            dbus_message_unref(message);
        }
    }
    return 0;
}
