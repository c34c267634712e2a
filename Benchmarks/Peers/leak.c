// Milliseconds of sound that a monitor hears within two seconds of a device being taken away.
//
//   leak MONITOR MODULE    unloads that module of the server, and prints how many there were
#include "peers.h"

#include <pulse/pulseaudio.h>

enum { rate = 48000, window = rate / 1000, threshold = 300 };

static pa_mainloop *loop;
static pa_context *context;
static double begin;
static int heard, filled, loud;

static void take(pa_stream *stream, size_t length, void *user) {
    (void)length, (void)user;
    double arrival = now();
    const void *data;
    size_t size;
    while (pa_stream_readable_size(stream) > 0 && pa_stream_peek(stream, &data, &size) == 0 && size) {
        const short *samples = data;
        for (size_t i = 0; i < size / 2; i++) {
            double time = arrival - (double)(size / 2 - i) / rate * 1e6;
            if (begin == 0 || time < begin) continue;
            if (samples && (samples[i] > threshold || samples[i] < -threshold)) loud = 1;
            if (++filled < window) continue;
            heard += loud;
            filled = loud = 0;
        }
        pa_stream_drop(stream);
    }
}

static void until(double end) {
    while (now() < end) {
        pa_mainloop_prepare(loop, 1000);
        pa_mainloop_poll(loop);
        pa_mainloop_dispatch(loop);
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 64;
    loop = pa_mainloop_new();
    context = pa_context_new(pa_mainloop_get_api(loop), "bench");
    pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL);
    while (pa_context_get_state(context) != PA_CONTEXT_READY) pa_mainloop_iterate(loop, 1, NULL);
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 1};
    pa_stream *stream = pa_stream_new(context, "bench", &spec, NULL);
    pa_buffer_attr buffer = {.maxlength = (uint32_t)-1, .fragsize = 192};
    pa_stream_set_read_callback(stream, take, NULL);
    pa_stream_connect_record(stream, arguments[1], &buffer, PA_STREAM_ADJUST_LATENCY | PA_STREAM_DONT_MOVE);
    while (pa_stream_get_state(stream) != PA_STREAM_READY) pa_mainloop_iterate(loop, 1, NULL);
    until(now() + 500e3);
    begin = now();
    pa_operation_unref(pa_context_unload_module(context, (unsigned)atoi(arguments[2]), NULL, NULL));
    until(begin + 2100e3);
    printf("%d\n", heard);
    return 0;
}
