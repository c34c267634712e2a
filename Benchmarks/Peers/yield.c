// Records music on the monitor of a sink while another session or stream interrupts or ducks it.
//
//   yield MONITOR session CLASS OPTION SECONDS ROUNDS   activates a session of this class, with this option or -
//   yield MONITOR stream ROLE SECONDS ROUNDS            plays silence in a stream of this role
//
// The music must show its position: a sine of 440 Hz on the left channel, and on the right a ramp of the same amplitude
// that begins again every four seconds. Prints for each round: the milliseconds from the call until the fade begins and
// until the last sample, the milliseconds of silence, and the milliseconds of the music that are missing; then the
// maximal change in 10 ms, and the level during the interruption and after it, all in decibels relative to the level
// before. With TRACE set, it also prints each silence. With SUDDEN set, it creates the session only when it activates
// it.
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
    // The fragments of one cycle arrive together, so they become one block.
    if (blocks_filled > 0 && arrival - block[blocks_filled - 1].arrival < 1e3) blocks_filled--;
    if (blocks_filled < blocks) {
        block[blocks_filled].end = count;
        block[blocks_filled++].arrival = arrival;
    }
}

/// When this sample was played.
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

/// Whether the sine is missing there for some time, with or without the ramp: PipeWire may drop one channel of a cycle.
static int is_without_sine(int from, int to) {
    for (int run = 0; from < to && from < count; from++) {
        run = abs(left[from]) <= 2 ? run + 1 : 0;
        if (run >= shortest / 2) return 1;
    }
    return 0;
}

static int is_silent(int sample) { return abs(left[sample]) <= 2 && abs(right[sample]) <= 2; }

/// The amplitude of the sine over this number of periods, from this sample on.
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

/// The maximal amplitude within a tenth of a second from this sample on. It is the maximum because the program may
/// underrun in the meantime.
static double level(int sample) {
    double most = 0;
    for (int i = 0; i < 10; i++) most = fmax(most, amplitude(sample + i * rate / 100, 4));
    return most;
}

static double decibels(double ratio) { return ratio > 1e-6 ? 20 * log10(ratio) : -120; }

/// The position in the music at this sample, modulo the length of the ramp; -1 if it cannot be determined.
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
    // The ramp begins again here, or the music is interrupted.
    if (most - least > loud / 10) return -1;
    return (mean / loud + 1) / 2 * piece - length / 2.0;
}

/// How many samples of the music are missing between two samples, with this number of silent samples between them.
static double missing(int from, int to, int silent) {
    double difference = position(to) - position(from) - (to - from - silent);
    return difference - piece * round(difference / piece);
}

/// The next sample, in steps of `step`, at which the music has its level from before and a position; -1 if there is
/// none.
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
    // It needs no answer: the recording shows the effect.
    dbus_message_set_no_reply(call, TRUE);
    dbus_connection_send(bus, call, NULL);
    dbus_connection_flush(bus);
    dbus_message_unref(call);
}

/// Waits for a second of music in total, with no drop-out in the last fifth of a second.
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

/// Analyzes the recording from shortly before `begin` on and prints the results. `leave` is the end of the
/// interruption.
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
            // If the ramp begins again nearby, the loss is not printed.
            int a = i - run - rate / 20, b = i + rate / 20;
            if (b < count - rate / 10 && position(a) >= 0 && position(b) >= 0)
                fprintf(stderr, ", %7.1f ms of the piece lost", missing(a, b, run) * 1e3 / rate);
            fprintf(stderr, "\n");
        }
    }
    // Only over the longest silence: at other times programs underrun, and some then skip a part of the music.
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
        // Skips places where the music ends or begins, or where the program or the server underruns.
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
        // The recorded blocks are synchronous with the cycle of PipeWire. This delay begins the call at any point of
        // the cycle.
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
        // Ducked music has its old volume again after half a second.
        turn_until(end + 1.5e6);
        report(begin, end);
    }
    return 0;
}
