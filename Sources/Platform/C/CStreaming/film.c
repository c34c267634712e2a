#include "film.h"

// The streams of a film. The outputs of a decoder appear on its own threads.
typedef struct {
    GstPad *pad;
    shim_track_kind kind;
    // The number of the probe that drops all data; 0: it is linked to its queue.
    gulong unused;
    // Its subtitles.
    gint list;
} shim_stream;

struct shim_film {
    gint references;
    GMutex lock;
    GstElement *sound, *pictures;
    GArray *streams;
    // Which of the tracks with sound is heard.
    gint heard;
    shim_words *words;
    // The number of the newest request for earlier subtitles.
    gint requests;
    // The type of all its data, once its streams are known.
    char *type;
};

shim_film *shim_film_ref(shim_film *film) {
    g_atomic_int_inc(&film->references);
    return film;
}
void shim_film_free(shim_film *film) {
    if (!g_atomic_int_dec_and_test(&film->references)) return;
    for (guint place = 0; place < film->streams->len; place++)
        gst_object_unref(g_array_index(film->streams, shim_stream, place).pad);
    g_array_free(film->streams, TRUE);
    gst_object_unref(film->sound);
    gst_object_unref(film->pictures);
    shim_words_free(film->words);
    g_free(film->type);
    g_mutex_clear(&film->lock);
    g_free(film);
}
static void shim_film_left(gpointer data, GClosure *closure) {
    (void)closure;
    shim_film_free((shim_film *)data);
}

// A stream that nobody uses flows, too: otherwise it would stop the others, and a change to it would take long. Its events
// are kept: one that is dropped would be sent again with each of the following.
static GstPadProbeReturn shim_drop(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)info, (void)data;
    return GST_PAD_PROBE_DROP;
}
static const GstPadProbeType shim_all_data =
    (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);

static gboolean shim_link(GstPad *pad, GstElement *queue) {
    GstPad *entry = gst_element_get_static_pad(queue, "sink");
    gboolean done = entry && !gst_pad_is_linked(entry) && gst_pad_link(pad, entry) == GST_PAD_LINK_OK;
    if (entry) gst_object_unref(entry);
    return done;
}

static const char *shim_caps_name(GstCaps *caps) {
    return gst_caps_is_empty(caps) || gst_caps_is_any(caps) ? "" : gst_structure_get_name(gst_caps_get_structure(caps, 0));
}
static shim_track_kind shim_kind(GstCaps *caps) {
    const char *name = shim_caps_name(caps);
    return g_str_has_prefix(name, "audio/") ? SHIM_TRACK_AUDIO
        : g_str_has_prefix(name, "video/") || g_str_has_prefix(name, "image/") ? SHIM_TRACK_VIDEO
        : g_str_has_prefix(name, "text/") ? SHIM_TRACK_SUBTITLE : SHIM_TRACK_OTHER;
}

static guint shim_count(shim_film *film, shim_track_kind kind) {
    guint count = 0;
    for (guint place = 0; place < film->streams->len; place++)
        count += g_array_index(film->streams, shim_stream, place).kind == kind;
    return count;
}

static void shim_output_added(GstElement *source, GstPad *pad, gpointer data) {
    (void)source;
    shim_film *film = (shim_film *)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps) caps = gst_pad_query_caps(pad, NULL);
    shim_stream stream = {.pad = (GstPad *)gst_object_ref(pad), .kind = shim_kind(caps), .list = -1};
    g_mutex_lock(&film->lock);
    gint number = (gint)shim_count(film, stream.kind);
    gboolean is_linked = stream.kind == SHIM_TRACK_AUDIO ? number == film->heard && shim_link(pad, film->sound)
        : stream.kind == SHIM_TRACK_VIDEO && number == 0 && shim_link(pad, film->pictures);
    if (stream.kind == SHIM_TRACK_SUBTITLE)
        stream.list = shim_words_collect(film->words, pad);
    else if (!is_linked)
        stream.unused = gst_pad_add_probe(pad, shim_all_data, shim_drop, NULL, NULL);
    g_array_append_val(film->streams, stream);
    g_mutex_unlock(&film->lock);
    gst_caps_unref(caps);
}

// The track with sound of that number among them.
static shim_stream *shim_sound(shim_film *film, gint number) {
    for (guint place = 0; place < film->streams->len; place++) {
        shim_stream *stream = &g_array_index(film->streams, shim_stream, place);
        if (stream->kind == SHIM_TRACK_AUDIO && number-- == 0) return stream;
    }
    return NULL;
}

// The type that the decoder of a source found first: that of all data. The caller frees it; NULL: it looked for none.
static char *shim_whole_type(GstElement *source) {
    char *type = NULL;
    GstIterator *finders = gst_bin_iterate_all_by_element_factory_name(GST_BIN(source), "typefind");
    GValue item = G_VALUE_INIT;
    while (!type && gst_iterator_next(finders, &item) == GST_ITERATOR_OK) {
        GstCaps *caps = NULL;
        g_object_get(g_value_get_object(&item), "caps", &caps, NULL);
        if (caps) {
            type = g_strdup(shim_caps_name(caps));
            gst_caps_unref(caps);
        }
        g_value_reset(&item);
    }
    if (G_IS_VALUE(&item)) g_value_unset(&item);
    gst_iterator_free(finders);
    return type;
}
gboolean shim_film_has_type(shim_film *film, const char *beginning) {
    g_mutex_lock(&film->lock);
    gboolean has = film->type && g_str_has_prefix(film->type, beginning);
    g_mutex_unlock(&film->lock);
    return has;
}

// All outputs are there; none of them has data yet.
static void shim_outputs_complete(GstElement *source, gpointer data) {
    shim_film *film = (shim_film *)data;
    char *type = shim_whole_type(source);
    g_mutex_lock(&film->lock);
    g_free(film->type);
    film->type = type;
    shim_stream *first = shim_sound(film, film->heard) ? NULL : shim_sound(film, 0);
    if (first && shim_link(first->pad, film->sound)) {
        film->heard = 0;
        gst_pad_remove_probe(first->pad, first->unused);
        first->unused = 0;
    }
    g_mutex_unlock(&film->lock);
    GstStructure *structure = gst_structure_new_empty("film-tracks");
    gst_element_post_message(source, gst_message_new_application((GstObject *)source, structure));
}

static void shim_reader_added(GstBin *source, GstBin *bin, GstElement *element, gpointer data) {
    (void)source, (void)bin, (void)data;
    GstElementFactory *factory = gst_element_get_factory(element);
    // What has arrived from the network. Of the five seconds that it keeps, two are enough to begin, and with less than half of one it
    // waits again. By default it begins with all five: on a slow network that takes twice as long as in other players.
    if (factory && g_strcmp0(GST_OBJECT_NAME(factory), "queue2") == 0)
        g_object_set(element, "low-watermark", 0.08, "high-watermark", 0.4, NULL);
    if (!factory || !gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DEMUXER)) return;
    shim_delay_first_bytes(element);
}

shim_film *shim_film_new(GstElement *source, GstElement *sound, GstElement *pictures, gint heard) {
    shim_film *film = g_new0(shim_film, 1);
    film->references = 1;
    g_mutex_init(&film->lock);
    film->sound = (GstElement *)gst_object_ref(sound);
    film->pictures = (GstElement *)gst_object_ref(pictures);
    film->streams = g_array_new(FALSE, TRUE, sizeof(shim_stream));
    film->heard = heard;
    film->words = shim_words_new();
    g_signal_connect(source, "deep-element-added", G_CALLBACK(shim_reader_added), NULL);
    g_signal_connect_data(
        source, "pad-added", G_CALLBACK(shim_output_added), shim_film_ref(film), shim_film_left, (GConnectFlags)0);
    g_signal_connect_data(
        source, "no-more-pads", G_CALLBACK(shim_outputs_complete), shim_film_ref(film), shim_film_left,
        (GConnectFlags)0);
    return film;
}

shim_words *shim_film_words(shim_film *film) { return film->words; }

gint shim_film_list_like(shim_film *film, GstPad *pad) {
    char *wanted = gst_pad_get_stream_id(pad);
    gint list = -1;
    g_mutex_lock(&film->lock);
    for (guint place = 0; wanted && place < film->streams->len; place++) {
        shim_stream *stream = &g_array_index(film->streams, shim_stream, place);
        char *found = stream->list >= 0 ? gst_pad_get_stream_id(stream->pad) : NULL;
        if (g_strcmp0(found, wanted) == 0) list = stream->list;
        g_free(found);
    }
    g_mutex_unlock(&film->lock);
    g_free(wanted);
    return list;
}
gint shim_film_next_request(shim_film *film) { return g_atomic_int_add(&film->requests, 1) + 1; }
gboolean shim_film_is_newest(shim_film *film, gint number) { return g_atomic_int_get(&film->requests) == number; }
GstElement *shim_film_teller(shim_film *film) { return (GstElement *)gst_object_ref(film->pictures); }

guint shim_film_count(shim_film *film) {
    g_mutex_lock(&film->lock);
    guint count = film->streams->len;
    g_mutex_unlock(&film->lock);
    return count;
}

// A text of the tags of a stream, which the caller frees; NULL: there is none.
static char *shim_tag(GstPad *pad, const char *name) {
    char *text = NULL;
    for (guint place = 0; !text; place++) {
        GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_TAG, place);
        if (!event) break;
        GstTagList *tags = NULL;
        gst_event_parse_tag(event, &tags);
        // Those of the whole film have its title.
        if (gst_tag_list_get_scope(tags) == GST_TAG_SCOPE_STREAM) gst_tag_list_get_string(tags, name, &text);
        gst_event_unref(event);
    }
    return text;
}

shim_track shim_film_track(shim_film *film, guint place) {
    g_mutex_lock(&film->lock);
    shim_stream stream = g_array_index(film->streams, shim_stream, place);
    gboolean is_heard = shim_sound(film, film->heard) == &g_array_index(film->streams, shim_stream, place);
    g_mutex_unlock(&film->lock);
    const char *codec = stream.kind == SHIM_TRACK_AUDIO ? GST_TAG_AUDIO_CODEC
        : stream.kind == SHIM_TRACK_VIDEO ? GST_TAG_VIDEO_CODEC : GST_TAG_SUBTITLE_CODEC;
    return (shim_track){
        .kind = stream.kind, .list = stream.list, .is_heard = is_heard,
        .language = shim_tag(stream.pad, GST_TAG_LANGUAGE_CODE), .title = shim_tag(stream.pad, GST_TAG_TITLE),
        .codec = shim_tag(stream.pad, codec),
    };
}
void shim_track_clear(shim_track *track) {
    g_free(track->language);
    g_free(track->title);
    g_free(track->codec);
}

gboolean shim_tracks_known(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "film-tracks");
}

shim_track_kind shim_lacking_kind(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    const GValue *detail = structure ? gst_structure_get_value(structure, "detail") : NULL;
    return detail && GST_VALUE_HOLDS_CAPS(detail) ? shim_kind((GstCaps *)gst_value_get_caps(detail)) : SHIM_TRACK_OTHER;
}
