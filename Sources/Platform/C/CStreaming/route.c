#include "CStreaming.h"

// Leads the first sound and the first pictures of a film to their queues. The outputs of a decoder appear on its own
// threads.
typedef struct {
    GstElement *sound;
    GstElement *pictures;
} shim_routes;

static void shim_output_added(GstElement *source, GstPad *pad, gpointer data) {
    (void)source;
    shim_routes *routes = (shim_routes *)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps) caps = gst_pad_query_caps(pad, NULL);
    const char *name =
        gst_caps_is_empty(caps) || gst_caps_is_any(caps) ? "" : gst_structure_get_name(gst_caps_get_structure(caps, 0));
    GstElement *queue = g_str_has_prefix(name, "audio/") ? routes->sound
        : g_str_has_prefix(name, "video/") ? routes->pictures : NULL;
    GstPad *entry = queue ? gst_element_get_static_pad(queue, "sink") : NULL;
    if (entry) {
        if (!gst_pad_is_linked(entry)) gst_pad_link(pad, entry);
        gst_object_unref(entry);
    }
    gst_caps_unref(caps);
}
static void shim_routes_free(gpointer data, GClosure *closure) {
    (void)closure;
    g_free(data);
}
void shim_route(GstElement *source, GstElement *sound, GstElement *pictures) {
    shim_routes *routes = g_new(shim_routes, 1);
    *routes = (shim_routes){.sound = sound, .pictures = pictures};
    g_signal_connect_data(
        source, "pad-added", G_CALLBACK(shim_output_added), routes, shim_routes_free, (GConnectFlags)0);
}

// The size of the pictures that pass a pad, each time it changes.
static GstPadProbeReturn shim_format_passed(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    GstElement *pipeline = (GstElement *)data;
    GstEvent *event = (GstEvent *)info->data;
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
    GstCaps *caps = NULL;
    gst_event_parse_caps(event, &caps);
    const GstStructure *format = gst_caps_get_structure(caps, 0);
    gint width = 0, height = 0, numerator = 1, denominator = 1;
    gst_structure_get_int(format, "width", &width);
    gst_structure_get_int(format, "height", &height);
    gst_structure_get_fraction(format, "pixel-aspect-ratio", &numerator, &denominator);
    GstStructure *structure = gst_structure_new(
        "picture-size", "width", G_TYPE_INT, width, "height", G_TYPE_INT, height, "numerator", G_TYPE_INT, numerator,
        "denominator", G_TYPE_INT, denominator, NULL);
    gst_element_post_message(pipeline, gst_message_new_application((GstObject *)pipeline, structure));
    return GST_PAD_PROBE_OK;
}
void shim_watch_size(GstPad *pad, GstElement *pipeline) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, shim_format_passed, pipeline, NULL);
}
gboolean shim_picture_size(GstMessage *message, shim_size *size) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "picture-size")
        && gst_structure_get_int(structure, "width", &size->width)
        && gst_structure_get_int(structure, "height", &size->height)
        && gst_structure_get_int(structure, "numerator", &size->numerator)
        && gst_structure_get_int(structure, "denominator", &size->denominator);
}

gboolean shim_stream_types(GstMessage *message, guint *types) {
    GstStreamCollection *collection = NULL;
    if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_STREAM_COLLECTION) return FALSE;
    gst_message_parse_stream_collection(message, &collection);
    if (!collection) return FALSE;
    *types = 0;
    for (guint index = 0; index < gst_stream_collection_get_size(collection); index++)
        *types |= (guint)gst_stream_get_stream_type(gst_stream_collection_get_stream(collection, index));
    gst_object_unref(collection);
    return TRUE;
}
