// Measures the time from SIGKILL until the next daemon has answered a call of a session from before, with 1, 100 and
// 1,000 active sessions. The reference is a program without state: the time until its name is on the bus again.
// Arguments: sessiond, the other program, its bus name. Prints again-NUMBER and ms for each number of sessions, and
// again-bare and ms.
#include "programs.h"
#include "sessions.h"

enum { rounds = 21, per_client = 25, multitude = 1000 };

static char paths[multitude][session_path];

static DBusMessage *activation(const char *path) {
    return no_options(method(path, "org.sessiond1.Session", "Activate", "org.sessiond1"));
}

/// Creates and activates the sessions from `from` to `to`, on this connection and new ones.
static void crowd(DBusConnection *connection, int from, int to) {
    for (int i = from; i < to; i++) {
        if (i % per_client == 0 && i > 0) connection = open_bus(getenv("DBUS_SESSION_BUS_ADDRESS"));
        create_session(connection, "app", "mix-with-others", paths[i]);
        dbus_message_unref(ask(connection, activation(paths[i])));
    }
}

/// `path`: a session of the connection. With NULL, it waits only for the name.
static double again(DBusConnection *connection, const char *name, char *program, pid_t *process, const char *path) {
    double begin = now();
    end_program(*process);
    *process = start_program(program);
    wait_owner(connection, name, 0);
    wait_owner(connection, name, 1);
    if (path) dbus_message_unref(ask(connection, activation(path)));
    return now() - begin;
}

int main(int count, char **arguments) {
    if (count != 4) return 64;
    DBusConnection *connection = open_watching_bus();
    const char *name = "org.sessiond1";
    double times[rounds];
    int numbers[] = {1, 100, multitude}, there = 0;
    pid_t process = start_program(arguments[1]);
    wait_owner(connection, name, 1);
    for (int n = 0; n < 3; n++) {
        crowd(connection, there, numbers[n]);
        there = numbers[n];
        for (int i = 0; i < rounds; i++) times[i] = again(connection, name, arguments[1], &process, paths[0]);
        printf("again-%d %.2f\n", numbers[n], median(times, rounds) / 1e3);
    }
    end_program(process);
    process = start_program(arguments[2]);
    wait_owner(connection, arguments[3], 1);
    for (int i = 0; i < rounds; i++) times[i] = again(connection, arguments[3], arguments[2], &process, NULL);
    printf("again-bare %.2f\n", median(times, rounds) / 1e3);
    end_program(process);
    return 0;
}
