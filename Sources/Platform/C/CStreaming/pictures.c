#include "CStreaming.h"

// The size of the pictures that pass a pad, each time it changes. A format may be replaced before the first picture has it:
// that a film is turned is known only after its format.
typedef struct {
    GstElement *pipeline;
    gboolean has_new_format;
} shim_size_watch;

static GstPadProbeReturn shim_size_passed(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_size_watch *watch = (shim_size_watch *)data;
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
        if (GST_EVENT_TYPE((GstEvent *)info->data) == GST_EVENT_CAPS) watch->has_new_format = TRUE;
        return GST_PAD_PROBE_OK;
    }
    GstCaps *caps = watch->has_new_format ? gst_pad_get_current_caps(pad) : NULL;
    if (!caps) return GST_PAD_PROBE_OK;
    watch->has_new_format = FALSE;
    const GstStructure *format = gst_caps_get_structure(caps, 0);
    gint width = 0, height = 0, numerator = 1, denominator = 1, rate = 0, divisor = 1;
    gst_structure_get_int(format, "width", &width);
    gst_structure_get_int(format, "height", &height);
    gst_structure_get_fraction(format, "pixel-aspect-ratio", &numerator, &denominator);
    gst_structure_get_fraction(format, "framerate", &rate, &divisor);
    gst_caps_unref(caps);
    GstStructure *structure = gst_structure_new(
        "picture-size", "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, "numerator", G_TYPE_INT, numerator,
        "denominator", G_TYPE_INT, denominator, "rate", G_TYPE_INT, rate, "divisor", G_TYPE_INT, divisor, NULL);
    gst_element_post_message(
        watch->pipeline, gst_message_new_application((GstObject *)watch->pipeline, structure));
    return GST_PAD_PROBE_OK;
}
void shim_watch_size(GstPad *pad, GstElement *pipeline) {
    shim_size_watch *watch = g_new0(shim_size_watch, 1);
    watch->pipeline = pipeline;
    gst_pad_add_probe(
        pad, (GstPadProbeType)(GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_BUFFER), shim_size_passed, watch,
        g_free);
}
gboolean shim_picture_size(GstMessage *message, shim_size *size) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "picture-size")
        && gst_structure_get_int(structure, "width", &size->width)
        && gst_structure_get_int(structure, "height", &size->height)
        && gst_structure_get_int(structure, "numerator", &size->numerator)
        && gst_structure_get_int(structure, "denominator", &size->denominator)
        && gst_structure_get_int(structure, "rate", &size->rate)
        && gst_structure_get_int(structure, "divisor", &size->rate_divisor);
}

// When the last picture that passed a pad is shown.
struct shim_last_picture {
    gint references;
    GMutex lock;
    shim_picture_times times;
};

void shim_last_picture_free(gpointer data) {
    shim_last_picture *last = (shim_last_picture *)data;
    if (!g_atomic_int_dec_and_test(&last->references)) return;
    g_mutex_clear(&last->lock);
    g_free(last);
}

static GstPadProbeReturn shim_picture_passed(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_last_picture *last = (shim_last_picture *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (event && caps && GST_BUFFER_PTS_IS_VALID(buffer)) {
        const GstSegment *segment = NULL;
        gint numerator = 0, denominator = 1;
        gst_event_parse_segment(event, &segment);
        gst_structure_get_fraction(gst_caps_get_structure(caps, 0), "framerate", &numerator, &denominator);
        guint64 usual = numerator > 0
            ? gst_util_uint64_scale_int(GST_SECOND, denominator, numerator) : GST_CLOCK_TIME_NONE;
        guint64 start = gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
        guint64 length = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : usual;
        if (!GST_CLOCK_TIME_IS_VALID(length)) length = GST_SECOND / 25;
        if (GST_CLOCK_TIME_IS_VALID(start)) {
            g_mutex_lock(&last->lock);
            last->times = (shim_picture_times){
                .start = start, .end = start + length, .usual = GST_CLOCK_TIME_IS_VALID(usual) ? usual : length};
            g_mutex_unlock(&last->lock);
        }
    }
    if (caps) gst_caps_unref(caps);
    if (event) gst_event_unref(event);
    return GST_PAD_PROBE_OK;
}

shim_last_picture *shim_watch_last_picture(GstPad *pad) {
    shim_last_picture *last = g_new0(shim_last_picture, 1);
    last->references = 2;
    g_mutex_init(&last->lock);
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_picture_passed, last, shim_last_picture_free);
    return last;
}
shim_picture_times shim_last_picture_times(shim_last_picture *last) {
    g_mutex_lock(&last->lock);
    shim_picture_times times = last->times;
    g_mutex_unlock(&last->lock);
    return times;
}
