#include "CStreaming.h"

// Blocks a pad at its next buffer, and posts an application message on the bus for each item that arrives at the
// blocked pad. It blocks only at a buffer, because the elements before the pad have negotiated their format by then.
static GstPadProbeReturn shim_pad_held(GstPad *pad, GstPadProbeInfo *info, gpointer element) {
    (void)pad;
    GstStructure *structure = gst_structure_new("pad-held", "id", G_TYPE_ULONG, info->id, NULL);
    gst_element_post_message((GstElement *)element, gst_message_new_application((GstObject *)element, structure));
    return GST_PAD_PROBE_OK;
}
// The number of the probe (returned by shim_hold_pad) that a message is from, or 0. gst_structure_get is variadic.
gulong shim_held_pad(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    gulong id = 0;
    if (structure && gst_structure_has_name(structure, "pad-held"))
        gst_structure_get(structure, "id", G_TYPE_ULONG, &id, NULL);
    return id;
}
gulong shim_hold_pad(GstPad *pad, GstElement *pipeline) {
    GstPadProbeType type =
        (GstPadProbeType)(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    return gst_pad_add_probe(pad, type, shim_pad_held, pipeline, NULL);
}

// Posts on the bus that a source has ended. While another source follows, it drops the end, so that the elements after
// the pad do not get it.
static GstPadProbeReturn shim_source_ended(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_succession *succession = (shim_succession *)data;
    if (((GstEvent *)info->data)->type != GST_EVENT_EOS) return GST_PAD_PROBE_OK;
    if (!__atomic_load_n(&succession->armed, __ATOMIC_ACQUIRE)) return GST_PAD_PROBE_OK;
    gst_element_post_message(
        succession->pipeline,
        gst_message_new_application((GstObject *)succession->pipeline, gst_structure_new_empty("source-ended")));
    return GST_PAD_PROBE_DROP;
}
void shim_watch_end(GstPad *pad, shim_succession *succession) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, shim_source_ended, succession, NULL);
}
void shim_succession_arm(shim_succession *succession, gint armed) {
    __atomic_store_n(&succession->armed, armed, __ATOMIC_RELEASE);
}
