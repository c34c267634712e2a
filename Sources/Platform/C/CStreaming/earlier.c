#include "film.h"
#include <stdio.h>

// Subtitles in a film that begin before the place of a seek. The demuxer of Matroska reads from the last key frame before that
// place: what began earlier does not come. So the part of the film before it is read once more, for its texts alone.
typedef struct {
    gint references;
    shim_film *film;
    // A file, or the address of one on the web.
    char *path, *uri;
    guint64 start, end;
    // Microseconds that each step may take.
    gint64 patience;
    // Bytes that may still be read.
    gint64 left;
    // The number of the request; another one may have come since.
    gint number;
    GMutex lock;
    GCond changed;
    gboolean has_streams, is_sought, is_done, has_news;
    // The first element of the film, which tells that there are texts.
    GstElement *teller;
} shim_errand;

static shim_errand *shim_errand_ref(shim_errand *errand) {
    g_atomic_int_inc(&errand->references);
    return errand;
}
static void shim_errand_free(gpointer data) {
    shim_errand *errand = (shim_errand *)data;
    if (!g_atomic_int_dec_and_test(&errand->references)) return;
    shim_film_free(errand->film);
    gst_object_unref(errand->teller);
    g_free(errand->path);
    g_free(errand->uri);
    g_mutex_clear(&errand->lock);
    g_cond_clear(&errand->changed);
    g_free(errand);
}
static void shim_errand_left(gpointer data, GClosure *closure) {
    (void)closure;
    shim_errand_free(data);
}
static void shim_errand_note(shim_errand *errand, gboolean *what) {
    g_mutex_lock(&errand->lock);
    *what = TRUE;
    g_cond_signal(&errand->changed);
    g_mutex_unlock(&errand->lock);
}

typedef struct {
    shim_errand *errand;
    gint list;
} shim_finder;
static void shim_finder_free(gpointer data) {
    shim_errand_free(((shim_finder *)data)->errand);
    g_free(data);
}
static GstPadProbeReturn shim_earlier_text(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_finder *finder = (shim_finder *)data;
    if (shim_words_take(shim_film_words(finder->errand->film), finder->list, pad, GST_PAD_PROBE_INFO_BUFFER(info)))
        finder->errand->has_news = TRUE;
    return GST_PAD_PROBE_OK;
}
// The other streams are not linked, and say how far it is.
static GstPadProbeReturn shim_earlier_data(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_errand *errand = (shim_errand *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = GST_BUFFER_DTS_OR_PTS(buffer);
    if (g_atomic_int_get(&errand->is_sought) && GST_CLOCK_TIME_IS_VALID(time) && time > errand->end)
        shim_errand_note(errand, &errand->is_done);
    return GST_PAD_PROBE_OK;
}

static GstPadProbeReturn shim_earlier_bytes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_errand *errand = (shim_errand *)data;
    errand->left -= (gint64)gst_buffer_get_size(GST_PAD_PROBE_INFO_BUFFER(info));
    if (errand->left >= 0) return GST_PAD_PROBE_OK;
    shim_errand_note(errand, &errand->is_done);
    return GST_PAD_PROBE_DROP;
}

// The element that makes plain texts of a stream of subtitles; NULL: it is none.
static const char *shim_errand_parser(GstPad *pad) {
    GstCaps *caps = gst_pad_get_current_caps(pad);
    const char *name = caps ? gst_structure_get_name(gst_caps_get_structure(caps, 0)) : "";
    const char *parser = strcmp(name, "text/x-raw") == 0 ? "identity"
        : strcmp(name, "application/x-ass") == 0 || strcmp(name, "application/x-ssa") == 0 ? "ssaparse" : NULL;
    if (caps) gst_caps_unref(caps);
    return parser;
}
static GstElement *shim_errand_add(GstElement *pipeline, const char *name) {
    GstElement *element = gst_element_factory_make(name, NULL);
    if (element) gst_bin_add((GstBin *)pipeline, element);
    return element;
}
static void shim_errand_stream(GstElement *demuxer, GstPad *pad, gpointer data) {
    shim_errand *errand = (shim_errand *)data;
    const char *name = shim_errand_parser(pad);
    gint list = name ? shim_film_list_like(errand->film, pad) : -1;
    GstElement *pipeline = list >= 0 ? (GstElement *)gst_element_get_parent(demuxer) : NULL;
    GstElement *parser = pipeline ? shim_errand_add(pipeline, name) : NULL;
    GstElement *sink = parser ? shim_errand_add(pipeline, "fakesink") : NULL;
    if (sink) {
        g_object_set(sink, "sync", FALSE, "async", FALSE, NULL);
        shim_finder *finder = g_new(shim_finder, 1);
        *finder = (shim_finder){.errand = shim_errand_ref(errand), .list = list};
        GstPad *entry = gst_element_get_static_pad(parser, "sink"), *exit = gst_element_get_static_pad(sink, "sink");
        gst_pad_add_probe(exit, GST_PAD_PROBE_TYPE_BUFFER, shim_earlier_text, finder, shim_finder_free);
        gst_element_link(parser, sink);
        gst_element_sync_state_with_parent(sink);
        gst_element_sync_state_with_parent(parser);
        gst_pad_link(pad, entry);
        gst_object_unref(entry);
        gst_object_unref(exit);
    } else {
        gst_pad_add_probe(
            pad, GST_PAD_PROBE_TYPE_BUFFER, shim_earlier_data, shim_errand_ref(errand), shim_errand_free);
    }
    if (pipeline) gst_object_unref(pipeline);
}
static void shim_errand_streams_known(GstElement *demuxer, gpointer data) {
    (void)demuxer;
    shim_errand_note(data, &((shim_errand *)data)->has_streams);
}

// Waits for that, for an error, or for the end of what was asked for.
static gboolean shim_errand_wait(shim_errand *errand, GstBus *bus, gboolean *what) {
    gint64 latest = g_get_monotonic_time() + errand->patience;
    gboolean goes_on = TRUE;
    g_mutex_lock(&errand->lock);
    while (!*what && goes_on && shim_film_is_newest(errand->film, errand->number)) {
        goes_on = g_get_monotonic_time() < latest;
        g_cond_wait_until(&errand->changed, &errand->lock, g_get_monotonic_time() + 20 * G_TIME_SPAN_MILLISECOND);
        GstMessage *message = gst_bus_pop_filtered(bus, (GstMessageType)(GST_MESSAGE_EOS | GST_MESSAGE_ERROR));
        if (message) {
            goes_on = FALSE;
            gst_message_unref(message);
        }
    }
    gboolean is_there = *what;
    g_mutex_unlock(&errand->lock);
    return is_there;
}

static GstElement *shim_errand_source(shim_errand *errand) {
    GstElement *source = gst_element_factory_make(errand->path ? "filesrc" : "souphttpsrc", NULL);
    if (!source) return NULL;
    g_object_set(source, "location", errand->path ? errand->path : errand->uri, NULL);
    if (errand->path) return source;
    g_object_set(source, "retries", 0, "timeout", (guint)(errand->patience / G_TIME_SPAN_SECOND), NULL);
    GstPad *exit = gst_element_get_static_pad(source, "src");
    gst_pad_add_probe(exit, GST_PAD_PROBE_TYPE_BUFFER, shim_earlier_bytes, shim_errand_ref(errand), shim_errand_free);
    gst_object_unref(exit);
    return source;
}

static gpointer shim_errand_run(gpointer data) {
    shim_errand *errand = (shim_errand *)data;
    GstElement *pipeline = gst_pipeline_new(NULL), *source = shim_errand_source(errand),
               *demuxer = gst_element_factory_make("matroskademux", NULL);
    if (source && demuxer) {
        GstBus *bus = gst_element_get_bus(pipeline);
        gst_bin_add((GstBin *)pipeline, source);
        gst_bin_add((GstBin *)pipeline, demuxer);
        gst_element_link(source, demuxer);
        g_signal_connect_data(
            demuxer, "pad-added", G_CALLBACK(shim_errand_stream), shim_errand_ref(errand), shim_errand_left,
            (GConnectFlags)0);
        g_signal_connect_data(
            demuxer, "no-more-pads", G_CALLBACK(shim_errand_streams_known), shim_errand_ref(errand), shim_errand_left,
            (GConnectFlags)0);
        gst_element_set_state(pipeline, GST_STATE_PAUSED);
        if (shim_errand_wait(errand, bus, &errand->has_streams)) {
            GstEvent *seek = gst_event_new_seek(
                1, GST_FORMAT_TIME, (GstSeekFlags)(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT), GST_SEEK_TYPE_SET,
                (gint64)errand->start, GST_SEEK_TYPE_NONE, -1);
            gst_element_send_event(demuxer, seek);
            g_atomic_int_set(&errand->is_sought, TRUE);
            gst_element_set_state(pipeline, GST_STATE_PLAYING);
            shim_errand_wait(errand, bus, &errand->is_done);
        }
        gst_element_set_state(pipeline, GST_STATE_NULL);
        gst_object_unref(bus);
    } else {
        if (source) gst_object_unref(source);
        if (demuxer) gst_object_unref(demuxer);
    }
    gst_object_unref(pipeline);
    if (errand->has_news && shim_film_is_newest(errand->film, errand->number)) {
        GstStructure *structure = gst_structure_new_empty("film-words");
        gst_element_post_message(errand->teller, gst_message_new_application((GstObject *)errand->teller, structure));
    }
    shim_errand_free(errand);
    return NULL;
}

gboolean shim_words_came(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "film-words");
}

static gboolean shim_is_matroska(const char *path) {
    guint8 head[4] = {0};
    FILE *file = fopen(path, "rbe");
    if (!file) return FALSE;
    gboolean is_read = fread(head, 1, sizeof head, file) == sizeof head;
    fclose(file);
    return is_read && memcmp(head, "\x1a\x45\xdf\xa3", 4) == 0;
}

static void shim_errand_begin(shim_film *film, shim_errand known) {
    shim_errand *errand = g_new0(shim_errand, 1);
    *errand = known;
    errand->references = 1;
    errand->film = shim_film_ref(film);
    errand->number = shim_film_next_request(film);
    errand->teller = shim_film_teller(film);
    g_mutex_init(&errand->lock);
    g_cond_init(&errand->changed);
    g_thread_unref(g_thread_new("subtitles", shim_errand_run, errand));
}

void shim_film_read_earlier(shim_film *film, const char *path, guint64 time, guint64 reach) {
    if (!shim_is_matroska(path)) return;
    shim_errand_begin(
        film, (shim_errand){
                  .path = g_strdup(path), .start = time > reach ? time - reach : 0, .end = time,
                  .patience = G_TIME_SPAN_SECOND});
}
void shim_film_fetch_earlier(shim_film *film, const char *uri, guint64 time, guint64 reach, gint64 bytes) {
    if (!shim_film_has_type(film, "video/x-matroska") && !shim_film_has_type(film, "video/webm")) return;
    shim_errand_begin(
        film, (shim_errand){
                  .uri = g_strdup(uri), .start = time > reach ? time - reach : 0, .end = time,
                  .patience = 5 * G_TIME_SPAN_SECOND, .left = bytes});
}
