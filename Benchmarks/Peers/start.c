// From exec to the name on the bus, two programs in turn. Arguments: name and program, twice. Prints: start, ms, ms.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include "peers.h"

enum { rounds = 41 };
extern char **environ;

/// Ends everything where it does not come within 10 s.
static void wait_owner(DBusConnection *connection, const char *name, int owned) {
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
    fprintf(stderr, "%s: waited in vain\n", name);
    exit(1);
}

static double start(DBusConnection *connection, const char *name, char *program) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    char *words[] = {program, NULL};
    pid_t process;
    double begin = now();
    if (posix_spawn(&process, program, &actions, NULL, words, environ)) exit(1);
    wait_owner(connection, name, 1);
    double time = now() - begin;
    kill(process, SIGKILL);
    waitpid(process, NULL, 0);
    wait_owner(connection, name, 0);
    posix_spawn_file_actions_destroy(&actions);
    return time;
}

int main(int count, char **arguments) {
    if (count != 5) return 64;
    DBusConnection *connection = open_bus(getenv("DBUS_SESSION_BUS_ADDRESS"));
    dbus_bus_add_match(connection, "type='signal',interface='org.freedesktop.DBus',member='NameOwnerChanged'", NULL);
    dbus_connection_flush(connection);
    double first[rounds], second[rounds];
    for (int i = 0; i < rounds; i++) {
        first[i] = start(connection, arguments[1], arguments[2]);
        second[i] = start(connection, arguments[3], arguments[4]);
    }
    printf("start %.2f %.2f\n", median(first, rounds) / 1e3, median(second, rounds) / 1e3);
    return 0;
}
