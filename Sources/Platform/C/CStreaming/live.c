#include "CStreaming.h"

// What passes from an encoder into one of its users: a connection to a server, or a file. The encoder never waits for a user:
// what a slow one cannot take is dropped here, whole pictures up to the next key frame, so that what it gets can be decoded.
// Its first picture is a key frame, and time begins with that. The probes run on the threads of the encoders.
typedef struct {
    GstSegment segment;
    gboolean has_segment;
    GstElement *queue;
} shim_entrance;

struct shim_gate {
    gint references;
    GMutex lock;
    GstElement *pipeline;
    guint id;
    guint64 limit;
    guint needed;
    shim_entrance pictures, sound;
    gboolean is_open, waits_for_key;
    // Running time of its first key frame, and of the last request for one.
    guint64 start, asked;
    guint64 passed, dropped, arrived, bytes;
};

shim_gate *shim_gate_new(GstElement *pipeline, guint id, guint64 limit, guint needed) {
    shim_gate *gate = g_new0(shim_gate, 1);
    gate->references = 1;
    g_mutex_init(&gate->lock);
    gate->pipeline = pipeline;
    gate->id = id;
    gate->limit = limit;
    gate->needed = needed;
    return gate;
}
static shim_gate *shim_gate_ref(shim_gate *gate) {
    g_atomic_int_inc(&gate->references);
    return gate;
}
void shim_gate_free(gpointer data) {
    shim_gate *gate = (shim_gate *)data;
    if (!g_atomic_int_dec_and_test(&gate->references)) return;
    if (gate->pictures.queue) gst_object_unref(gate->pictures.queue);
    if (gate->sound.queue) gst_object_unref(gate->sound.queue);
    g_mutex_clear(&gate->lock);
    g_free(gate);
}

static guint64 shim_level(GstElement *queue) {
    guint64 time = 0;
    if (queue) g_object_get(queue, "current-level-time", &time, NULL);
    return time;
}

// Only after the first picture: until then GStreamer takes x264enc's first time, 1000 hours, for the time of the last key
// frame, and ignores all requests with a time from then on.
static GstEvent *shim_key_unit_request(void) {
    return gst_event_new_custom(
        GST_EVENT_CUSTOM_UPSTREAM,
        gst_structure_new(
            "GstForceKeyUnit", "running-time", GST_TYPE_CLOCK_TIME, GST_CLOCK_TIME_NONE, "all-headers", G_TYPE_BOOLEAN,
            TRUE, "count", G_TYPE_UINT, 0, NULL));
}

// Each entrance gets one segment that begins at 0; the times of its buffers are those since the first key frame.
static GstPadProbeReturn shim_gate_event(shim_entrance *entrance, GstPadProbeInfo *info) {
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
    // They belong to times that this user does not know.
    if (GST_EVENT_TYPE(event) == GST_EVENT_GAP) return GST_PAD_PROBE_DROP;
    if (GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return GST_PAD_PROBE_OK;
    gst_event_copy_segment(event, &entrance->segment);
    entrance->has_segment = entrance->segment.format == GST_FORMAT_TIME;
    GstSegment plain;
    gst_segment_init(&plain, GST_FORMAT_TIME);
    GstEvent *other = gst_event_new_segment(&plain);
    gst_event_set_seqnum(other, gst_event_get_seqnum(event));
    gst_event_unref(event);
    info->data = other;
    return GST_PAD_PROBE_OK;
}

static guint64 shim_running(shim_entrance *entrance, guint64 time) {
    if (!entrance->has_segment || !GST_CLOCK_TIME_IS_VALID(time)) return GST_CLOCK_TIME_NONE;
    return gst_segment_to_running_time(&entrance->segment, GST_FORMAT_TIME, time);
}

static void shim_retime(shim_gate *gate, shim_entrance *entrance, GstPadProbeInfo *info) {
    GstBuffer *buffer = gst_buffer_make_writable(GST_PAD_PROBE_INFO_BUFFER(info));
    guint64 shown = shim_running(entrance, GST_BUFFER_PTS(buffer));
    guint64 decoded = shim_running(entrance, GST_BUFFER_DTS(buffer));
    GST_BUFFER_PTS(buffer) = GST_CLOCK_TIME_IS_VALID(shown) && shown >= gate->start ? shown - gate->start : 0;
    if (GST_BUFFER_DTS_IS_VALID(buffer))
        GST_BUFFER_DTS(buffer) = GST_CLOCK_TIME_IS_VALID(decoded) && decoded >= gate->start ? decoded - gate->start : 0;
    info->data = buffer;
}

// Whether to ask for a key frame: at most twice in a second.
static gboolean shim_may_ask(shim_gate *gate, guint64 now) {
    if (gate->asked != 0 && now < gate->asked + GST_SECOND / 2) return FALSE;
    gate->asked = now;
    return TRUE;
}

static GstPadProbeReturn shim_gate_pictures(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_gate *gate = (shim_gate *)data;
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) return shim_gate_event(&gate->pictures, info);
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    gboolean is_key = !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT);
    guint64 time = GST_BUFFER_PTS_IS_VALID(buffer) ? GST_BUFFER_PTS(buffer) : GST_BUFFER_DTS(buffer);
    guint64 now = shim_running(&gate->pictures, time);
    guint64 level = shim_level(gate->pictures.queue);
    gboolean passes = TRUE, asks = FALSE;
    g_mutex_lock(&gate->lock);
    if (!GST_CLOCK_TIME_IS_VALID(now)) {
        passes = FALSE;
    } else if (!gate->is_open) {
        passes = is_key;
        asks = !is_key && shim_may_ask(gate, now);
        if (is_key) {
            gate->start = now;
            gate->is_open = TRUE;
        }
    } else if (gate->waits_for_key) {
        gboolean has_room = level < gate->limit / 2;
        passes = has_room && is_key;
        gate->waits_for_key = !passes;
        asks = has_room && !is_key && shim_may_ask(gate, now);
    } else if (level > gate->limit) {
        passes = FALSE;
        gate->waits_for_key = TRUE;
    }
    if (passes) gate->passed++;
    else if (gate->is_open) gate->dropped++;
    gboolean is_first = passes && gate->passed == 1 && gate->needed == 0;
    g_mutex_unlock(&gate->lock);
    if (asks) gst_pad_push_event(pad, shim_key_unit_request());
    if (is_first)
        gst_element_post_message(
            gate->pipeline,
            gst_message_new_application(
                (GstObject *)gate->pipeline, gst_structure_new("gate-taken", "id", G_TYPE_UINT, gate->id, NULL)));
    if (!passes) return GST_PAD_PROBE_DROP;
    shim_retime(gate, &gate->pictures, info);
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn shim_gate_sound(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_gate *gate = (shim_gate *)data;
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) return shim_gate_event(&gate->sound, info);
    guint64 now = shim_running(&gate->sound, GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info)));
    guint64 level = shim_level(gate->sound.queue);
    g_mutex_lock(&gate->lock);
    gboolean passes = GST_CLOCK_TIME_IS_VALID(now) && gate->is_open && now >= gate->start && level <= gate->limit;
    g_mutex_unlock(&gate->lock);
    if (!passes) return GST_PAD_PROBE_DROP;
    shim_retime(gate, &gate->sound, info);
    return GST_PAD_PROBE_OK;
}

// What collects pictures and sound after an entrance waits for both: neither ever stops, and with a time limit it would mix
// up their order, because their times are not those of the clock.
static GstPadProbeReturn shim_answer_latency(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    GstQuery *query = GST_PAD_PROBE_INFO_QUERY(info);
    if (GST_QUERY_TYPE(query) != GST_QUERY_LATENCY) return GST_PAD_PROBE_OK;
    gst_query_set_latency(query, FALSE, 0, GST_CLOCK_TIME_NONE);
    return GST_PAD_PROBE_HANDLED;
}

void shim_gate_add(shim_gate *gate, GstPad *entry, GstElement *queue, gboolean is_sound) {
    shim_entrance *entrance = is_sound ? &gate->sound : &gate->pictures;
    entrance->queue = gst_object_ref(queue);
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM);
    gst_pad_add_probe(
        entry, type, is_sound ? shim_gate_sound : shim_gate_pictures, shim_gate_ref(gate), shim_gate_free);
    GstPadProbeType questions = (GstPadProbeType)(GST_PAD_PROBE_TYPE_QUERY_UPSTREAM | GST_PAD_PROBE_TYPE_PUSH);
    gst_pad_add_probe(entry, questions, shim_answer_latency, NULL, NULL);
}

// At the element that sends. When a buffer comes, the one before has been taken.
static void shim_gate_count(shim_gate *gate, gsize size) {
    g_mutex_lock(&gate->lock);
    gate->arrived++;
    gate->bytes += size;
    gboolean is_taken = gate->needed > 0 && gate->arrived == gate->needed;
    g_mutex_unlock(&gate->lock);
    if (!is_taken) return;
    GstStructure *structure = gst_structure_new("gate-taken", "id", G_TYPE_UINT, gate->id, NULL);
    gst_element_post_message(gate->pipeline, gst_message_new_application((GstObject *)gate->pipeline, structure));
}
static GstPadProbeReturn shim_gate_arrival(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    gsize size = info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST
        ? gst_buffer_list_calculate_size(GST_PAD_PROBE_INFO_BUFFER_LIST(info))
        : gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info));
    shim_gate_count((shim_gate *)data, size);
    return GST_PAD_PROBE_OK;
}
void shim_gate_watch(shim_gate *gate, GstPad *sink) {
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    gst_pad_add_probe(sink, type, shim_gate_arrival, shim_gate_ref(gate), shim_gate_free);
}

shim_gate_facts shim_gate_read(shim_gate *gate) {
    guint64 pictures = shim_level(gate->pictures.queue), sound = shim_level(gate->sound.queue);
    g_mutex_lock(&gate->lock);
    shim_gate_facts facts = {gate->passed, gate->dropped, gate->arrived, gate->bytes, MAX(pictures, sound)};
    g_mutex_unlock(&gate->lock);
    return facts;
}

guint shim_taken_gate(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    guint id = 0;
    if (structure && gst_structure_has_name(structure, "gate-taken")) gst_structure_get_uint(structure, "id", &id);
    return id;
}

GstElement *shim_ended_bin(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    if (!structure || !gst_structure_has_name(structure, "GstBinForwarded")) return NULL;
    GstMessage *inner = NULL;
    gst_structure_get(structure, "message", GST_TYPE_MESSAGE, &inner, NULL);
    if (!inner) return NULL;
    gboolean is_end = GST_MESSAGE_TYPE(inner) == GST_MESSAGE_EOS;
    gst_message_unref(inner);
    return is_end ? (GstElement *)GST_MESSAGE_SRC(message) : NULL;
}

// The end of the pictures, or of the sound, behind an encoder.
static GstPadProbeReturn shim_end_passes(GstPad *pad, GstPadProbeInfo *info, gpointer pipeline) {
    (void)pad;
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_EOS)
        gst_element_post_message(
            (GstElement *)pipeline,
            gst_message_new_application((GstObject *)pipeline, gst_structure_new_empty("stream-ended")));
    return GST_PAD_PROBE_OK;
}
void shim_tell_end(GstPad *pad, GstElement *pipeline) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, shim_end_passes, pipeline, NULL);
}
gboolean shim_stream_ended(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "stream-ended");
}

void shim_ask_for_key(GstPad *pad, guint64 stamp, guint64 time, guint count) {
    GstStructure *structure = gst_structure_new(
        "GstForceKeyUnit", "timestamp", GST_TYPE_CLOCK_TIME, stamp, "stream-time", GST_TYPE_CLOCK_TIME, stamp,
        "running-time", GST_TYPE_CLOCK_TIME, time, "all-headers", G_TYPE_BOOLEAN, TRUE, "count", G_TYPE_UINT, count, NULL);
    gst_pad_push_event(pad, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, structure));
}

// Key frames at fixed distances, whatever the rate of the pictures is. The first picture is one without a request: see
// shim_key_unit_request().
typedef struct {
    guint64 interval, next;
    guint count;
    GstSegment segment;
} shim_metronome;

static GstPadProbeReturn shim_beat(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_metronome *metronome = (shim_metronome *)data;
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
        GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
        if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) gst_event_copy_segment(event, &metronome->segment);
        return GST_PAD_PROBE_OK;
    }
    guint64 time = GST_BUFFER_PTS(GST_PAD_PROBE_INFO_BUFFER(info));
    guint64 now = metronome->segment.format == GST_FORMAT_TIME && GST_CLOCK_TIME_IS_VALID(time)
        ? gst_segment_to_running_time(&metronome->segment, GST_FORMAT_TIME, time) : GST_CLOCK_TIME_NONE;
    if (!GST_CLOCK_TIME_IS_VALID(now) || now < metronome->next) return GST_PAD_PROBE_OK;
    gboolean is_first = !metronome->next;
    metronome->next = now - now % metronome->interval + metronome->interval;
    // It is a key frame anyway: see shim_key_unit_request().
    if (is_first) return GST_PAD_PROBE_OK;
    shim_ask_for_key(pad, time, now, metronome->count++);
    return GST_PAD_PROBE_OK;
}
void shim_beat_keys(GstPad *pad, guint64 interval) {
    shim_metronome *metronome = g_new0(shim_metronome, 1);
    metronome->interval = interval;
    gst_segment_init(&metronome->segment, GST_FORMAT_UNDEFINED);
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM);
    gst_pad_add_probe(pad, type, shim_beat, metronome, g_free);
}

static GstPadProbeReturn shim_count_one(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    (void)info;
    __atomic_add_fetch((guint64 *)data, 1, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
void shim_count_buffers(GstPad *pad, guint64 *count) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_count_one, count, NULL);
}
guint64 shim_counted_buffers(guint64 *count) { return __atomic_load_n(count, __ATOMIC_RELAXED); }
