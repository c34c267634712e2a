#include "CStreaming.h"

// Gives the pictures that one pipeline shows to another one, all in one size. Runs on GStreamer's threads.
struct shim_relay {
    gint references;
    GMutex lock;
    gint width, height;
    // An appsrc, owned here; NULL: nobody gets them.
    GstElement *receiver;
    // The newest one, in the size of the relay.
    GstBuffer *last;
    gint64 given;
    // The number of the newest film, and of that whose picture is the last.
    guint films, shown;
};

typedef struct {
    shim_relay *relay;
    guint film;
} shim_relayed;

void shim_relay_free(gpointer data) {
    shim_relay *relay = (shim_relay *)data;
    if (!g_atomic_int_dec_and_test(&relay->references)) return;
    if (relay->receiver) gst_object_unref(relay->receiver);
    if (relay->last) gst_buffer_unref(relay->last);
    g_mutex_clear(&relay->lock);
    g_free(relay);
}
static void shim_relayed_free(gpointer data, GClosure *closure) {
    (void)closure;
    shim_relay_free(((shim_relayed *)data)->relay);
    g_free(data);
}

// With the lock. An appsrc that leaks does not wait.
static void shim_relay_give(shim_relay *relay) {
    if (!relay->receiver || !relay->last) return;
    GstBuffer *buffer = gst_buffer_copy(relay->last);
    // It gets the time at which it is sent.
    GST_BUFFER_PTS(buffer) = GST_BUFFER_DTS(buffer) = GST_BUFFER_DURATION(buffer) = GST_CLOCK_TIME_NONE;
    GstFlowReturn result = GST_FLOW_OK;
    g_signal_emit_by_name(relay->receiver, "push-buffer", buffer, &result);
    gst_buffer_unref(buffer);
    relay->given = g_get_monotonic_time();
}

// Two bytes for each pixel, in pairs of pixels.
static void shim_relay_paint_black(guint8 *bytes, gsize count) {
    for (gsize place = 0; place + 1 < count; place += 2) bytes[place] = 16, bytes[place + 1] = 128;
}
// In the middle; what is outside is cut off.
static GstBuffer *shim_relay_centred(const shim_relay *relay, GstBuffer *picture, gint width, gint height) {
    gsize row = (gsize)relay->width * 2;
    gint left = (relay->width - width) / 4 * 2, top = (relay->height - height) / 2;
    gint columns = MIN(width, relay->width), rows = MIN(height, relay->height);
    GstBuffer *whole = gst_buffer_new_allocate(NULL, row * (gsize)relay->height, NULL);
    GstMapInfo from, to;
    if (!whole) return NULL;
    if (!gst_buffer_map(picture, &from, GST_MAP_READ)) {
        gst_buffer_unref(whole);
        return NULL;
    }
    gst_buffer_map(whole, &to, GST_MAP_WRITE);
    if (columns < relay->width || rows < relay->height) shim_relay_paint_black(to.data, to.size);
    const guint8 *source = from.data + (gsize)MAX(-top, 0) * (gsize)width * 2 + (gsize)MAX(-left, 0) * 2;
    guint8 *target = to.data + (gsize)MAX(top, 0) * row + (gsize)MAX(left, 0) * 2;
    for (gint line = 0; line < rows; line++)
        memcpy(target + (gsize)line * row, source + (gsize)line * (gsize)width * 2, (gsize)columns * 2);
    gst_buffer_unmap(whole, &to);
    gst_buffer_unmap(picture, &from);
    return whole;
}

static void shim_relay_picture(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data) {
    (void)sink;
    shim_relayed *place = (shim_relayed *)data;
    shim_relay *relay = place->relay;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps) return;
    const GstStructure *format = gst_caps_get_structure(caps, 0);
    gint width = 0, height = 0;
    gst_structure_get_int(format, "width", &width);
    gst_structure_get_int(format, "height", &height);
    gst_caps_unref(caps);
    // Rows of an even width have no rest.
    if (width <= 0 || width % 2 || height <= 0 || (gsize)width * (gsize)height * 2 > gst_buffer_get_size(buffer)) return;
    g_mutex_lock(&relay->lock);
    if (relay->width > 0 && place->film >= relay->shown) {
        gboolean is_whole = width == relay->width && height == relay->height;
        GstBuffer *picture = is_whole ? gst_buffer_ref(buffer) : shim_relay_centred(relay, buffer, width, height);
        if (picture) {
            if (relay->last) gst_buffer_unref(relay->last);
            relay->last = picture;
            relay->shown = place->film;
            shim_relay_give(relay);
        }
    }
    g_mutex_unlock(&relay->lock);
}

shim_relay *shim_relay_new(void) {
    shim_relay *relay = g_new0(shim_relay, 1);
    relay->references = 1;
    g_mutex_init(&relay->lock);
    return relay;
}
void shim_relay_take_from(shim_relay *relay, GstElement *sink) {
    g_mutex_lock(&relay->lock);
    guint film = ++relay->films;
    g_mutex_unlock(&relay->lock);
    // The first one of a pause or a seek, and those that play.
    static const char *const signals[] = {"preroll-handoff", "handoff"};
    for (int number = 0; number < 2; number++) {
        shim_relayed *place = g_new(shim_relayed, 1);
        *place = (shim_relayed){.relay = relay, .film = film};
        g_atomic_int_inc(&relay->references);
        g_signal_connect_data(
            sink, signals[number], G_CALLBACK(shim_relay_picture), place, shim_relayed_free, (GConnectFlags)0);
    }
}
void shim_relay_set_size(shim_relay *relay, gint width, gint height) {
    g_mutex_lock(&relay->lock);
    relay->width = width;
    relay->height = height;
    if (relay->last) gst_buffer_unref(relay->last);
    relay->last = NULL;
    g_mutex_unlock(&relay->lock);
}
void shim_relay_give_to(shim_relay *relay, GstElement *receiver) {
    g_mutex_lock(&relay->lock);
    if (relay->receiver) gst_object_unref(relay->receiver);
    relay->receiver = receiver ? (GstElement *)gst_object_ref(receiver) : NULL;
    shim_relay_give(relay);
    g_mutex_unlock(&relay->lock);
}
void shim_relay_repeat(shim_relay *relay, gint64 silence) {
    g_mutex_lock(&relay->lock);
    if (g_get_monotonic_time() - relay->given >= silence) shim_relay_give(relay);
    g_mutex_unlock(&relay->lock);
}

// MARK: Pipelines that may have to wait for a server

struct shim_far {
    gint references;
    GstElement *pipeline;
    GMutex lock;
    gint state;
    guint count;
};

static void shim_far_unref(gpointer data) {
    shim_far *far = (shim_far *)data;
    if (!g_atomic_int_dec_and_test(&far->references)) return;
    g_mutex_clear(&far->lock);
    g_free(far);
}
static void shim_far_reach(GstElement *pipeline, gpointer data) {
    shim_far *far = (shim_far *)data;
    // Of two that run at once, each sets the newest one.
    g_mutex_lock(&far->lock);
    gst_element_set_state(pipeline, (GstState)g_atomic_int_get(&far->state));
    g_mutex_unlock(&far->lock);
}
static void shim_far_want(shim_far *far, GstState state) {
    g_atomic_int_set(&far->state, (gint)state);
    g_atomic_int_inc(&far->references);
    // It keeps the pipeline until that is done.
    gst_element_call_async(far->pipeline, shim_far_reach, far, shim_far_unref);
}
static GstPadProbeReturn shim_far_passed(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)info;
    __atomic_add_fetch(&((shim_far *)data)->count, 1, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}

shim_far *shim_far_new(GstElement *pipeline, GstElement *end) {
    shim_far *far = g_new0(shim_far, 1);
    far->references = 1;
    far->pipeline = pipeline;
    g_mutex_init(&far->lock);
    GstPad *pad = gst_element_get_static_pad(end, "sink");
    if (pad) {
        g_atomic_int_inc(&far->references);
        gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_far_passed, far, shim_far_unref);
        gst_object_unref(pad);
    }
    return far;
}
void shim_far_play(shim_far *far) { shim_far_want(far, GST_STATE_PLAYING); }
void shim_far_free(gpointer data) {
    shim_far *far = (shim_far *)data;
    shim_far_want(far, GST_STATE_NULL);
    shim_far_unref(far);
}
guint shim_far_count(shim_far *far) { return __atomic_load_n(&far->count, __ATOMIC_RELAXED); }
