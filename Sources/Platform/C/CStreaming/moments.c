#include "CStreaming.h"

#include <gst/audio/gstaudiobasesrc.h>

// When the sound of a microphone was there.
//
// A sound server tells its latency, but what it tells is of no use here: in the first two seconds of a stream of
// pipewire-pulse it falls from 30 ms to 0, and in one of PulseAudio from 370 ms to 0, while the sound comes as steadily as
// before. And the time at which a buffer is read depends on when threads run. But sound never comes before it was there. So the
// buffers that came earliest, compared with their numbers, tell when all the others were there. The differences between
// the first twelve of them and a whole second were below 0.1 ms on an idle machine.
//
// The times are continuous. Only if the server has lost sound, or all of the first buffers were late, is there a step:
// a gap, or samples that are left out.

struct shim_moments {
    gint64 rate;
    gint64 begun;  // the running time of sample 0, in nanoseconds
    gint64 next;  // the end of what was placed
    guint64 seen;  // samples
    gboolean is_known;
    // The smallest value for `begun` in the second before this one, and in this one, which ends at `until`.
    gint64 before, least, until;
};

// What differs by less is left as it is: a step is heard.
static const gint64 tolerance = 10 * GST_MSECOND;
static const gint64 window = GST_SECOND;
// Samples come in blocks of the server and are read in others. After this time, some of them were read as they came.
static const gint64 learning = 120 * GST_MSECOND;

static gint64 duration(const shim_moments *moments, guint64 samples) {
    return (gint64)gst_util_uint64_scale(samples, GST_SECOND, (guint64)moments->rate);
}
static void begin_windows(shim_moments *moments, gint64 now) {
    moments->before = moments->least = G_MAXINT64;
    moments->until = now + window;
}

shim_moments *shim_moments_new(gint rate) {
    shim_moments *moments = g_new0(shim_moments, 1);
    moments->rate = rate;
    return moments;
}
void shim_moments_free(gpointer moments) { g_free(moments); }

shim_placed shim_moments_place(shim_moments *moments, guint64 number, guint64 samples, guint64 waiting, guint64 now) {
    gint64 time = (gint64)now, begun = time - duration(moments, number + samples + waiting);
    shim_placed placed = {.is_known = FALSE};
    if (!moments->is_known) {
        moments->begun = moments->seen ? MIN(moments->begun, begun) : begun;
        moments->seen += samples;
        if (duration(moments, moments->seen) < learning) return placed;
        moments->is_known = placed.follows_gap = TRUE;
        moments->next = G_MININT64;
        begin_windows(moments, time);
    }
    moments->least = MIN(moments->least, begun);
    if (begun + tolerance < moments->begun) {
        moments->begun = begun;
        begin_windows(moments, time);
    } else if (time >= moments->until) {
        gint64 least = MIN(moments->before, moments->least);
        gboolean is_late = moments->before != G_MAXINT64 && least > moments->begun + tolerance;
        if (is_late) {
            moments->begun = least;
            placed.follows_gap = TRUE;
        }
        moments->before = is_late ? G_MAXINT64 : moments->least;
        moments->least = G_MAXINT64;
        moments->until = time + window;
    }
    gint64 start = MAX(0, moments->begun + duration(moments, number));
    if (start < moments->next)
        placed.skip = MIN(
            samples, gst_util_uint64_scale_round((guint64)(moments->next - start), (guint64)moments->rate, GST_SECOND));
    placed.is_known = placed.skip < samples;
    placed.start = (guint64)(start + duration(moments, placed.skip));
    if (placed.is_known) moments->next = start + duration(moments, samples);
    return placed;
}

static GstPadProbeReturn arrives(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)data;
    GstAudioBaseSrc *source = (GstAudioBaseSrc *)GST_PAD_PARENT(pad);
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    // The buffers that wait in GStreamer came before now, too.
    guint64 waiting = 0;
    gint rate = 0, frame = 0;
    GST_OBJECT_LOCK(source);
    GstAudioRingBuffer *ring = source->ringbuffer;
    if (ring && ring->acquired) {
        rate = GST_AUDIO_INFO_RATE(&ring->spec.info);
        frame = GST_AUDIO_INFO_BPF(&ring->spec.info);
        guint64 written = (guint64)MAX(0, g_atomic_int_get(&ring->segdone) - ring->segbase) * (guint64)ring->samples_per_seg;
        if (written > source->next_sample) waiting = written - source->next_sample;
    }
    GST_OBJECT_UNLOCK(source);
    if (rate <= 0 || frame <= 0 || !GST_BUFFER_OFFSET_IS_VALID(buffer)) return GST_PAD_PROBE_OK;
    shim_moments *moments = (shim_moments *)g_object_get_data((GObject *)pad, "shim-moments");
    if (!moments) {
        moments = shim_moments_new(rate);
        g_object_set_data_full((GObject *)pad, "shim-moments", moments, shim_moments_free);
    }
    guint64 now = gst_element_get_current_running_time((GstElement *)source);
    if (!GST_CLOCK_TIME_IS_VALID(now)) return GST_PAD_PROBE_DROP;
    guint64 samples = gst_buffer_get_size(buffer) / (gsize)frame;
    shim_placed placed = shim_moments_place(moments, GST_BUFFER_OFFSET(buffer), samples, waiting, now);
    if (!placed.is_known) return GST_PAD_PROBE_DROP;
    buffer = gst_buffer_make_writable(buffer);
    if (placed.skip) {
        gst_buffer_resize(buffer, (gssize)(placed.skip * (gsize)frame), -1);
        GST_BUFFER_OFFSET(buffer) += placed.skip;
    }
    GST_BUFFER_PTS(buffer) = placed.start;
    GST_BUFFER_DURATION(buffer) = (guint64)duration(moments, samples - placed.skip);
    if (placed.follows_gap) GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
void shim_time_moments(GstElement *source) {
    GstPad *pad = gst_element_get_static_pad(source, "src");
    if (!pad) return;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, arrives, NULL, NULL);
    gst_object_unref(pad);
}
