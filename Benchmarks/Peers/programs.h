// Starts and ends programs and waits for their names on the bus.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "peers.h"

extern char **environ;

/// The connection for `wait_owner`, to the session bus.
static inline DBusConnection *open_watching_bus(void) {
    DBusConnection *connection = open_bus(getenv("DBUS_SESSION_BUS_ADDRESS"));
    dbus_bus_add_match(connection, "type='signal',interface='org.freedesktop.DBus',member='NameOwnerChanged'", NULL);
    dbus_connection_flush(connection);
    return connection;
}

/// Waits until the name gets an owner or, if `owned` is 0, loses it. Exits after 10 s without such a change.
static inline void wait_owner(DBusConnection *connection, const char *name, int owned) {
    for (double limit = now() + 1e7; now() < limit;) {
        DBusMessage *message;
        while ((message = dbus_connection_pop_message(connection))) {
            const char *changed = "", *before = "", *after = "";
            int is_owner = dbus_message_is_signal(message, DBUS_INTERFACE_DBUS, "NameOwnerChanged")
                && dbus_message_get_args(
                               message, NULL, DBUS_TYPE_STRING, &changed, DBUS_TYPE_STRING, &before,
                               DBUS_TYPE_STRING, &after, DBUS_TYPE_INVALID)
                && !strcmp(changed, name) && (*after != 0) == owned;
            dbus_message_unref(message);
            if (is_owner) return;
        }
        if (!dbus_connection_read_write(connection, 10000)) break;
    }
    fprintf(stderr, "%s: no change of its owner\n", name);
    exit(1);
}

/// Discards its standard error.
static inline pid_t start_program(char *program) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    char *words[] = {program, NULL};
    pid_t process;
    if (posix_spawn(&process, program, &actions, NULL, words, environ)) exit(1);
    posix_spawn_file_actions_destroy(&actions);
    return process;
}

static inline void end_program(pid_t process) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
}
