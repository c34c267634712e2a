// Measures recorders with a sound in which each sample is its own number. So the file shows which samples it has.
//
//   kept play SINK                              plays the sound forever: 44.1 kHz, two equal channels, 16 bits
//   kept SOURCE FILE SECONDS exec PROGRAM ARGUMENT...
//                                               starts a program that records, and ends it with SIGINT
//   kept SOURCE FILE SECONDS call BUS-NAME      records with a running recorder
//
// The last two print the milliseconds from the start (or from Record) to the first sample in the file (- if it was more
// than a second), the number of missing samples after it (-1 if the file is no WAV), and CPU seconds (0 for a running
// recorder).
//
//   kept -                                      prints how many samples are missing in the WAV on the standard input
#include "listening.h"

#include <dbus/dbus.h>
#include <signal.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { rate = 44100, memory = 1 << 16 };

static const pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 2};
// When the monitor last got each number. The numbers repeat after one and a half seconds.
static double times[memory];
static double begin;

static void give(pa_stream *stream, size_t room, void *user) {
    (void)user;
    static uint16_t number;
    void *data;
    if (pa_stream_begin_write(stream, &data, &room) < 0) return;
    uint16_t *samples = data;
    for (size_t i = 0; i < room / 4; i++) samples[2 * i] = samples[2 * i + 1] = number++;
    pa_stream_write(stream, data, room / 4 * 4, NULL, 0, PA_SEEK_RELATIVE);
}

static int play(const char *sink) {
    connect_to_server();
    pa_stream *stream = pa_stream_new(context, "counter", &spec, NULL);
    pa_buffer_attr buffer = {(uint32_t)-1, rate * 4 / 5, (uint32_t)-1, (uint32_t)-1, (uint32_t)-1};
    pa_stream_set_write_callback(stream, give, NULL);
    pa_stream_connect_playback(stream, sink, &buffer, 0, NULL, NULL);
    int status;
    pa_mainloop_run(loop, &status);
    return status;
}

static void hear(const void *data, size_t size, double arrival) {
    const uint16_t *samples = data;
    // Only the times around the start are needed.
    if (samples && (begin == 0 || arrival < begin + 1.2e6))
        for (size_t i = 0; i < size / 4; i++)
            times[samples[2 * i]] = arrival - (double)(size / 4 - i) / rate * 1e6;
}

static DBusMessage *call(const char *name, const char *interface, const char *member) {
    return dbus_message_new_method_call(name, "/org/sessiond1/recorder", interface, member);
}

static void prepare(DBusConnection *bus, const char *name, const char *file) {
    DBusMessage *message = call(name, "org.sessiond1.Recorder", "Prepare");
    dbus_message_append_args(message, DBUS_TYPE_STRING, &file, DBUS_TYPE_INVALID);
    dbus_message_unref(ask(bus, no_options(message)));
}

static void wait_for_end(DBusConnection *bus, const char *name) {
    const char *interface = "org.sessiond1.Recorder", *property = "State", *state = "";
    do {
        usleep(20000);
        DBusMessage *message = call(name, "org.freedesktop.DBus.Properties", "Get");
        dbus_message_append_args(
            message, DBUS_TYPE_STRING, &interface, DBUS_TYPE_STRING, &property, DBUS_TYPE_INVALID);
        DBusMessage *reply = ask(bus, message);
        DBusMessageIter all, value;
        dbus_message_iter_init(reply, &all);
        dbus_message_iter_recurse(&all, &value);
        dbus_message_iter_get_basic(&value, &state);
        state = strcmp(state, "recording") ? "" : "recording";
        dbus_message_unref(reply);
    } while (*state);
}

// Sets `first` to the first number in a WAV and returns how many are missing after it, or -1 if there is no sample.
static long look(FILE *file, uint16_t *first) {
    unsigned char head[12], chunk[8];
    if (!file || fread(head, 12, 1, file) != 1) return -1;
    while (fread(chunk, 8, 1, file) == 1 && memcmp(chunk, "data", 4))
        for (uint32_t rest = chunk[4] | chunk[5] << 8 | chunk[6] << 16 | (uint32_t)chunk[7] << 24; rest--;)
            if (fgetc(file) == EOF) return -1;
    uint16_t frame[2], expected = 0;
    long missing = 0, count = 0;
    while (fread(frame, 4, 1, file) == 1) {
        if (!count++) *first = expected = frame[0];
        // A zero is silence: the server itself did not get the sound in time.
        if (frame[0] == 0 && expected != 0) continue;
        missing += (uint16_t)(frame[0] - expected);
        expected = frame[0] + 1;
    }
    return count ? missing : -1;
}

int main(int count, char **words) {
    if (count == 3 && !strcmp(words[1], "play")) return play(words[2]);
    uint16_t first = 0;
    if (count == 2 && !strcmp(words[1], "-")) {
        printf("%ld\n", look(stdin, &first));
        return 0;
    }
    if (count < 6) return 64;
    const char *file = words[2];
    double seconds = atof(words[3]);
    connect_to_server();
    record(words[1], &spec, 400, hear);
    turn_until(now() + 300e3);
    memset(times, 0, sizeof times);
    struct rusage usage = {0};
    if (!strcmp(words[4], "exec")) {
        begin = now();
        pid_t child = fork();
        if (!child) {
            if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) _exit(126);
            execvp(words[5], words + 5);
            _exit(127);
        }
        turn_until(begin + seconds * 1e6);
        kill(child, SIGINT);
        int status;
        wait4(child, &status, 0, &usage);
    } else {
        DBusConnection *bus = dbus_bus_get(DBUS_BUS_SESSION, NULL);
        prepare(bus, words[5], file);
        turn_until(now() + 200e3);
        begin = now();
        DBusMessage *message = call(words[5], "org.sessiond1.Recorder", "Record");
        dbus_connection_send(bus, message, NULL);
        dbus_connection_flush(bus);
        turn_until(begin + seconds * 1e6);
        dbus_message_unref(ask(bus, call(words[5], "org.sessiond1.Recorder", "Stop")));
        wait_for_end(bus, words[5]);
    }
    long missing = look(fopen(file, "rb"), &first);
    // There is no time if the recorder began too late.
    if (missing < 0 || times[first] == 0) printf("- ");
    else printf("%.2f ", (times[first] - begin) / 1e3);
    printf("%ld %.3f\n", missing,
        (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
