// Plays a stream of silence.
#pragma once

#include <pulse/pulseaudio.h>

#include "peers.h"

static inline void feed_silence(pa_stream *stream, size_t size, void *user) {
    (void)user;
    void *data;
    if (pa_stream_begin_write(stream, &data, &size) < 0) return;
    memset(data, 0, size);
    pa_stream_write(stream, data, size, NULL, 0, PA_SEEK_RELATIVE);
}

/// Begins to play silence with this media.role. `event` gets the requests of the server; it may be NULL.
static inline pa_stream *play_silence(pa_context *context, const char *role, pa_stream_event_cb_t event) {
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = 48000, .channels = 2};
    pa_proplist *properties = pa_proplist_new();
    pa_proplist_sets(properties, PA_PROP_MEDIA_ROLE, role);
    pa_stream *stream = check(pa_stream_new_with_proplist(context, role, &spec, NULL, properties), role);
    pa_proplist_free(properties);
    pa_stream_set_event_callback(stream, event, NULL);
    pa_stream_set_write_callback(stream, feed_silence, NULL);
    if (pa_stream_connect_playback(stream, NULL, NULL, 0, NULL, NULL) < 0) exit(1);
    return stream;
}
