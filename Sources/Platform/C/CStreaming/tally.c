#include "CStreaming.h"

// Counts the bytes through a pad, and drops those after `limit`. So lengths are exact, even if the loop is late.
static GstPadProbeReturn shim_count(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_tally *tally = (shim_tally *)data;
    GstBuffer *buffer = (GstBuffer *)info->data;
    gint64 size = (gint64)gst_buffer_get_size(buffer);
    gint64 before = __atomic_load_n(&tally->bytes, __ATOMIC_RELAXED);
    gint64 room = __atomic_load_n(&tally->limit, __ATOMIC_RELAXED) - before;
    if (room <= 0) return GST_PAD_PROBE_DROP;
    if (size >= room) {
        if (size > room) {
            buffer = gst_buffer_make_writable(buffer);
            gst_buffer_resize(buffer, 0, (gssize)room);
            info->data = buffer;
            size = room;
        }
        gst_element_post_message(
            tally->pipeline,
            gst_message_new_application((GstObject *)tally->pipeline, gst_structure_new_empty("limit-reached")));
    }
    __atomic_store_n(&tally->bytes, before + size, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
void shim_count_bytes(GstPad *pad, shim_tally *tally) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_count, tally, NULL);
}
// The numbers of buffers that did not come. A source that begins anew begins with a small number.
typedef struct {
    guint64 last;
    guint64 *lost;
} shim_numbers;
static const guint64 most_lost = 10000;

static GstPadProbeReturn shim_compare(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_numbers *numbers = (shim_numbers *)data;
    guint64 number = GST_BUFFER_OFFSET(GST_PAD_PROBE_INFO_BUFFER(info)), last = numbers->last;
    numbers->last = number;
    if (number == GST_BUFFER_OFFSET_NONE || last == GST_BUFFER_OFFSET_NONE || number <= last) return GST_PAD_PROBE_OK;
    guint64 lost = number - last - 1;
    if (lost && lost < most_lost) __atomic_add_fetch(numbers->lost, lost, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
void shim_count_lost(GstPad *pad, guint64 *lost) {
    shim_numbers *numbers = g_new0(shim_numbers, 1);
    numbers->last = GST_BUFFER_OFFSET_NONE;
    numbers->lost = lost;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_compare, numbers, g_free);
}
gint64 shim_tally_bytes(shim_tally *tally) { return __atomic_load_n(&tally->bytes, __ATOMIC_RELAXED); }
void shim_tally_limit(shim_tally *tally, gint64 limit) {
    __atomic_store_n(&tally->limit, limit, __ATOMIC_RELAXED);
}
