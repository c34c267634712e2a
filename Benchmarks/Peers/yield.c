// What becomes of music on a sink's monitor while somebody else takes the sound from it, or lowers it.
//
//   yield MONITOR session CLASS OPTION SECONDS ROUNDS   somebody activates a session of that class, with that option or -
//   yield MONITOR stream ROLE SECONDS ROUNDS            somebody plays silence in a stream of that role
//
// The music is to say how far it is: a sine of 440 Hz on the left, and on the right a ramp of the same amplitude that
// begins again every four seconds. Prints for each round, from the call on: milliseconds until it begins to fall; until its last
// sample; how long nothing was heard; how much of the piece is missing; then the most decibels it changed by in 10 ms,
// and its level in decibels while the other one is there and afterwards, both against before. With TRACE set, also each
// silence by itself. With SUDDEN set, the session is created when it is activated, and not before.
#include "listening.h"
#include "sessions.h"
#include "silence.h"

#include <math.h>

enum { rate = 48000, limit = rate * 300, piece = rate * 4, shortest = rate / 1000, blocks = 300 * 1000 };

static short left[limit], right[limit];
static int count;
static struct {
    int end;
    double arrival;
} block[blocks];
static int blocks_filled;

static void hear(const void *data, size_t size, double arrival) {
    const short *samples = data;
    for (size_t i = 0; i < size / 4 && count < limit; i++, count++) {
        left[count] = samples ? samples[i * 2] : 0;
        right[count] = samples ? samples[i * 2 + 1] : 0;
    }
    // The fragments of one cycle come together, and are heard one after the other.
    if (blocks_filled > 0 && arrival - block[blocks_filled - 1].arrival < 1e3) blocks_filled--;
    if (blocks_filled < blocks) {
        block[blocks_filled].end = count;
        block[blocks_filled++].arrival = arrival;
    }
}

/// When that sample was heard.
static double time_of(int sample) {
    int low = 0, high = blocks_filled - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (block[middle].end <= sample) low = middle + 1; else high = middle;
    }
    return block[low].arrival - (block[low].end - sample) * 1e6 / rate;
}

static int sample_at(double time) {
    for (int i = 0; i < blocks_filled; i++)
        if (block[i].arrival >= time) {
            int sample = block[i].end - (int)((block[i].arrival - time) * rate / 1e6);
            return sample < 0 ? 0 : sample;
        }
    return count;
}

/// Whether the sine is away there for long, alone or with the ramp: PipeWire may leave out one channel of a cycle.
static int is_without_sine(int from, int to) {
    for (int run = 0; from < to && from < count; from++) {
        run = abs(left[from]) <= 2 ? run + 1 : 0;
        if (run >= shortest / 2) return 1;
    }
    return 0;
}

static int is_silent(int sample) { return abs(left[sample]) <= 2 && abs(right[sample]) <= 2; }

/// The sine's amplitude over so many of its periods from there on.
static double amplitude(int sample, int periods) {
    int length = (int)lround(periods * rate / 440.0);
    double mean = 0, real = 0, imaginary = 0;
    if (sample < 0 || sample + length > count) return 0;
    for (int i = 0; i < length; i++) mean += (double)left[sample + i] / length;
    for (int i = 0; i < length; i++) {
        double angle = 2 * M_PI * 440 * i / rate;
        real += (left[sample + i] - mean) * cos(angle);
        imaginary += (left[sample + i] - mean) * sin(angle);
    }
    return 2 * sqrt(real * real + imaginary * imaginary) / length;
}

/// The most it is of a tenth of a second from there on: its program may run dry meanwhile.
static double level(int sample) {
    double most = 0;
    for (int i = 0; i < 10; i++) most = fmax(most, amplitude(sample + i * rate / 100, 4));
    return most;
}

static double decibels(double ratio) { return ratio > 1e-6 ? 20 * log10(ratio) : -120; }

/// How far the music is at that sample, in samples of its own, up to whole turns; -1: it does not say.
static double position(int sample) {
    double loud = amplitude(sample, 4);
    if (loud < 100) return -1;
    int length = (int)lround(4 * rate / 440.0);
    double mean = 0, least = 40000, most = -40000;
    for (int i = 0; i < length; i++) {
        mean += (double)right[sample + i] / length;
        least = fmin(least, right[sample + i]);
        most = fmax(most, right[sample + i]);
    }
    // Where it begins again, or is interrupted, there is no saying.
    if (most - least > loud / 10) return -1;
    return (mean / loud + 1) / 2 * piece - length / 2.0;
}

/// What is missing of the piece between two samples with so many silent ones between them.
static double missing(int from, int to, int silent) {
    double difference = position(to) - position(from) - (to - from - silent);
    return difference - piece * round(difference / piece);
}

/// Moves from there on, a step at a time, to where the music is as loud as it was and says how far it is; -1: nowhere.
static int steady(int sample, int step, double before) {
    for (; sample > 0 && sample < count - rate / 50; sample += step)
        if (position(sample) >= 0 && fabs(amplitude(sample, 4) / before - 1) < 0.01) return sample;
    return -1;
}

static DBusConnection *bus;
static char session[session_path];

static void tell(const char *member) {
    DBusMessage *call = method(session, "org.sessiond1.Session", member, "org.sessiond1");
    DBusMessageIter arguments, options, entry, variant;
    dbus_message_iter_init_append(call, &arguments);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
    if (!strcmp(member, "Deactivate")) {
        const char *key = "notify-others";
        dbus_bool_t yes = TRUE;
        dbus_message_iter_open_container(&options, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
        dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &key);
        dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, "b", &variant);
        dbus_message_iter_append_basic(&variant, DBUS_TYPE_BOOLEAN, &yes);
        dbus_message_iter_close_container(&entry, &variant);
        dbus_message_iter_close_container(&options, &entry);
    }
    dbus_message_iter_close_container(&arguments, &options);
    // Nobody waits for the answer: the sound is listened to.
    dbus_message_set_no_reply(call, TRUE);
    dbus_connection_send(bus, call, NULL);
    dbus_connection_flush(bus);
    dbus_message_unref(call);
}

/// Waits for a second of music in all, and none of its drop-outs just now.
static void wait_for_music(void) {
    double patience = now() + 20e6;
    for (int seen = count, heard = 0, quiet = count;;) {
        turn();
        for (; seen < count; seen++)
            if (is_silent(seen) && is_silent(seen ? seen - 1 : 0)) quiet = seen; else heard++;
        if (heard > rate && count - quiet > rate / 5) return;
        if (now() > patience) {
            fprintf(stderr, "no music\n");
            exit(1);
        }
    }
}

/// Prints what was heard since shortly before `begin`; `leave` is when the other one left.
static void report(double begin, double leave) {
    int first = sample_at(begin), last = sample_at(leave);
    double before = level(first - rate / 10);
    double falls = -1, silent = -1, step = 0;
    int gap = 0, run = 0, longest = 0, ended = 0, from = first - rate / 50;
    for (int i = from; i < count; i++) {
        run = is_silent(i) ? run + 1 : 0;
        if (run < shortest) continue;
        gap += run == shortest ? shortest : 1;
        if (i > first && run > longest) longest = run, ended = i, silent = time_of(i + 1 - run) - begin;
        int ends = i + 1 == count || !is_silent(i + 1);
        if (getenv("TRACE") && ends) {
            fprintf(stderr, "  silent at %8.1f ms for %7.1f ms", (time_of(i - run) - begin) / 1e3, run * 1e3 / rate);
            // A turn of the ramp in between is not worth a search.
            int a = i - run - rate / 20, b = i + rate / 20;
            if (b < count - rate / 10 && position(a) >= 0 && position(b) >= 0)
                fprintf(stderr, ", %7.1f ms of the piece lost", missing(a, b, run) * 1e3 / rate);
            fprintf(stderr, "\n");
        }
    }
    // Over that silence alone: elsewhere programs run dry, and some of them leave out what was due meanwhile.
    double lost = longest ? NAN : 0;
    int start = steady(ended - longest, -96, before), end = steady(ended + 1, 96, before);
    if (longest && start >= 0 && end >= 0) {
        int silent_between = 0;
        for (int i = start, run = 0; i < end; i++) {
            run = is_silent(i) ? run + 1 : 0;
            if (run >= shortest) silent_between += run == shortest ? shortest : 1;
        }
        lost = missing(start, end, silent_between) * 1e3 / rate;
    }
    double period = rate / 440.0;
    for (double at = first; at + rate / 50.0 < count; at += period) {
        double here = amplitude((int)at, 1), later = amplitude((int)(at + rate / 100.0), 1);
        if (falls < 0 && here < before * 0.9) falls = time_of((int)at) - begin;
        // Where it ends or begins, or its program or the server ran dry, there is no ramp.
        int around = (int)at - shortest, beyond = (int)(at + rate / 100.0 + period) + shortest;
        if (fmin(here, later) > before / 1000 && !is_without_sine(around, beyond))
            step = fmax(step, fabs(decibels(here / later)));
    }
    printf("%.1f %.1f %.1f %.1f %.2f %.2f %.2f\n", falls / 1e3, silent / 1e3, gap * 1e3 / rate, lost, step,
        decibels(level(last - rate / 10) / before), decibels(level(count - rate / 5) / before));
}

int main(int words, char **word) {
    int is_session = words > 2 && !strcmp(word[2], "session");
    if (words != (is_session ? 7 : 6)) return 64;
    double seconds = atof(word[words - 2]);
    connect_to_server();
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 2};
    record(word[1], &spec, 384, hear);
    if (is_session) {
        bus = open_bus(getenv("DBUS_SESSION_BUS_ADDRESS"));
        if (!getenv("SUDDEN")) create_session(bus, word[3], strcmp(word[4], "-") ? word[4] : NULL, session);
    }
    for (int round = atoi(word[words - 1]); round > 0; round--) {
        wait_for_music();
        // Blocks of sound come in step with PipeWire's cycle; calls come at any moment of it.
        turn_until(now() + round * 7919 % 43 * 1e3);
        double begin = now();
        pa_stream *phone = NULL;
        if (getenv("SUDDEN")) create_session(bus, word[3], strcmp(word[4], "-") ? word[4] : NULL, session);
        if (is_session) tell("Activate"); else phone = play_silence(context, word[3], NULL);
        turn_until(begin + seconds * 1e6);
        double end = now();
        if (is_session) {
            tell("Deactivate");
        } else {
            pa_stream_disconnect(phone);
            pa_stream_unref(phone);
        }
        // What was lowered is back after half a second.
        turn_until(end + 1.5e6);
        report(begin, end);
    }
    return 0;
}
