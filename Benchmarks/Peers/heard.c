// Measures the milliseconds until the monitor of a sink gets sound.
//
//   heard MONITOR exec PROGRAM ARGUMENT...   from the start of the program, which it ends afterwards
//   heard MONITOR call BUS-NAME URI          from Load and Play of a running player, which it stops afterwards
//   heard MONITOR effect BUS-NAME FILE       from Play of a loaded sound effect in a running plugin
//   heard MONITOR cost PROGRAM ARGUMENT...   instead prints CPU seconds and peak memory in kB when the program exits
#include "listening.h"

#include <dbus/dbus.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { rate = 48000, threshold = 300 };

static double begin, heard;
// Set after a time of silence, because sound of the previous measurement may still be in the sink.
static int armed;

static void hear(const void *data, size_t size, double arrival) {
    const short *samples = data;
    for (size_t i = 0; samples && armed && heard == 0 && i < size / 2; i++)
        if (samples[i] > threshold || samples[i] < -threshold)
            heard = arrival - (double)(size / 2 - i) / rate * 1e6;
}

static void until(double end) {
    while (heard == 0 && now() < end) turn();
}

static void listen_to(const char *monitor) {
    connect_to_server();
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 1};
    record(monitor, &spec, 192, hear);
    until(now() + 300e3);
    armed = 1;
}

static pid_t start(char **words) {
    pid_t child = fork();
    if (child) return child;
    if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "r", stdin))
        _exit(126);
    execvp(words[0], words);
    _exit(127);
}

static void call(DBusConnection *bus, const char *name, const char *member, const char *uri) {
    DBusMessage *message = dbus_message_new_method_call(name, "/org/sessiond1/player", "org.sessiond1.Player", member);
    if (uri) dbus_message_append_args(message, DBUS_TYPE_STRING, &uri, DBUS_TYPE_INVALID);
    dbus_message_set_no_reply(message, TRUE);
    dbus_connection_send(bus, message, NULL);
    dbus_message_unref(message);
    dbus_connection_flush(bus);
}

// Returns the number of the loaded effect.
static dbus_uint32_t load(DBusConnection *bus, const char *name, const char *path) {
    DBusMessage *message =
        dbus_message_new_method_call(name, "/org/sessiond1/effects", "org.sessiond1.SoundEffects", "Load");
    dbus_message_append_args(message, DBUS_TYPE_STRING, &path, DBUS_TYPE_INVALID);
    DBusMessage *reply = check(dbus_connection_send_with_reply_and_block(bus, message, 5000, NULL), "Load");
    dbus_uint32_t effect = 0;
    dbus_message_get_args(reply, NULL, DBUS_TYPE_UINT32, &effect, DBUS_TYPE_INVALID);
    dbus_message_unref(message);
    dbus_message_unref(reply);
    return effect;
}

static void play(DBusConnection *bus, const char *name, dbus_uint32_t effect) {
    DBusMessage *message =
        dbus_message_new_method_call(name, "/org/sessiond1/effects", "org.sessiond1.SoundEffects", "Play");
    dbus_message_append_args(message, DBUS_TYPE_UINT32, &effect, DBUS_TYPE_INVALID);
    dbus_connection_send(bus, message, NULL);
    dbus_message_unref(message);
    dbus_connection_flush(bus);
}

int main(int count, char **words) {
    if (count < 4) return 64;
    if (!strcmp(words[2], "cost")) {
        pid_t child = start(words + 3);
        int status;
        struct rusage usage;
        wait4(child, &status, 0, &usage);
        printf("%.3f %ld\n",
            (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
                + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6,
            usage.ru_maxrss);
        return !WIFEXITED(status) || WEXITSTATUS(status) ? 1 : 0;
    }
    listen_to(words[1]);
    if (!strcmp(words[2], "exec")) {
        begin = now();
        pid_t child = start(words + 3);
        until(begin + 5e6);
        kill(child, SIGTERM);
        waitpid(child, NULL, 0);
    } else if (!strcmp(words[2], "effect")) {
        DBusConnection *bus = dbus_bus_get(DBUS_BUS_SESSION, NULL);
        dbus_uint32_t effect = load(bus, words[3], words[4]);
        begin = now();
        play(bus, words[3], effect);
        until(begin + 5e6);
    } else {
        DBusConnection *bus = dbus_bus_get(DBUS_BUS_SESSION, NULL);
        begin = now();
        call(bus, words[3], "Load", words[4]);
        call(bus, words[3], "Play", NULL);
        until(begin + 5e6);
        call(bus, words[3], "Stop", NULL);
    }
    if (heard == 0) return 1;
    printf("%.2f\n", (heard - begin) / 1e3);
    return 0;
}
