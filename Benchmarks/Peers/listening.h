// Shared by the measuring programs that record from the sound server.
#pragma once

#include <pulse/pulseaudio.h>

#include "peers.h"

static pa_mainloop *loop;
static pa_context *context;

static inline void connect_to_server(void) {
    loop = pa_mainloop_new();
    context = pa_context_new(pa_mainloop_get_api(loop), "bench");
    pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL);
    while (pa_context_get_state(context) != PA_CONTEXT_READY) pa_mainloop_iterate(loop, 1, NULL);
}

/// Receives `bytes` bytes of sound; `data` is NULL for a gap. `arrival` is the time in microseconds.
typedef void listener(const void *data, size_t bytes, double arrival);

static inline void take(pa_stream *stream, size_t length, void *to) {
    (void)length;
    double arrival = now();
    const void *data;
    size_t size;
    while (pa_stream_readable_size(stream) > 0 && pa_stream_peek(stream, &data, &size) == 0 && size) {
        ((listener *)to)(data, size, arrival);
        pa_stream_drop(stream);
    }
}

/// Records the source in fragments of this size and passes them to the listener.
static inline void record(const char *source, const pa_sample_spec *spec, uint32_t fragment, listener *to) {
    pa_stream *stream = pa_stream_new(context, "bench", spec, NULL);
    pa_buffer_attr buffer = {.maxlength = (uint32_t)-1, .fragsize = fragment};
    pa_stream_set_read_callback(stream, take, (void *)to);
    pa_stream_connect_record(stream, source, &buffer, PA_STREAM_ADJUST_LATENCY | PA_STREAM_DONT_MOVE);
    while (pa_stream_get_state(stream) != PA_STREAM_READY) pa_mainloop_iterate(loop, 1, NULL);
}

/// Handles messages of the server. Waits at most a millisecond for them.
static inline void turn(void) {
    pa_mainloop_prepare(loop, 1000);
    pa_mainloop_poll(loop);
    pa_mainloop_dispatch(loop);
}

/// Handles messages until this time, in microseconds.
static inline void turn_until(double end) {
    while (now() < end) turn();
}
