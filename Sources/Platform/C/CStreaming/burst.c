#include "CStreaming.h"

// The next pictures that pass a pad, one directly after the other. Runs on GStreamer's threads.
struct shim_burst {
    gint references;
    GMutex lock;
    GstElement *pipeline;  // borrowed: the pad is in it
    GPtrArray *samples;
    guint count;
};

void shim_burst_free(gpointer data) {
    shim_burst *burst = (shim_burst *)data;
    if (!g_atomic_int_dec_and_test(&burst->references)) return;
    g_ptr_array_unref(burst->samples);
    g_mutex_clear(&burst->lock);
    g_free(burst);
}
static GstPadProbeReturn picture_passes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_burst *burst = (shim_burst *)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    g_mutex_lock(&burst->lock);
    gboolean is_full = burst->samples->len >= burst->count;
    if (caps && !is_full) {
        g_ptr_array_add(burst->samples, gst_sample_new(GST_PAD_PROBE_INFO_BUFFER(info), caps, NULL, NULL));
        is_full = burst->samples->len >= burst->count;
    }
    g_mutex_unlock(&burst->lock);
    if (caps) gst_caps_unref(caps);
    if (!is_full) return GST_PAD_PROBE_OK;
    gst_element_post_message(
        burst->pipeline,
        gst_message_new_application((GstObject *)burst->pipeline, gst_structure_new_empty("burst-full")));
    return GST_PAD_PROBE_REMOVE;
}
static void free_sample(gpointer sample) { gst_sample_unref((GstSample *)sample); }
shim_burst *shim_burst_new(GstPad *pad, GstElement *pipeline, guint count) {
    shim_burst *burst = g_new0(shim_burst, 1);
    burst->references = 2;
    g_mutex_init(&burst->lock);
    burst->pipeline = pipeline;
    burst->count = count;
    burst->samples = g_ptr_array_new_with_free_func(free_sample);
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, picture_passes, burst, shim_burst_free);
    return burst;
}
guint shim_burst_count(shim_burst *burst) {
    g_mutex_lock(&burst->lock);
    guint count = burst->samples->len;
    g_mutex_unlock(&burst->lock);
    return count;
}
GstSample *shim_burst_sample(shim_burst *burst, guint place) {
    g_mutex_lock(&burst->lock);
    GstSample *sample = place < burst->samples->len
        ? gst_sample_ref((GstSample *)g_ptr_array_index(burst->samples, place)) : NULL;
    g_mutex_unlock(&burst->lock);
    return sample;
}
void shim_burst_end(shim_burst *burst) {
    g_mutex_lock(&burst->lock);
    burst->count = 0;
    g_mutex_unlock(&burst->lock);
}
