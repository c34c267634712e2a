#include "CStreaming.h"

// A live stream that is watched: what one pipeline receives, until another one shows it. Nothing that is received waits for the
// one that shows it, so what has arrived is known, and what is old can be left out.
//
// Three times: a connection has its own; the stream's time goes on from one connection to the next; and the time at which a
// part of the stream is shown is the running time of the pipeline that shows it. The probes run on the threads of both.

// A part of the stream's time: from `from` on it is shown at the running time `at`, and faster by `rate`.
typedef struct {
    guint64 from, at;
    gdouble rate;
    guint number;
} shim_piece;

typedef struct {
    GstBuffer *buffer;
    GstCaps *caps;
} shim_unit;

typedef struct {
    // In the order of their arrival, encoded.
    GQueue units;
    // Where they come from, only to be compared; NULL: this kind has not arrived from this connection.
    GstPad *source;
    gboolean is_present, waits_for_key, has_jumped;
    // The time of the last one from this connection; 0: none.
    gint64 last;
    // The one that shows them, owned here.
    GstElement *feeder;
    gboolean is_hungry;
    // The end of what was passed on, in the stream's time and in running time; and the number of the piece it was in.
    guint64 passed, shown;
    guint piece;
    // When the last ones arrived: their times in the stream, and the clock.
    guint64 times[512];
    gint64 arrivals[512];
    guint64 arrived;
} shim_lane;

struct shim_pull {
    gint references;
    GMutex lock;
    // The number of the connection, and its time plus this is the stream's time.
    guint connection;
    gboolean is_anchored, is_over;
    gint64 offset, former;
    gint parsers, complete;
    gboolean has_all_parsers;
    shim_lane lanes[2];
    guint64 newest, first;
    gint64 arrival, begin;
    guint64 arrived;
    gsize bytes;
    // The pipeline that shows it; NULL: none.
    GstElement *screen;
    shim_piece pieces[8];
    // How often something was shown too late because it came too late, and because this machine was slow.
    guint count, numbers, late, slow;
    guint64 skipped;
};

enum { SHIM_SOUND, SHIM_PICTURES };
// What arrives at most for one that does not show it.
static const gsize shim_most_bytes = 64 << 20;
// How long a stream is waited for beside the one that has begun, in microseconds.
static const gint64 shim_waiting = 1500000;
// The shortest way from here to the ear or the eye.
static const guint64 shim_cushion = 40 * GST_MSECOND;

shim_pull *shim_pull_new(void) {
    shim_pull *pull = g_new0(shim_pull, 1);
    pull->references = 1;
    g_mutex_init(&pull->lock);
    for (guint place = 0; place < 2; place++) g_queue_init(&pull->lanes[place].units);
    return pull;
}
static shim_pull *shim_pull_ref(shim_pull *pull) {
    g_atomic_int_inc(&pull->references);
    return pull;
}
static void shim_unit_free(gpointer data) {
    shim_unit *unit = (shim_unit *)data;
    gst_buffer_unref(unit->buffer);
    gst_caps_unref(unit->caps);
    g_free(unit);
}
void shim_pull_free(gpointer data) {
    shim_pull *pull = (shim_pull *)data;
    if (!g_atomic_int_dec_and_test(&pull->references)) return;
    for (guint place = 0; place < 2; place++) {
        g_queue_clear_full(&pull->lanes[place].units, shim_unit_free);
        if (pull->lanes[place].feeder) gst_object_unref(pull->lanes[place].feeder);
    }
    g_mutex_clear(&pull->lock);
    g_free(pull);
}
static void shim_pull_left(gpointer data, GClosure *closure) {
    (void)closure;
    shim_pull_free(data);
}

static gboolean shim_is_key(GstBuffer *buffer) { return !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT); }

// MARK: What is kept

static void shim_drop_first(shim_pull *pull, shim_lane *lane) {
    shim_unit *unit = (shim_unit *)g_queue_pop_head(&lane->units);
    pull->bytes -= gst_buffer_get_size(unit->buffer);
    shim_unit_free(unit);
}

// Drops what is not needed to show what is at `time` and later.
static void shim_drop_before(shim_pull *pull, guint64 time) {
    shim_lane *pictures = &pull->lanes[SHIM_PICTURES], *sound = &pull->lanes[SHIM_SOUND];
    GList *key = NULL;
    for (GList *link = pictures->units.head; link; link = link->next) {
        GstBuffer *buffer = ((shim_unit *)link->data)->buffer;
        if (shim_is_key(buffer) && GST_BUFFER_PTS(buffer) <= time) key = link;
    }
    if (key && key != pictures->units.head) {
        while (pictures->units.head != key) {
            pull->skipped++;
            shim_drop_first(pull, pictures);
        }
        shim_unit *unit = (shim_unit *)key->data;
        unit->buffer = gst_buffer_make_writable(unit->buffer);
        GST_BUFFER_FLAG_SET(unit->buffer, GST_BUFFER_FLAG_DISCONT);
    }
    while (sound->units.head
        && GST_BUFFER_PTS(((shim_unit *)sound->units.head->data)->buffer) + GST_SECOND / 5 < time)
        shim_drop_first(pull, sound);
}

// Gives the next one to the one that shows it, or remembers that it waits.
static void shim_feed(shim_pull *pull, shim_lane *lane) {
    shim_unit *unit = (shim_unit *)g_queue_pop_head(&lane->units);
    GstFlowReturn result;
    lane->is_hungry = !unit;
    if (!unit) {
        if (pull->is_over) g_signal_emit_by_name(lane->feeder, "end-of-stream", &result);
        return;
    }
    pull->bytes -= gst_buffer_get_size(unit->buffer);
    GstSample *sample = gst_sample_new(unit->buffer, unit->caps, NULL, NULL);
    g_signal_emit_by_name(lane->feeder, "push-sample", sample, &result);
    gst_sample_unref(sample);
    shim_unit_free(unit);
}

// MARK: What arrives

typedef struct {
    shim_pull *pull;
    guint connection, kind;
} shim_arrival;
static void shim_arrival_free(gpointer data) {
    shim_arrival *arrival = (shim_arrival *)data;
    shim_pull_free(arrival->pull);
    g_free(arrival);
}
static void shim_arrival_left(gpointer data, GClosure *closure) {
    (void)closure;
    shim_arrival_free(data);
}
static shim_arrival *shim_arrival_new(shim_pull *pull, guint connection, guint kind) {
    shim_arrival *arrival = g_new0(shim_arrival, 1);
    *arrival = (shim_arrival){.pull = shim_pull_ref(pull), .connection = connection, .kind = kind};
    return arrival;
}

static gboolean shim_is_far(gint64 time, gint64 other) { return ABS(time - other) > 3 * (gint64)GST_SECOND; }

// The stream's time of the connection's. A sender that has connected again may begin at another time, first with its pictures
// or first with its sound.
static gint64 shim_place(shim_pull *pull, shim_lane *lane, gint64 time) {
    gint64 next = pull->newest ? (gint64)pull->newest + GST_SECOND / 25 : (gint64)GST_SECOND;
    if (!pull->is_anchored) {
        pull->is_anchored = TRUE;
        pull->offset = pull->former = next - time;
    }
    gint64 place = time + pull->offset;
    if (lane->last && shim_is_far(place, lane->last)) {
        gint64 other = time + pull->former;
        if (!shim_is_far(other, lane->last)) return lane->last = other;
        pull->former = pull->offset;
        pull->offset = next - time;
        place = next;
    }
    return lane->last = place;
}

static void shim_take_unit(shim_pull *pull, shim_lane *lane, GstBuffer *buffer, GstCaps *caps, const GstSegment *segment) {
    guint64 time = GST_BUFFER_PTS_IS_VALID(buffer) ? GST_BUFFER_PTS(buffer) : GST_BUFFER_DTS(buffer);
    guint64 running = 0;
    if (!GST_CLOCK_TIME_IS_VALID(time)) return;
    gint sign = gst_segment_to_running_time_full(segment, GST_FORMAT_TIME, time, &running);
    if (sign == 0) return;
    if (lane->waits_for_key && !shim_is_key(buffer)) return;
    lane->waits_for_key = FALSE;
    gint64 place = shim_place(pull, lane, sign > 0 ? (gint64)running : -(gint64)running);
    if (place < 0) return;
    shim_unit *unit = g_new0(shim_unit, 1);
    *unit = (shim_unit){.buffer = gst_buffer_copy(buffer), .caps = gst_caps_ref(caps)};
    gint64 decoded = GST_BUFFER_DTS_IS_VALID(buffer) ? place - (gint64)(time - GST_BUFFER_DTS(buffer)) : -1;
    GST_BUFFER_PTS(unit->buffer) = (guint64)place;
    GST_BUFFER_DTS(unit->buffer) = decoded >= 0 ? (guint64)decoded : GST_CLOCK_TIME_NONE;
    g_queue_push_tail(&lane->units, unit);
    pull->bytes += gst_buffer_get_size(buffer);
    lane->is_present = TRUE;
    pull->arrival = g_get_monotonic_time();
    guint record = lane->arrived++ % G_N_ELEMENTS(lane->times);
    lane->times[record] = (guint64)place;
    lane->arrivals[record] = pull->arrival;
    if (!pull->arrived++) {
        pull->first = (guint64)place;
        pull->begin = pull->arrival;
    }
    pull->newest = MAX(pull->newest, (guint64)place);
    if (pull->bytes > shim_most_bytes) shim_drop_before(pull, pull->newest - MIN(pull->newest, 2 * GST_SECOND));
    while (pull->bytes > shim_most_bytes && lane->units.length > 1) shim_drop_first(pull, lane);
    if (lane->is_hungry) shim_feed(pull, lane);
}

static GstPadProbeReturn shim_unit_arrived(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_arrival *arrival = (shim_arrival *)data;
    shim_pull *pull = arrival->pull;
    shim_lane *lane = &pull->lanes[arrival->kind];
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    GstCaps *caps = gst_pad_get_current_caps(pad);
    const GstSegment *segment = NULL;
    if (event) gst_event_parse_segment(event, &segment);
    g_mutex_lock(&pull->lock);
    if (segment && segment->format == GST_FORMAT_TIME && caps && arrival->connection == pull->connection
        && lane->source == pad) {
        if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
            GstBufferList *list = GST_PAD_PROBE_INFO_BUFFER_LIST(info);
            for (guint place = 0; place < gst_buffer_list_length(list); place++)
                shim_take_unit(pull, lane, gst_buffer_list_get(list, place), caps, segment);
        } else {
            shim_take_unit(pull, lane, GST_PAD_PROBE_INFO_BUFFER(info), caps, segment);
        }
    }
    g_mutex_unlock(&pull->lock);
    if (caps) gst_caps_unref(caps);
    if (event) gst_event_unref(event);
    return GST_PAD_PROBE_OK;
}

// An element of the pipeline whose name is not needed; owned by that.
static GstElement *shim_add(GstElement *bin, const char *kind) {
    GstElement *element = gst_element_factory_make(kind, NULL);
    if (element && !gst_bin_add((GstBin *)bin, element)) return NULL;
    return element;
}

static void shim_stream_added(GstElement *parser, GstPad *pad, gpointer data) {
    shim_arrival *arrival = (shim_arrival *)data;
    shim_pull *pull = arrival->pull;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps) caps = gst_pad_query_caps(pad, NULL);
    const char *name = gst_caps_is_empty(caps) || gst_caps_is_any(caps)
        ? "" : gst_structure_get_name(gst_caps_get_structure(caps, 0));
    gint kind = g_str_has_prefix(name, "audio/") ? SHIM_SOUND
        : g_str_has_prefix(name, "video/") || g_str_has_prefix(name, "image/") ? SHIM_PICTURES : -1;
    GstElement *pipeline = (GstElement *)gst_object_get_parent((GstObject *)parser);
    GstElement *sink = pipeline ? shim_add(pipeline, "fakesink") : NULL;
    if (sink) {
        g_object_set(sink, "sync", FALSE, "async", FALSE, "enable-last-sample", FALSE, NULL);
        gst_element_sync_state_with_parent(sink);
        GstPad *entry = gst_element_get_static_pad(sink, "sink");
        gst_pad_link(pad, entry);
        gst_object_unref(entry);
    }
    g_mutex_lock(&pull->lock);
    if (kind >= 0 && arrival->connection == pull->connection && !pull->lanes[kind].source) {
        shim_lane *lane = &pull->lanes[kind];
        lane->source = pad;
        lane->waits_for_key = kind == SHIM_PICTURES;
        lane->is_present = TRUE;
        gst_pad_add_probe(
            pad, (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST), shim_unit_arrived,
            shim_arrival_new(pull, arrival->connection, (guint)kind), shim_arrival_free);
    }
    g_mutex_unlock(&pull->lock);
    if (pipeline) gst_object_unref(pipeline);
    gst_caps_unref(caps);
}

// A server may change to other streams: then the next ones of their kinds are taken.
static void shim_stream_removed(GstElement *parser, GstPad *pad, gpointer data) {
    (void)parser;
    shim_pull *pull = ((shim_arrival *)data)->pull;
    g_mutex_lock(&pull->lock);
    for (guint place = 0; place < 2; place++)
        if (pull->lanes[place].source == pad) pull->lanes[place].source = NULL;
    g_mutex_unlock(&pull->lock);
}

static void shim_streams_complete(GstElement *parser, gpointer data) {
    (void)parser;
    shim_arrival *arrival = (shim_arrival *)data;
    g_mutex_lock(&arrival->pull->lock);
    if (arrival->connection == arrival->pull->connection) arrival->pull->complete++;
    g_mutex_unlock(&arrival->pull->lock);
}

static void shim_connect(GstElement *element, const char *signal, GCallback call, shim_arrival *like) {
    g_signal_connect_data(
        element, signal, call, shim_arrival_new(like->pull, like->connection, 0), shim_arrival_left, (GConnectFlags)0);
}

static void shim_watch_parser(shim_arrival *arrival, GstElement *parser) {
    g_mutex_lock(&arrival->pull->lock);
    arrival->pull->parsers++;
    g_mutex_unlock(&arrival->pull->lock);
    shim_connect(parser, "pad-added", G_CALLBACK(shim_stream_added), arrival);
    shim_connect(parser, "pad-removed", G_CALLBACK(shim_stream_removed), arrival);
    shim_connect(parser, "no-more-pads", G_CALLBACK(shim_streams_complete), arrival);
}

// Each stream of a server of RTSP comes by itself.
static void shim_session_added(GstElement *source, GstPad *pad, gpointer data) {
    GstElement *pipeline = (GstElement *)gst_object_get_parent((GstObject *)source);
    if (!pipeline) return;
    GstElement *parser = shim_add(pipeline, "parsebin");
    if (parser) {
        shim_watch_parser((shim_arrival *)data, parser);
        GstPad *entry = gst_element_get_static_pad(parser, "sink");
        gst_pad_link(pad, entry);
        gst_object_unref(entry);
        gst_element_sync_state_with_parent(parser);
    }
    gst_object_unref(pipeline);
}
static void shim_sessions_complete(GstElement *source, gpointer data) {
    (void)source;
    shim_arrival *arrival = (shim_arrival *)data;
    g_mutex_lock(&arrival->pull->lock);
    if (arrival->connection == arrival->pull->connection) arrival->pull->has_all_parsers = TRUE;
    g_mutex_unlock(&arrival->pull->lock);
}

void shim_pull_receive(shim_pull *pull, guint connection, GstElement *parser, GstElement *session) {
    g_mutex_lock(&pull->lock);
    pull->connection = connection;
    pull->is_anchored = FALSE;
    pull->parsers = pull->complete = 0;
    pull->has_all_parsers = parser != NULL;
    for (guint place = 0; place < 2; place++) {
        pull->lanes[place].source = NULL;
        pull->lanes[place].last = 0;
    }
    g_mutex_unlock(&pull->lock);
    shim_arrival *arrival = shim_arrival_new(pull, connection, 0);
    if (parser) shim_watch_parser(arrival, parser);
    if (session) {
        shim_connect(session, "pad-added", G_CALLBACK(shim_session_added), arrival);
        shim_connect(session, "no-more-pads", G_CALLBACK(shim_sessions_complete), arrival);
    }
    shim_arrival_free(arrival);
}

void shim_pull_disconnect(shim_pull *pull) {
    g_mutex_lock(&pull->lock);
    pull->connection = 0;
    g_mutex_unlock(&pull->lock);
}

void shim_pull_finish(shim_pull *pull) {
    g_mutex_lock(&pull->lock);
    pull->is_over = TRUE;
    for (guint place = 0; place < 2; place++)
        if (pull->lanes[place].is_hungry) shim_feed(pull, &pull->lanes[place]);
    g_mutex_unlock(&pull->lock);
}

shim_pull_facts shim_pull_read(shim_pull *pull) {
    g_mutex_lock(&pull->lock);
    gboolean has_all = pull->has_all_parsers && pull->parsers > 0 && pull->complete >= pull->parsers;
    gboolean has_begun = TRUE;
    guint count = 0;
    for (guint place = 0; place < 2; place++) {
        shim_lane *lane = &pull->lanes[place];
        count += lane->is_present;
        if (lane->is_present && !lane->last) has_begun = FALSE;
    }
    gint64 now = g_get_monotonic_time();
    // Not every parser says that no other stream follows.
    gboolean is_complete = has_all || count == 2 || (pull->begin && now - pull->begin > shim_waiting);
    shim_pull_facts facts = {
        .is_ready = has_begun && is_complete && count > 0, .streams = count, .arrived = pull->arrived, .newest = pull->newest, .first = pull->first,
        .silence = pull->arrival ? (guint64)(now - pull->arrival) : 0, .time = pull->begin ? (guint64)(now - pull->begin) : 0,
        .skipped = pull->skipped, .late = pull->late, .slow = pull->slow};
    g_mutex_unlock(&pull->lock);
    return facts;
}

// MARK: What is shown

// The running time of the pipeline that shows it; none while it does not play.
static guint64 shim_now(shim_pull *pull) {
    if (!pull->screen || GST_STATE(pull->screen) != GST_STATE_PLAYING) return GST_CLOCK_TIME_NONE;
    return gst_element_get_current_running_time(pull->screen);
}

static void shim_begin_piece(shim_pull *pull, guint64 from, guint64 at, gdouble rate, gboolean is_alone) {
    guint most = sizeof pull->pieces / sizeof *pull->pieces;
    if (is_alone) pull->count = 0;
    if (pull->count == most) {
        memmove(pull->pieces, pull->pieces + 1, (most - 1) * sizeof *pull->pieces);
        pull->count--;
    }
    pull->pieces[pull->count++] = (shim_piece){.from = from, .at = at, .rate = rate, .number = ++pull->numbers};
}

static shim_piece *shim_piece_of(shim_pull *pull, guint64 time) {
    for (guint place = pull->count; place > 0; place--)
        if (pull->pieces[place - 1].from <= time) return &pull->pieces[place - 1];
    return NULL;
}
static guint64 shim_shown_at(shim_piece *piece, guint64 time) {
    return piece->at + (guint64)((gdouble)(time - piece->from) / piece->rate);
}

// Whether what is shown at `shown` had arrived in time: then it is late because this machine was slow.
static gboolean shim_had_arrived(shim_lane *lane, guint64 time, guint64 shown, guint64 now) {
    guint64 count = MIN(lane->arrived, G_N_ELEMENTS(lane->times));
    for (guint64 back = 1; back <= count; back++) {
        guint record = (lane->arrived - back) % G_N_ELEMENTS(lane->times);
        if (lane->times[record] > time) continue;
        guint64 age = (guint64)(g_get_monotonic_time() - lane->arrivals[record]) * 1000;
        return now < shown + age && shown + age - now >= 20 * GST_MSECOND;
    }
    return FALSE;
}

typedef struct {
    shim_pull *pull;
    guint kind;
} shim_exit;
static void shim_exit_free(gpointer data) {
    shim_pull_free(((shim_exit *)data)->pull);
    g_free(data);
}

// What passes on to be shown gets the running time of its piece. What is too old goes; what comes too late moves all that
// follows.
static GstPadProbeReturn shim_unit_leaves(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_exit *exit = (shim_exit *)data;
    shim_pull *pull = exit->pull;
    shim_lane *lane = &pull->lanes[exit->kind];
    // They are about running times that the decoder does not know.
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_UPSTREAM)
        return GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) == GST_EVENT_QOS ? GST_PAD_PROBE_DROP : GST_PAD_PROBE_OK;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    if (!GST_BUFFER_PTS_IS_VALID(buffer)) return GST_PAD_PROBE_DROP;
    guint64 time = GST_BUFFER_PTS(buffer);
    guint64 length = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : 0;
    GstEvent *event = NULL;
    g_mutex_lock(&pull->lock);
    shim_piece *piece = shim_piece_of(pull, time);
    guint64 now = shim_now(pull);
    if (piece && GST_CLOCK_TIME_IS_VALID(now)) {
        guint64 shown = shim_shown_at(piece, time);
        // Sound that is late would be cut off. A picture may be late by less than the sound of a busy machine.
        guint64 patience = exit->kind == SHIM_SOUND ? 0
            : pull->lanes[SHIM_SOUND].is_present ? GST_SECOND / 2 : 20 * GST_MSECOND;
        if (shown + patience < now) {
            if (shim_had_arrived(lane, time, shown, now)) pull->slow++;
            else pull->late++;
            shim_begin_piece(pull, time, now + shim_cushion, piece->rate, TRUE);
            piece = shim_piece_of(pull, time);
        }
    }
    if (piece) {
        if (lane->piece != piece->number) {
            lane->piece = piece->number;
            GstSegment segment;
            gst_segment_init(&segment, GST_FORMAT_TIME);
            segment.rate = piece->rate;
            segment.start = segment.time = piece->from;
            segment.position = time;
            segment.base = piece->at;
            event = gst_event_new_segment(&segment);
        }
        lane->passed = time + length;
        lane->shown = shim_shown_at(piece, time + length);
    } else if (exit->kind == SHIM_PICTURES) {
        pull->skipped++;
    }
    g_mutex_unlock(&pull->lock);
    if (!piece) return GST_PAD_PROBE_DROP;
    if (event) {
        gst_pad_push_event(pad, event);
        buffer = gst_buffer_make_writable(buffer);
        GST_BUFFER_FLAG_SET(buffer, GST_BUFFER_FLAG_DISCONT);
        info->data = buffer;
    }
    return GST_PAD_PROBE_OK;
}

static void shim_wants_more(GstElement *feeder, guint size, gpointer data) {
    (void)size;
    shim_pull *pull = (shim_pull *)data;
    g_mutex_lock(&pull->lock);
    for (guint place = 0; place < 2; place++)
        if (pull->lanes[place].feeder == feeder) shim_feed(pull, &pull->lanes[place]);
    g_mutex_unlock(&pull->lock);
}

// A decoder that works on several pictures at once keeps each of them for longer.
static void shim_decoder_added(GstBin *decoder, GstBin *bin, GstElement *element, gpointer data) {
    (void)decoder, (void)bin, (void)data;
    GParamSpec *property = g_object_class_find_property(G_OBJECT_GET_CLASS(element), "thread-type");
    // In slices.
    if (property) gst_util_set_object_arg((GObject *)element, "thread-type", "slice");
}

static void shim_decoded(GstElement *decoder, GstPad *pad, gpointer data) {
    (void)data;
    GstElement *bin = (GstElement *)gst_object_get_parent((GstObject *)decoder);
    if (!bin) return;
    GstPad *way = gst_ghost_pad_new(NULL, pad);
    gst_pad_set_active(way, TRUE);
    gst_element_add_pad(bin, way);
    gst_object_unref(bin);
}
typedef struct {
    gint references, open;
    GstElement *bin;
} shim_openings;
static void shim_openings_left(gpointer data, GClosure *closure) {
    (void)closure;
    if (g_atomic_int_dec_and_test(&((shim_openings *)data)->references)) g_free(data);
}
static void shim_decoder_complete(GstElement *decoder, gpointer data) {
    (void)decoder;
    shim_openings *openings = (shim_openings *)data;
    if (g_atomic_int_dec_and_test(&openings->open)) gst_element_no_more_pads(openings->bin);
}

static void shim_watch_exit(shim_pull *pull, guint kind, GstElement *queue) {
    GstPad *pad = gst_element_get_static_pad(queue, "src");
    shim_exit *exit = g_new0(shim_exit, 1);
    *exit = (shim_exit){.pull = shim_pull_ref(pull), .kind = kind};
    gst_pad_add_probe(
        pad, (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_UPSTREAM), shim_unit_leaves, exit,
        shim_exit_free);
    gst_object_unref(pad);
}

gboolean shim_pull_show(shim_pull *pull, GstElement *bin, GstElement *sound, GstElement *pictures, guint64 delay) {
    shim_openings *openings = g_new0(shim_openings, 1);
    openings->bin = bin;
    gboolean is_whole = TRUE;
    for (guint kind = 0; kind < 2; kind++) openings->open += pull->lanes[kind].is_present;
    openings->references = 1;
    for (guint kind = 0; is_whole && kind < 2; kind++) {
        shim_lane *lane = &pull->lanes[kind];
        if (!lane->is_present) continue;
        GstElement *feeder = shim_add(bin, "appsrc"), *decoder = shim_add(bin, "decodebin");
        if (!feeder || !decoder) {
            is_whole = FALSE;
            break;
        }
        gst_util_set_object_arg((GObject *)feeder, "format", "time");
        g_signal_connect_data(
            feeder, "need-data", G_CALLBACK(shim_wants_more), shim_pull_ref(pull), shim_pull_left, (GConnectFlags)0);
        g_signal_connect(decoder, "deep-element-added", G_CALLBACK(shim_decoder_added), NULL);
        g_signal_connect(decoder, "pad-added", G_CALLBACK(shim_decoded), NULL);
        g_atomic_int_inc(&openings->references);
        g_signal_connect_data(
            decoder, "no-more-pads", G_CALLBACK(shim_decoder_complete), openings, shim_openings_left, (GConnectFlags)0);
        is_whole = gst_element_link(feeder, decoder);
        g_mutex_lock(&pull->lock);
        if (lane->feeder) gst_object_unref(lane->feeder);
        lane->feeder = (GstElement *)gst_object_ref(feeder);
        lane->is_hungry = FALSE;
        lane->passed = lane->shown = 0;
        lane->piece = 0;
        g_mutex_unlock(&pull->lock);
    }
    shim_openings_left(openings, NULL);
    shim_watch_exit(pull, SHIM_SOUND, sound);
    shim_watch_exit(pull, SHIM_PICTURES, pictures);
    g_mutex_lock(&pull->lock);
    guint64 from = pull->newest - MIN(pull->newest, delay);
    shim_drop_before(pull, from);
    // It begins at a picture that can be decoded.
    shim_lane *shown = &pull->lanes[SHIM_PICTURES];
    while (shown->units.head && !shim_is_key(((shim_unit *)shown->units.head->data)->buffer)) shim_drop_first(pull, shown);
    shown->waits_for_key = !shown->units.head;
    shim_unit *first = (shim_unit *)g_queue_peek_head(&pull->lanes[SHIM_PICTURES].units);
    if (first) from = MAX(from, GST_BUFFER_PTS(first->buffer));
    shim_begin_piece(pull, from, 0, 1, TRUE);
    pull->late = pull->slow = 0;
    pull->skipped = 0;
    g_mutex_unlock(&pull->lock);
    return is_whole;
}

void shim_pull_set_screen(shim_pull *pull, GstElement *pipeline) {
    g_mutex_lock(&pull->lock);
    pull->screen = pipeline;
    g_mutex_unlock(&pull->lock);
}

void shim_pull_leave(shim_pull *pull, GstElement *pipeline) {
    g_mutex_lock(&pull->lock);
    if (pull->screen == pipeline) {
        pull->screen = NULL;
        for (guint place = 0; place < 2; place++) {
            shim_lane *lane = &pull->lanes[place];
            if (lane->feeder) gst_object_unref(lane->feeder);
            lane->feeder = NULL;
            lane->is_hungry = FALSE;
        }
    }
    g_mutex_unlock(&pull->lock);
}

gboolean shim_pull_skip(shim_pull *pull, guint64 delay) {
    g_mutex_lock(&pull->lock);
    guint64 now = shim_now(pull), passed = 0, shown = 0;
    for (guint place = 0; place < 2; place++) {
        passed = MAX(passed, pull->lanes[place].passed);
        shown = MAX(shown, pull->lanes[place].shown);
    }
    gboolean skips = FALSE;
    if (GST_CLOCK_TIME_IS_VALID(now)) {
        // What was passed on is still shown; the rest follows it.
        guint64 at = MAX(shown, now);
        guint64 silence = (guint64)(g_get_monotonic_time() - pull->arrival) * 1000;
        guint64 edge = pull->newest + silence + (at - now);
        guint64 from = MIN(edge - MIN(edge, delay), pull->newest);
        skips = from > passed;
        if (skips) {
            shim_drop_before(pull, from);
            shim_begin_piece(pull, from, at, 1, TRUE);
        }
    }
    g_mutex_unlock(&pull->lock);
    return skips;
}

void shim_pull_set_rate(shim_pull *pull, gdouble rate) {
    g_mutex_lock(&pull->lock);
    guint64 from = 0;
    for (guint place = 0; place < 2; place++) from = MAX(from, pull->lanes[place].passed);
    shim_piece *piece = shim_piece_of(pull, from);
    if (piece && piece->rate != rate) shim_begin_piece(pull, from, shim_shown_at(piece, from), rate, FALSE);
    g_mutex_unlock(&pull->lock);
}
