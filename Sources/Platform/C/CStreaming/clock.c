#include "CStreaming.h"

#include <gst/audio/gstaudiobasesink.h>

// The clock of pulsesink gets the played time of its stream from libpulse (pa_stream_get_time). When a stream is
// uncorked, libpulse 16 continues from the future moment at which the server and the sink will have reacted. Before
// that moment, the result is negative, which is converted to a time in the far future. libpulse then keeps returning
// this time, because its times never decrease. So the sink assumes that all its data were played, and the clock stops.
//
// For a stream that waits for its first uncork, libpulse 16 returns how long it has waited. The pipeline would begin at
// this time, and play as much silence before its first sample. The right time is 0.
//
// So this clock does not ask libpulse before the first start, and for some time after a later start. It counts the time
// itself instead. If libpulse is nevertheless too far ahead, which may happen after the server lacked processor time,
// the clock does not ask it any more, and counts the time while the ring buffer runs. That is exact enough until the
// end of the current sound, but not to find the position at which a new sound begins. shim_clock_is_lost reports this
// state.
typedef struct {
    GMutex lock;
    GstAudioClockGetTimeFunc ask;
    GstAudioBaseSink *sink;
    GstClockTime told;
    gint64 asked;
    gint64 started;  // 0 before the first start
    gboolean runs;
    gboolean lost;
} shim_doubt;

// How far the time of a stream may be ahead, in nanoseconds: more than a server corrects at once.
static const GstClockTime shim_doubt_slack = 250 * GST_MSECOND;
// How long libpulse is not asked, in microseconds: the latency of a request, and half of the sink's buffer.
static const gint64 shim_doubt_rest = 150 * G_TIME_SPAN_MILLISECOND;

static GstClockTime shim_doubted_time(GstClock *clock, gpointer data) {
    shim_doubt *doubt = (shim_doubt *)g_object_get_data((GObject *)clock, "shim-doubt");
    g_mutex_lock(&doubt->lock);
    GstAudioRingBuffer *ring = doubt->sink->ringbuffer;
    gboolean runs = ring && g_atomic_int_get(&ring->state) == GST_AUDIO_RING_BUFFER_STATE_STARTED;
    gint64 now = g_get_monotonic_time();
    if (runs && !doubt->runs) {
        // The time cannot be negative at the first start.
        if (doubt->started) doubt->started = now;
        else doubt->started = 1;
    }
    GstClockTime passed = (GstClockTime)(now - doubt->asked) * GST_USECOND;
    // A pipeline asks when it begins to play, shortly before the ring buffer starts.
    GstClockTime counted = doubt->told + (runs ? passed : 0);
    GstClockTime time = counted;
    if (!doubt->lost && doubt->started && !(runs && now - doubt->started < shim_doubt_rest)) {
        time = doubt->ask(clock, data);
        if (GST_CLOCK_TIME_IS_VALID(time) && time > doubt->told + passed + shim_doubt_slack) {
            doubt->lost = TRUE;
            time = counted;
        }
    }
    if (GST_CLOCK_TIME_IS_VALID(time)) {
        doubt->told = time;
        doubt->asked = now;
        doubt->runs = runs;
    }
    g_mutex_unlock(&doubt->lock);
    return time;
}
static void shim_free_doubt(gpointer data) {
    g_mutex_clear(&((shim_doubt *)data)->lock);
    g_free(data);
}
// Installs this clock. Must be called before the first use of the sink. Does nothing for a sink without a clock.
void shim_doubt_clock(GstElement *element) {
    GstAudioBaseSink *sink = (GstAudioBaseSink *)element;
    GstAudioClock *clock = (GstAudioClock *)sink->provided_clock;
    if (!clock || !clock->func) return;
    shim_doubt *doubt = g_new0(shim_doubt, 1);
    g_mutex_init(&doubt->lock);
    doubt->ask = clock->func;
    doubt->sink = sink;
    doubt->asked = g_get_monotonic_time();
    g_object_set_data_full((GObject *)clock, "shim-doubt", doubt, shim_free_doubt);
    clock->func = shim_doubted_time;
}
static shim_doubt *shim_doubt_of(GstElement *element) {
    GstClock *clock = ((GstAudioBaseSink *)element)->provided_clock;
    return clock ? (shim_doubt *)g_object_get_data((GObject *)clock, "shim-doubt") : NULL;
}
// Whether the clock no longer asks libpulse.
gboolean shim_clock_is_lost(GstElement *element) {
    shim_doubt *doubt = shim_doubt_of(element);
    if (!doubt) return FALSE;
    g_mutex_lock(&doubt->lock);
    gboolean lost = doubt->lost;
    g_mutex_unlock(&doubt->lock);
    return lost;
}
// The sink has no stream. The next one begins at 0.
void shim_renew_clock(GstElement *element) {
    shim_doubt *doubt = shim_doubt_of(element);
    if (!doubt) return;
    g_mutex_lock(&doubt->lock);
    doubt->told = 0;
    doubt->asked = g_get_monotonic_time();
    doubt->started = 0;
    doubt->runs = doubt->lost = FALSE;
    g_mutex_unlock(&doubt->lock);
}
