#include "CStreaming.h"

// Limits the bytes from a server between two buffers of sound, because parsers keep all of them in memory. Runs on
// GStreamer's threads.
typedef struct {
    gint64 bytes;
    gint64 limit;
} shim_supply;

static GstPadProbeReturn shim_supply_arrives(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_supply *supply = (shim_supply *)data;
    gsize size = info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST
        ? gst_buffer_list_calculate_size((GstBufferList *)info->data)
        : gst_buffer_get_size((GstBuffer *)info->data);
    gint64 before = __atomic_fetch_add(&supply->bytes, (gint64)size, __ATOMIC_RELAXED);
    if (before + (gint64)size <= supply->limit) return GST_PAD_PROBE_OK;
    GstElement *element = gst_pad_get_parent_element(pad);
    if (element && before <= supply->limit)
        GST_ELEMENT_ERROR(
            element, RESOURCE, READ, ("more than %d MB come before any sound", (int)(supply->limit >> 20)), (NULL));
    if (element) gst_object_unref(element);
    return GST_PAD_PROBE_DROP;
}
static GstPadProbeReturn shim_supply_is_heard(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)info;
    __atomic_store_n(&((shim_supply *)data)->bytes, 0, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
void shim_limit_supply(GstPad *source, GstPad *sound, gint64 limit) {
    shim_supply *supply = g_atomic_rc_box_new0(shim_supply);
    supply->limit = limit;
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    gst_pad_add_probe(source, type, shim_supply_arrives, supply, g_atomic_rc_box_release);
    gst_pad_add_probe(
        sound, GST_PAD_PROBE_TYPE_BUFFER, shim_supply_is_heard, g_atomic_rc_box_acquire(supply),
        g_atomic_rc_box_release);
}
