#include "CWebRTC.h"
#include <gst/sdp/sdp.h>
#include <string.h>

// GstWebRTCSessionDescription, as GStreamer publishes it in gst/webrtc/rtcsessiondescription.h. That header is in a package
// which needs 150 others; webrtcbin copies the value by its type, so only its fields matter.
typedef struct {
    gint type;
    GstSDPMessage *sdp;
} shim_description;
// GstWebRTCSDPType.
enum { shim_answer_type = 3 };
// GstWebRTCICEGatheringState and GstWebRTCPeerConnectionState.
enum { shim_gathered = 2 };
enum { shim_connected = 2, shim_disconnected = 3, shim_failed = 4, shim_closed = 5 };

static void shim_tell(GstElement *webrtc, shim_webrtc_kind kind, const char *text) {
    GstStructure *structure = gst_structure_new("webrtc", "kind", G_TYPE_INT, (gint)kind, NULL);
    if (text) gst_structure_set(structure, "text", G_TYPE_STRING, text, NULL);
    gst_element_post_message(webrtc, gst_message_new_application((GstObject *)webrtc, structure));
}

shim_webrtc_kind shim_webrtc_read(GstMessage *message, const char **text) {
    const GstStructure *structure = gst_message_get_structure(message);
    gint kind = SHIM_WEBRTC_NOTHING;
    if (GST_MESSAGE_TYPE(message) != GST_MESSAGE_APPLICATION || !structure) return SHIM_WEBRTC_NOTHING;
    if (!gst_structure_has_name(structure, "webrtc")) return SHIM_WEBRTC_NOTHING;
    gst_structure_get_int(structure, "kind", &kind);
    *text = gst_structure_get_string(structure, "text");
    return (shim_webrtc_kind)kind;
}

// The error in the reply of a promise is told. Returns whether there was none.
static gboolean shim_succeeded(GstPromise *promise, GstElement *webrtc) {
    // Interrupted or expired: webrtcbin is being closed.
    if (gst_promise_wait(promise) != GST_PROMISE_RESULT_REPLIED) return FALSE;
    const GstStructure *reply = gst_promise_get_reply(promise);
    GError *error = NULL;
    if (reply && gst_structure_get(reply, "error", G_TYPE_ERROR, &error, NULL)) {
        shim_tell(webrtc, SHIM_WEBRTC_FAILED, error->message);
        g_error_free(error);
        return FALSE;
    }
    return TRUE;
}

static void shim_described(GstPromise *promise, gpointer data) {
    shim_succeeded(promise, (GstElement *)data);
    gst_promise_unref(promise);
}
static GstPromise *shim_promise(GstPromiseChangeFunc function, GstElement *webrtc) {
    return gst_promise_new_with_change_func(function, gst_object_ref(webrtc), gst_object_unref);
}

static void shim_offered(GstPromise *promise, gpointer data) {
    GstElement *webrtc = (GstElement *)data;
    if (shim_succeeded(promise, webrtc)) {
        const GstStructure *reply = gst_promise_get_reply(promise);
        const GValue *offer = reply ? gst_structure_get_value(reply, "offer") : NULL;
        if (offer)
            g_signal_emit_by_name(
                webrtc, "set-local-description", g_value_get_boxed(offer), shim_promise(shim_described, webrtc));
    }
    gst_promise_unref(promise);
}

// All addresses are in the offer: RFC 9725 lets a client send them later, but few servers take that.
static void shim_gathering_changed(GstElement *webrtc, GParamSpec *property, gpointer data) {
    (void)property, (void)data;
    gint state = 0;
    g_object_get(webrtc, "ice-gathering-state", &state, NULL);
    if (state != shim_gathered) return;
    shim_description *own = NULL;
    g_object_get(webrtc, "local-description", &own, NULL);
    if (!own) return;
    gchar *text = gst_sdp_message_as_text(own->sdp);
    shim_tell(webrtc, SHIM_WEBRTC_OFFER, text);
    g_free(text);
    g_boxed_free(g_type_from_name("GstWebRTCSessionDescription"), own);
}

static void shim_connection_changed(GstElement *webrtc, GParamSpec *property, gpointer data) {
    (void)property, (void)data;
    gint state = 0;
    g_object_get(webrtc, "connection-state", &state, NULL);
    if (state == shim_connected) shim_tell(webrtc, SHIM_WEBRTC_CONNECTED, NULL);
    if (state == shim_disconnected || state == shim_failed || state == shim_closed)
        shim_tell(webrtc, SHIM_WEBRTC_LOST, NULL);
}

void shim_webrtc_offer(GstElement *webrtc) {
    g_signal_connect(webrtc, "notify::ice-gathering-state", G_CALLBACK(shim_gathering_changed), NULL);
    g_signal_connect(webrtc, "notify::connection-state", G_CALLBACK(shim_connection_changed), NULL);
    g_signal_emit_by_name(webrtc, "create-offer", NULL, shim_promise(shim_offered, webrtc));
}

gboolean shim_webrtc_answer(GstElement *webrtc, const char *text, gsize length) {
    shim_description answer = {shim_answer_type, NULL};
    if (length < 3 || strncmp(text, "v=0", 3) || gst_sdp_message_new(&answer.sdp) != GST_SDP_OK) return FALSE;
    gboolean is_read = gst_sdp_message_parse_buffer((const guint8 *)text, (guint)length, answer.sdp) == GST_SDP_OK
        && gst_sdp_message_medias_len(answer.sdp) > 0;
    if (is_read)
        g_signal_emit_by_name(
            webrtc, "set-remote-description", &answer, shim_promise(shim_described, webrtc));
    gst_sdp_message_free(answer.sdp);
    return is_read;
}

static GstPadProbeReturn shim_count_packet(GstPad *pad, GstPadProbeInfo *info, gpointer count) {
    (void)pad, (void)info;
    __atomic_add_fetch((guint64 *)count, 1, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
static void shim_watch_source(const GValue *item, gpointer count) {
    GstPad *pad = gst_element_get_static_pad((GstElement *)g_value_get_object(item), "src");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST, shim_count_packet, count, NULL);
    gst_object_unref(pad);
}
guint64 shim_webrtc_received(GstElement *webrtc) {
    // webrtcbin outlives the elements in it.
    guint64 *count = (guint64 *)g_object_get_data((GObject *)webrtc, "shim-received");
    if (!count) {
        count = g_new0(guint64, 1);
        g_object_set_data_full((GObject *)webrtc, "shim-received", count, g_free);
        GstIterator *elements = gst_bin_iterate_all_by_element_factory_name((GstBin *)webrtc, "nicesrc");
        while (gst_iterator_foreach(elements, shim_watch_source, count) == GST_ITERATOR_RESYNC) gst_iterator_resync(elements);
        gst_iterator_free(elements);
    }
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}
