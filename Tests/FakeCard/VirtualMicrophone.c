// A microphone without hardware for PipeWire: silence, and a tick of 20 ms twice a second. For each tick, it prints the number of the
// tick and when it began, by CLOCK_MONOTONIC in nanoseconds: as with a sound card, the sound of a cycle is that before its
// beginning. It ends with its input.
//
//   microphone NAME
#include <pipewire/filter.h>
#include <pipewire/pipewire.h>
#include <stdio.h>
#include <unistd.h>

enum { rate = 48000, interval = rate / 2, length = rate / 50, half_wave = 24, remembered = 4096 };

static struct {
    struct pw_main_loop *loop;
    struct pw_filter *filter;
    void *port;
    uint64_t frames, ticks;
    // Ring of what the thread of the graph has to say.
    int64_t begun[remembered];
    uint64_t told;
} microphone;

static void on_process(void *data, struct spa_io_position *position) {
    (void)data;
    uint32_t count = (uint32_t)position->clock.duration;
    float *samples = pw_filter_get_dsp_buffer(microphone.port, count);
    int64_t end = (int64_t)position->clock.nsec;
    for (uint32_t place = 0; place < count; place++, microphone.frames++) {
        uint32_t within = (uint32_t)(microphone.frames % interval);
        if (within == 0) {
            microphone.begun[microphone.ticks % remembered] = end - (int64_t)(count - place) * 1000000000 / rate;
            __atomic_add_fetch(&microphone.ticks, 1, __ATOMIC_RELEASE);
        }
        if (samples) samples[place] = within >= length ? 0 : within / half_wave % 2 ? 0.6f : -0.6f;
    }
}
static const struct pw_filter_events events = {PW_VERSION_FILTER_EVENTS, .process = on_process};

static void tell(void *data, uint64_t expirations) {
    (void)data, (void)expirations;
    uint64_t ticks = __atomic_load_n(&microphone.ticks, __ATOMIC_ACQUIRE);
    for (; microphone.told < ticks; microphone.told++)
        printf("%llu %lld\n", (unsigned long long)microphone.told, (long long)microphone.begun[microphone.told % remembered]);
    fflush(stdout);
}
static void on_input(void *data, int descriptor, uint32_t mask) {
    (void)data, (void)mask;
    char byte;
    if (read(descriptor, &byte, 1) <= 0) pw_main_loop_quit(microphone.loop);
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: microphone NAME\n");
        return 64;
    }
    pw_init(NULL, NULL);
    microphone.loop = pw_main_loop_new(NULL);
    struct pw_loop *loop = pw_main_loop_get_loop(microphone.loop);
    microphone.filter = pw_filter_new_simple(
        loop, words[1],
        pw_properties_new(
            PW_KEY_MEDIA_TYPE, "Audio", PW_KEY_MEDIA_ROLE, "Production", PW_KEY_NODE_NAME, words[1],
            PW_KEY_NODE_DESCRIPTION, words[1], "audio.rate", "48000", "audio.channels", "1", "audio.position", "MONO", NULL),
        &events, NULL);
    microphone.port = pw_filter_add_port(
        microphone.filter, PW_DIRECTION_OUTPUT, PW_FILTER_PORT_FLAG_MAP_BUFFERS, sizeof(int),
        pw_properties_new(
            PW_KEY_FORMAT_DSP, "32 bit float mono audio", PW_KEY_PORT_NAME, "capture_MONO", PW_KEY_AUDIO_CHANNEL, "MONO", NULL),
        NULL, 0);
    if (pw_filter_connect(microphone.filter, PW_FILTER_FLAG_RT_PROCESS, NULL, 0) < 0) {
        fprintf(stderr, "the microphone cannot be connected\n");
        return 1;
    }
    struct spa_source *timer = pw_loop_add_timer(loop, tell, NULL);
    struct timespec often = {.tv_nsec = 50000000};
    pw_loop_update_timer(loop, timer, &often, &often, false);
    pw_loop_add_io(loop, 0, SPA_IO_IN | SPA_IO_HUP, false, on_input, NULL);
    printf("ready\n");
    fflush(stdout);
    pw_main_loop_run(microphone.loop);
    pw_filter_destroy(microphone.filter);
    pw_main_loop_destroy(microphone.loop);
    return 0;
}
