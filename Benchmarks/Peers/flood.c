// Measures calls while another client never reads: it subscribes to all signals, sends 50,000 calls and reads no
// answer. Arguments: the path of the socket of a bus with a daemon without sessions.
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sessions.h"

enum { calls = 50000, trips = 1000 };

static int deaf;
static dbus_uint32_t serial;

static void put(const char *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = send(deaf, bytes, count, MSG_NOSIGNAL);
        // The bus has disconnected it.
        if (written <= 0) return;
        bytes += written;
        count -= written;
    }
}

static void post(DBusMessage *message) {
    char *bytes;
    int count;
    dbus_message_set_serial(message, ++serial);
    if (!dbus_message_marshal(message, &bytes, &count)) exit(1);
    put(bytes, count);
    dbus_free(bytes);
    dbus_message_unref(message);
}

/// Connects without libdbus, which reads whenever it writes.
static void open_deaf(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char answer[512], digits[16], user[40] = "";
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    deaf = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(deaf, (struct sockaddr *)&address, sizeof address) < 0) {
        perror(path);
        exit(1);
    }
    snprintf(digits, sizeof digits, "%u", getuid());
    for (char *digit = digits; *digit; digit++) sprintf(user + strlen(user), "%02x", *digit);
    char line[80];
    put("", 1);
    put(line, snprintf(line, sizeof line, "AUTH EXTERNAL %s\r\n", user));
    if (read(deaf, answer, sizeof answer) < 2 || strncmp(answer, "OK", 2)) {
        fprintf(stderr, "the bus refused us\n");
        exit(1);
    }
    put("BEGIN\r\n", 7);
    post(dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "Hello"));
    if (read(deaf, answer, sizeof answer) <= 0) exit(1);
    DBusMessage *match =
        dbus_message_new_method_call(DBUS_SERVICE_DBUS, DBUS_PATH_DBUS, DBUS_INTERFACE_DBUS, "AddMatch");
    const char *rule = "type='signal',sender='org.sessiond1'";
    dbus_message_append_args(match, DBUS_TYPE_STRING, &rule, DBUS_TYPE_INVALID);
    post(match);
}

static double activate(DBusConnection *connection, const char *path, const char *member) {
    DBusMessage *call = no_options(method(path, "org.sessiond1.Session", member, "org.sessiond1"));
    double start = now();
    dbus_message_unref(ask(connection, call));
    return now() - start;
}

/// Measures 1,000 activations.
static void measure(DBusConnection *connection, const char *path, const char *name) {
    static double times[trips];
    for (int i = 0; i < trips; i++) {
        times[i] = activate(connection, path, "Activate");
        activate(connection, path, "Deactivate");
    }
    double middle = median(times, trips);
    printf("%s %.1f %.1f\n", name, middle, times[trips * 99 / 100]);
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    char address[200], path[session_path];
    snprintf(address, sizeof address, "unix:path=%s", arguments[1]);
    DBusConnection *connection = open_bus(address);
    create_session(connection, "app", NULL, path);

    measure(connection, path, "calm");
    open_deaf(arguments[1]);
    // In another process, so that only the bus and the daemon slow down the measured calls.
    pid_t flood = fork();
    if (flood == 0) {
        for (int i = 0; i < calls; i++) {
            post(dbus_message_new_method_call(
                "org.sessiond1", "/org/sessiond1", "org.sessiond1.Manager", "ListSessions"));
        }
        pause();
        _exit(0);
    }
    measure(connection, path, "flooded");
    kill(flood, SIGKILL);
    waitpid(flood, NULL, 0);
    return 0;
}
