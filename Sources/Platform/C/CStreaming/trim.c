#include "CStreaming.h"

#include <stdlib.h>
#include <string.h>

// Removes the padding of an encoder before and after the sound: `skip` frames, and everything after the next `length`
// frames. For the elements after the pad, the sound begins at 0; seeks and lengths are converted. Runs on GStreamer's
// threads; only the streaming thread uses the changing fields.
typedef struct {
    guint64 skip;
    guint64 length;
    gint rate;
    gsize frame;   // bytes; 0 if the format is unexpected: then nothing is removed
    guint64 base;  // the running time of the beginning of the current segment; none before the first, or after a flush
    guint64 from;  // the position of its beginning
} shim_trim;

static guint64 shim_trim_time(shim_trim *trim, guint64 frames) {
    return gst_util_uint64_scale(frames, GST_SECOND, (guint64)trim->rate);
}
static guint64 shim_less(guint64 time, guint64 less) {
    return time == GST_CLOCK_TIME_NONE ? time : time > less ? time - less : 0;
}
static void shim_trim_format(shim_trim *trim, GstEvent *event) {
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    const GstStructure *structure = gst_caps_get_structure(caps, 0);
    const char *format = gst_structure_get_string(structure, "format");
    int rate = 0, channels = 0, bits = format ? atoi(format + 1) : 0;
    gst_structure_get_int(structure, "rate", &rate);
    gst_structure_get_int(structure, "channels", &channels);
    trim->frame = rate == trim->rate && bits % 8 == 0 && !strchr(format, '_') ? (gsize)(bits / 8 * channels) : 0;
}
static GstEvent *shim_trim_segment(shim_trim *trim, GstEvent *event) {
    GstSegment segment;
    gst_event_copy_segment(event, &segment);
    if (segment.format != GST_FORMAT_TIME) return event;
    guint64 skip = shim_trim_time(trim, trim->skip), length = shim_trim_time(trim, trim->length);
    segment.start = shim_less(segment.start, skip);
    segment.stop = shim_less(segment.stop, skip);
    segment.time = shim_less(segment.time, skip);
    segment.position = shim_less(segment.position, skip);
    if (segment.duration != GST_CLOCK_TIME_NONE) segment.duration = length;
    // A segment that follows without a flush, as in a loop, begins at the trimmed end of the last one.
    if (trim->base != GST_CLOCK_TIME_NONE && segment.base > trim->base)
        segment.base = trim->base + (guint64)((double)shim_less(length, trim->from) / ABS(segment.rate));
    trim->base = segment.base;
    trim->from = segment.start;
    GstEvent *changed = gst_event_new_segment(&segment);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    return changed;
}
static GstEvent *shim_trim_seek(shim_trim *trim, GstEvent *event) {
    gdouble rate;
    GstFormat format;
    GstSeekFlags flags;
    GstSeekType start_type, stop_type;
    gint64 start, stop, skip = (gint64)shim_trim_time(trim, trim->skip);
    gst_event_parse_seek(event, &rate, &format, &flags, &start_type, &start, &stop_type, &stop);
    if (format != GST_FORMAT_TIME) return event;
    if (start_type == GST_SEEK_TYPE_SET) start += skip;
    if (stop_type == GST_SEEK_TYPE_SET) stop += skip;
    GstEvent *changed = gst_event_new_seek(rate, format, flags, start_type, start, stop_type, stop);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    return changed;
}
static GstPadProbeReturn shim_trim_buffer(shim_trim *trim, GstPadProbeInfo *info) {
    GstBuffer *buffer = (GstBuffer *)info->data;
    if (!trim->frame || !GST_BUFFER_PTS_IS_VALID(buffer)) return GST_PAD_PROBE_OK;
    gint64 count = (gint64)(gst_buffer_get_size(buffer) / trim->frame);
    gint64 first = (gint64)gst_util_uint64_scale_round(GST_BUFFER_PTS(buffer), (guint64)trim->rate, GST_SECOND)
        - (gint64)trim->skip;
    gint64 before = first < 0 ? -first : 0;
    gint64 behind = first + count > (gint64)trim->length ? first + count - (gint64)trim->length : 0;
    if (before + behind >= count) return GST_PAD_PROBE_DROP;
    buffer = gst_buffer_make_writable(buffer);
    if (before || behind)
        gst_buffer_resize(
            buffer, (gssize)before * (gssize)trim->frame, (gssize)(count - before - behind) * (gssize)trim->frame);
    GST_BUFFER_PTS(buffer) = shim_trim_time(trim, (guint64)(first + before));
    GST_BUFFER_DURATION(buffer) =
        shim_trim_time(trim, (guint64)(first + count - behind)) - GST_BUFFER_PTS(buffer);
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static GstPadProbeReturn shim_trim_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_trim *trim = (shim_trim *)data;
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) return shim_trim_buffer(trim, info);
    if (info->type & GST_PAD_PROBE_TYPE_QUERY_UPSTREAM) {
        GstQuery *query = (GstQuery *)info->data;
        GstFormat format;
        gint64 length;
        if (!(info->type & GST_PAD_PROBE_TYPE_PULL) || GST_QUERY_TYPE(query) != GST_QUERY_DURATION)
            return GST_PAD_PROBE_OK;
        gst_query_parse_duration(query, &format, &length);
        if (format == GST_FORMAT_TIME && length >= 0)
            gst_query_set_duration(query, format, (gint64)shim_trim_time(trim, trim->length));
        return GST_PAD_PROBE_OK;
    }
    GstEvent *event = (GstEvent *)info->data;
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_CAPS: shim_trim_format(trim, event); break;
        case GST_EVENT_SEGMENT: info->data = shim_trim_segment(trim, event); break;
        case GST_EVENT_SEEK: info->data = shim_trim_seek(trim, event); break;
        case GST_EVENT_FLUSH_STOP: trim->base = GST_CLOCK_TIME_NONE; break;
        default: break;
    }
    return GST_PAD_PROBE_OK;
}
void shim_trim_pad(GstPad *pad, guint64 skip, guint64 length, gint rate) {
    shim_trim *trim = g_new0(shim_trim, 1);
    trim->skip = skip;
    trim->length = length;
    trim->rate = rate;
    trim->base = GST_CLOCK_TIME_NONE;
    GstPadProbeType type = (GstPadProbeType)(
        GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_BOTH | GST_PAD_PROBE_TYPE_EVENT_FLUSH
        | GST_PAD_PROBE_TYPE_QUERY_UPSTREAM);
    gst_pad_add_probe(pad, type, shim_trim_probe, trim, g_free);
}
