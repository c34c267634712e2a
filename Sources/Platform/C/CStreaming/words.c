#include "film.h"

// Subtitles: lists of texts with their times, and the element that draws what belongs to the picture which passes it. They
// are not a stream that waits for the pictures, so a list that ends, or comes late, stops nothing.
typedef struct {
    guint64 start, end;
    char *markup;
} shim_cue;

struct shim_words {
    gint references;
    GMutex lock;
    // Lists of cues.
    GPtrArray *lists;
    gint shown;
    // What the element draws now.
    char *drawn;
};

// More than any film has; memory stays limited.
enum { cue_limit = 100000, text_limit = 4096 };

static shim_words *shim_words_ref(shim_words *words) {
    g_atomic_int_inc(&words->references);
    return words;
}
static void shim_cue_clear(gpointer data) { g_free(((shim_cue *)data)->markup); }
static void shim_list_free(gpointer data) { g_array_free((GArray *)data, TRUE); }

shim_words *shim_words_new(void) {
    shim_words *words = g_new0(shim_words, 1);
    words->references = 1;
    g_mutex_init(&words->lock);
    words->lists = g_ptr_array_new_with_free_func(shim_list_free);
    words->shown = -1;
    return words;
}
void shim_words_free(gpointer data) {
    shim_words *words = (shim_words *)data;
    if (!g_atomic_int_dec_and_test(&words->references)) return;
    g_ptr_array_free(words->lists, TRUE);
    g_free(words->drawn);
    g_mutex_clear(&words->lock);
    g_free(words);
}

gint shim_words_add_list(shim_words *words) {
    GArray *list = g_array_new(FALSE, FALSE, sizeof(shim_cue));
    g_array_set_clear_func(list, shim_cue_clear);
    g_mutex_lock(&words->lock);
    g_ptr_array_add(words->lists, list);
    gint number = (gint)words->lists->len - 1;
    g_mutex_unlock(&words->lock);
    return number;
}

gboolean shim_words_add(shim_words *words, gint number, guint64 start, guint64 end, const char *markup) {
    if (end <= start || !*markup) return FALSE;
    g_mutex_lock(&words->lock);
    GArray *list = (GArray *)words->lists->pdata[number];
    guint place = list->len;
    gboolean is_known = FALSE;
    // In the order of their beginnings. After a seek they come once more.
    while (place > 0 && g_array_index(list, shim_cue, place - 1).start >= start && !is_known) {
        place--;
        shim_cue *other = &g_array_index(list, shim_cue, place);
        is_known = other->start == start && strcmp(other->markup, markup) == 0;
    }
    gboolean is_new = !is_known && list->len < cue_limit;
    if (is_new) {
        shim_cue cue = {.start = start, .end = end, .markup = g_strndup(markup, text_limit)};
        g_array_insert_val(list, place, cue);
    }
    g_mutex_unlock(&words->lock);
    return is_new;
}

void shim_words_show(shim_words *words, gint number) {
    g_mutex_lock(&words->lock);
    words->shown = number;
    g_mutex_unlock(&words->lock);
}

// What is shown at that time of the film, which the caller frees; NULL: nothing. Called with the lock.
static char *shim_words_at(shim_words *words, guint64 time) {
    if (words->shown < 0 || words->shown >= (gint)words->lists->len) return NULL;
    GArray *list = (GArray *)words->lists->pdata[words->shown];
    GString *text = NULL;
    for (guint place = 0; place < list->len; place++) {
        shim_cue *cue = &g_array_index(list, shim_cue, place);
        if (cue->start > time) break;
        if (cue->end <= time) continue;
        if (!text) text = g_string_new(NULL);
        if (text->len) g_string_append_c(text, '\n');
        g_string_append(text, cue->markup);
    }
    return text ? g_string_free(text, FALSE) : NULL;
}

static guint64 shim_time_of(GstPad *pad, GstBuffer *buffer) {
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    if (!event) return GST_CLOCK_TIME_NONE;
    const GstSegment *segment = NULL;
    gst_event_parse_segment(event, &segment);
    guint64 time = GST_BUFFER_PTS_IS_VALID(buffer) && segment->format == GST_FORMAT_TIME
        ? gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer)) : GST_CLOCK_TIME_NONE;
    gst_event_unref(event);
    return time;
}

// A picture comes to the element that draws the text.
static GstPadProbeReturn shim_picture_comes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_words *words = (shim_words *)data;
    guint64 time = shim_time_of(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    if (!GST_CLOCK_TIME_IS_VALID(time)) return GST_PAD_PROBE_OK;
    g_mutex_lock(&words->lock);
    char *text = shim_words_at(words, time);
    gboolean is_new = g_strcmp0(text, words->drawn) != 0;
    if (is_new) {
        g_free(words->drawn);
        words->drawn = text;
        text = g_strdup(text);
    }
    g_mutex_unlock(&words->lock);
    GstElement *overlay = is_new ? gst_pad_get_parent_element(pad) : NULL;
    if (overlay) {
        g_object_set(overlay, "text", text ? text : "", NULL);
        gst_object_unref(overlay);
    }
    g_free(text);
    return GST_PAD_PROBE_OK;
}
void shim_words_draw(shim_words *words, GstPad *entry) {
    gst_pad_add_probe(entry, GST_PAD_PROBE_TYPE_BUFFER, shim_picture_comes, shim_words_ref(words), shim_words_free);
}

typedef struct {
    shim_words *words;
    gint list;
} shim_collector;

static void shim_collector_free(gpointer data) {
    shim_words_free(((shim_collector *)data)->words);
    g_free(data);
}

// A text without a length is shown that long.
static const guint64 usual_length = 4 * GST_SECOND;

// A subtitle in a film.
gboolean shim_words_take(shim_words *words, gint list, GstPad *pad, GstBuffer *buffer) {
    GstMapInfo map;
    gboolean is_new = FALSE;
    guint64 start = shim_time_of(pad, buffer);
    GstCaps *caps = gst_pad_get_current_caps(pad);
    const char *format = caps ? gst_structure_get_string(gst_caps_get_structure(caps, 0), "format") : NULL;
    if (GST_CLOCK_TIME_IS_VALID(start) && gst_buffer_map(buffer, &map, GST_MAP_READ)) {
        guint64 length = GST_BUFFER_DURATION_IS_VALID(buffer) ? GST_BUFFER_DURATION(buffer) : usual_length;
        char *text = g_utf8_make_valid((const char *)map.data, (gssize)strnlen((const char *)map.data, map.size));
        char *markup = g_strcmp0(format, "pango-markup") == 0 ? g_strdup(text) : g_markup_escape_text(text, -1);
        g_strchomp(markup);
        is_new = shim_words_add(words, list, start, start + length, markup);
        g_free(markup);
        g_free(text);
        gst_buffer_unmap(buffer, &map);
    }
    if (caps) gst_caps_unref(caps);
    return is_new;
}
static GstPadProbeReturn shim_text_comes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_collector *collector = (shim_collector *)data;
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER)
        shim_words_take(collector->words, collector->list, pad, GST_PAD_PROBE_INFO_BUFFER(info));
    return GST_PAD_PROBE_DROP;
}
gint shim_words_collect(shim_words *words, GstPad *pad) {
    shim_collector *collector = g_new(shim_collector, 1);
    *collector = (shim_collector){.words = shim_words_ref(words), .list = shim_words_add_list(words)};
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    gst_pad_add_probe(pad, type, shim_text_comes, collector, shim_collector_free);
    return collector->list;
}
