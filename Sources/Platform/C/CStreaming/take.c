#include "CStreaming.h"

// Which pictures and which sound belong to a film that is being recorded, and their times in it.
//
// The pictures come in a fixed rate, and each is one step of the film. A film begins, pauses and goes on at a time of a
// picture that neither the pictures nor the sound have reached yet: so both are cut at the same time, the pictures whole
// and the sound to the sample, although they arrive at different moments. All times are running times in nanoseconds.
// Everything is under the lock, because pictures and sound arrive on different threads.

// A part of the film between two pauses: from `from` on, before `until`. `until` is GST_CLOCK_TIME_NONE while it grows.
typedef struct {
    guint64 from, until;
    guint64 first;  // the number in the film of the picture at `from`
} shim_part;

struct shim_take {
    gint references;
    GMutex lock;
    GstElement *pipeline;  // borrowed: the probes are in it
    gint numerator, denominator;  // pictures per second
    gint rate;  // samples per second; 0: no sound
    GArray *parts;
    guint64 limit;  // of pictures
    guint64 anchor;  // the time of the last picture before the film, or GST_CLOCK_TIME_NONE
    guint64 picture_head, sound_head;  // the ends of what has arrived
    // Of pictures that are encoded before the tee: the end of what the encoder has got, the parts whose first picture is a key
    // frame, and the number of the part, from 1, that the last picture in the film belongs to.
    gboolean is_encoded;
    guint64 entry_head;
    guint keyed, part;
    guint64 pictures, samples;  // in the film
    gboolean begins;  // begins when the first picture has arrived
    gboolean is_closed;  // the last part has an end, and no other follows
    gboolean pictures_passed, sound_passed;  // the last ones, and they are behind the tees
    gboolean is_told;
    gint frame;  // bytes of one sample of all channels
};

static const guint64 least_pause = 50 * GST_MSECOND;

static guint64 picture_time(const shim_take *take, guint64 number) {
    return gst_util_uint64_scale(number, GST_SECOND * (guint64)take->denominator, (guint64)take->numerator);
}
static guint64 sample_of(const shim_take *take, guint64 picture) {
    guint64 units = (guint64)take->rate * (guint64)take->denominator;
    return gst_util_uint64_scale_round(picture, units, (guint64)take->numerator);
}
// The nearest number of steps.
static guint64 steps(const shim_take *take, guint64 time) {
    return gst_util_uint64_scale_round(time, (guint64)take->numerator, GST_SECOND * (guint64)take->denominator);
}
// The first time of a picture that is not before both ends.
static guint64 next_picture(const shim_take *take) {
    guint64 head = MAX(MAX(take->picture_head, take->entry_head), take->rate ? take->sound_head : 0);
    if (head <= take->anchor) return take->anchor;
    guint64 number = steps(take, head - take->anchor);
    if (take->anchor + picture_time(take, number) + 1000 < head) number++;
    return take->anchor + picture_time(take, number);
}
static shim_part *last_part(shim_take *take) {
    return take->parts->len ? &g_array_index(take->parts, shim_part, take->parts->len - 1) : NULL;
}
static void tell(shim_take *take, const char *name) {
    gst_element_post_message(
        take->pipeline, gst_message_new_application((GstObject *)take->pipeline, gst_structure_new_empty(name)));
}
static void open_part(shim_take *take, guint64 from, guint64 first) {
    shim_part part = {.from = from, .until = GST_CLOCK_TIME_NONE, .first = first};
    g_array_append_val(take->parts, part);
}
// The film begins when it is known how far the pictures and the sound are.
static void begin_if_known(shim_take *take) {
    if (!take->begins || take->is_closed || take->anchor == GST_CLOCK_TIME_NONE || (take->rate && !take->sound_head)) return;
    if (take->is_encoded && !take->entry_head) return;
    take->begins = FALSE;
    open_part(take, next_picture(take), 0);
}
// The number in the film that follows a part.
static guint64 end_number(const shim_take *take, const shim_part *part) {
    return part->first + steps(take, part->until - part->from);
}
// Everything of the film has passed the gates, and what comes after it has arrived: so its last picture and its last sound are
// behind the tees, and the end may follow them.
static void check_end(shim_take *take) {
    if (take->is_told || !take->pictures_passed || (take->rate && !take->sound_passed)) return;
    take->is_told = TRUE;
    tell(take, take->pictures >= take->limit || !take->is_closed ? "take-full" : "take-over");
}
static gboolean is_closed_before(shim_take *take, guint64 head) {
    shim_part *part = last_part(take);
    return take->is_closed && part && head >= part->until;
}
// Whether a picture comes after the limit, although not all pictures before it came: a camera was opened again, for example.
static gboolean is_past_limit(shim_take *take, guint64 time) {
    const shim_part *part = last_part(take);
    guint64 half = picture_time(take, 1) / 2;
    if (!part || take->limit == G_MAXUINT64 || time + half < part->from) return FALSE;
    if (part->until != GST_CLOCK_TIME_NONE && time + half >= part->until) return end_number(take, part) >= take->limit;
    return part->first + (time > part->from ? steps(take, time - part->from) : 0) >= take->limit;
}

// MARK: Pictures

// The number in the film of the picture at that time, and that of its part, from 1; FALSE: it is not in the film.
static gboolean number_of(shim_take *take, guint64 time, guint64 *number, guint *part_number) {
    guint64 half = picture_time(take, 1) / 2;
    for (guint place = 0; place < take->parts->len; place++) {
        const shim_part *part = &g_array_index(take->parts, shim_part, place);
        if (time + half < part->from) return FALSE;
        if (part->until != GST_CLOCK_TIME_NONE && time + half >= part->until) continue;
        *number = part->first + (time > part->from ? steps(take, time - part->from) : 0);
        *part_number = place + 1;
        // Two for one step: the second one is left out.
        return *number >= take->pictures && *number < take->limit;
    }
    return FALSE;
}
static gboolean take_picture(shim_take *take, guint64 time, gboolean is_key, guint64 *place) {
    g_mutex_lock(&take->lock);
    guint64 number = 0;
    guint part = 0;
    // A part begins with a picture that needs no other.
    gboolean belongs = number_of(take, time, &number, &part) && (is_key || part == take->part);
    if (belongs) {
        take->part = part;
        take->pictures = number + 1;
        *place = picture_time(take, number);
    }
    g_mutex_unlock(&take->lock);
    return belongs;
}
gboolean shim_take_picture(shim_take *take, guint64 time, guint64 *place) { return take_picture(take, time, TRUE, place); }
gboolean shim_take_enters(shim_take *take, guint64 time) {
    g_mutex_lock(&take->lock);
    guint64 half = picture_time(take, 1) / 2;
    gboolean is_first = FALSE;
    for (; take->keyed < take->parts->len; take->keyed++) {
        const shim_part *part = &g_array_index(take->parts, shim_part, take->keyed);
        if (time + half < part->from) break;
        is_first = part->until == GST_CLOCK_TIME_NONE || time + half < part->until;
    }
    take->entry_head = MAX(take->entry_head, time + picture_time(take, 1));
    g_mutex_unlock(&take->lock);
    return is_first;
}
void shim_take_saw_picture(shim_take *take, guint64 time) {
    g_mutex_lock(&take->lock);
    // The picture before it has passed the tee.
    if (take->pictures >= take->limit || is_past_limit(take, time) || is_closed_before(take, take->picture_head))
        take->pictures_passed = TRUE;
    // Without sound, a part begins with its first picture, however late it comes.
    shim_part *part = last_part(take);
    if (!take->rate && part && part->until == GST_CLOCK_TIME_NONE && take->pictures <= part->first && time > part->from)
        part->from = time;
    if (!take->parts->len) take->anchor = time;
    take->picture_head = MAX(take->picture_head, time + picture_time(take, 1));
    begin_if_known(take);
    check_end(take);
    g_mutex_unlock(&take->lock);
}

// MARK: Sound

// The samples of a buffer that are in the film: `skip` before them are not, `count` are, and their place in the film. A part
// is longer than a buffer, so a buffer has samples of one part only.
gboolean shim_take_sound(
    shim_take *take, guint64 time, guint64 frames, guint64 *skip, guint64 *count, guint64 *place) {
    g_mutex_lock(&take->lock);
    gboolean belongs = FALSE;
    for (guint number = 0; number < take->parts->len && !belongs; number++) {
        const shim_part *part = &g_array_index(take->parts, shim_part, number);
        guint64 begin = sample_of(take, part->first);
        guint64 end = sample_of(take, take->limit);
        if (take->limit == G_MAXUINT64) end = G_MAXUINT64;
        if (part->until != GST_CLOCK_TIME_NONE) end = MIN(end, sample_of(take, end_number(take, part)));
        // From the start of the part; negative: before it.
        guint64 start = part->from;
        gint64 offset = time >= start ? (gint64)gst_util_uint64_scale_round(time - start, (guint64)take->rate, GST_SECOND)
                                      : -(gint64)gst_util_uint64_scale_round(start - time, (guint64)take->rate, GST_SECOND);
        gint64 first = (gint64)begin + offset;
        // Times are rounded to nanoseconds, and some sources to more: the samples go on without a gap.
        gint64 expected = (gint64)take->samples;
        if (expected > (gint64)begin && ABS(first - expected) < take->rate / 50) first = expected;
        gint64 from = MAX(first, MAX((gint64)begin, expected));
        gint64 until = first + (gint64)frames;
        if (end != G_MAXUINT64 && until > (gint64)end) until = (gint64)end;
        if (until <= from) continue;
        belongs = TRUE;
        *skip = (guint64)(from - first);
        *count = (guint64)(until - from);
        *place = gst_util_uint64_scale((guint64)from, GST_SECOND, (guint64)take->rate);
        take->samples = (guint64)until;
    }
    g_mutex_unlock(&take->lock);
    return belongs;
}
void shim_take_saw_sound(shim_take *take, guint64 end) {
    g_mutex_lock(&take->lock);
    gboolean is_full = take->limit != G_MAXUINT64 && take->samples >= sample_of(take, take->limit);
    if (is_full || is_closed_before(take, take->sound_head)) take->sound_passed = TRUE;
    take->sound_head = MAX(take->sound_head, end);
    begin_if_known(take);
    check_end(take);
    g_mutex_unlock(&take->lock);
}

// MARK: Requests

shim_take *shim_take_new(GstElement *pipeline, gint numerator, gint denominator, gint rate) {
    shim_take *take = g_new0(shim_take, 1);
    take->references = 1;
    g_mutex_init(&take->lock);
    take->pipeline = pipeline;
    take->numerator = numerator;
    take->denominator = denominator;
    take->rate = rate;
    take->anchor = GST_CLOCK_TIME_NONE;
    take->limit = G_MAXUINT64;
    take->parts = g_array_new(FALSE, FALSE, sizeof(shim_part));
    return take;
}
void shim_take_free(gpointer data) {
    shim_take *take = (shim_take *)data;
    if (!g_atomic_int_dec_and_test(&take->references)) return;
    g_array_free(take->parts, TRUE);
    g_mutex_clear(&take->lock);
    g_free(take);
}
static shim_take *shim_take_ref(shim_take *take) {
    g_atomic_int_inc(&take->references);
    return take;
}
void shim_take_begin(shim_take *take, guint64 limit) {
    g_mutex_lock(&take->lock);
    take->limit = limit ? limit : G_MAXUINT64;
    take->begins = TRUE;
    begin_if_known(take);
    g_mutex_unlock(&take->lock);
}
void shim_take_pause(shim_take *take) {
    g_mutex_lock(&take->lock);
    shim_part *part = last_part(take);
    if (part && part->until == GST_CLOCK_TIME_NONE) part->until = MAX(next_picture(take), part->from);
    g_mutex_unlock(&take->lock);
}
void shim_take_resume(shim_take *take) {
    g_mutex_lock(&take->lock);
    shim_part *part = last_part(take);
    if (part && part->until != GST_CLOCK_TIME_NONE && !take->is_closed) {
        guint64 number = end_number(take, part);
        // A buffer of sound must not have samples of two parts.
        guint64 least = part->until + picture_time(take, steps(take, least_pause) + 1);
        guint64 next = next_picture(take);
        open_part(take, MAX(next, take->anchor + picture_time(take, steps(take, least - take->anchor))), number);
    }
    g_mutex_unlock(&take->lock);
}
void shim_take_close(shim_take *take) {
    g_mutex_lock(&take->lock);
    shim_part *part = last_part(take);
    if (part && part->until == GST_CLOCK_TIME_NONE) part->until = MAX(next_picture(take), part->from);
    take->is_closed = TRUE;
    if (part) {
        check_end(take);
    } else if (!take->is_told) {
        take->is_told = TRUE;
        tell(take, "take-over");
    }
    g_mutex_unlock(&take->lock);
}
guint64 shim_take_pictures(shim_take *take) {
    g_mutex_lock(&take->lock);
    guint64 pictures = take->pictures;
    g_mutex_unlock(&take->lock);
    return pictures;
}
guint64 shim_take_samples(shim_take *take) {
    g_mutex_lock(&take->lock);
    guint64 samples = take->samples;
    g_mutex_unlock(&take->lock);
    return samples;
}

// MARK: Probes

guint64 shim_running_time(GstPad *pad, GstBuffer *buffer) {
    if (!GST_BUFFER_PTS_IS_VALID(buffer)) return GST_CLOCK_TIME_NONE;
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    if (!event) return GST_CLOCK_TIME_NONE;
    const GstSegment *segment = NULL;
    gst_event_parse_segment(event, &segment);
    guint64 time = gst_segment_to_running_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
    gst_event_unref(event);
    return time;
}
// What passes has the time of the film, so its segment begins at 0.
static void plain_segment(GstPadProbeInfo *info) {
    GstEvent *event = (GstEvent *)info->data;
    if (GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return;
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    GstEvent *changed = gst_event_new_segment(&segment);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    info->data = changed;
}
static GstPadProbeReturn picture_arrives(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    guint64 time = shim_running_time(pad, GST_PAD_PROBE_INFO_BUFFER(info));
    if (time != GST_CLOCK_TIME_NONE) shim_take_saw_picture((shim_take *)data, time);
    return GST_PAD_PROBE_OK;
}
// The bytes of one sample of all channels, of interleaved sound.
static gint frame_size(GstPad *pad) {
    GstCaps *caps = gst_pad_get_current_caps(pad);
    gint channels = 0, bits = 0;
    if (!caps) return 0;
    const GstStructure *structure = gst_caps_get_structure(caps, 0);
    const char *format = gst_structure_get_string(structure, "format");
    gst_structure_get_int(structure, "channels", &channels);
    if (format) bits = atoi(format + 1);
    gst_caps_unref(caps);
    return bits / 8 * channels;
}
static GstPadProbeReturn sound_arrives(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_take *take = (shim_take *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = shim_running_time(pad, buffer);
    gint frame = frame_size(pad);
    if (time == GST_CLOCK_TIME_NONE || !frame || !take->rate) return GST_PAD_PROBE_OK;
    guint64 frames = gst_buffer_get_size(buffer) / (gsize)frame;
    shim_take_saw_sound(take, time + gst_util_uint64_scale(frames, GST_SECOND, (guint64)take->rate));
    return GST_PAD_PROBE_OK;
}
// On an output of a tee: there the stored segment stays that of the source, and only what follows gets the plain one.
static GstPadProbeReturn picture_passes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
        plain_segment(info);
        return GST_PAD_PROBE_OK;
    }
    shim_take *take = (shim_take *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = shim_running_time(pad, buffer), place = 0;
    gboolean is_key = !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT);
    if (time == GST_CLOCK_TIME_NONE || !take_picture(take, time, is_key, &place)) return GST_PAD_PROBE_DROP;
    buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_PTS(buffer) = place;
    GST_BUFFER_DTS(buffer) = take->is_encoded ? place : GST_CLOCK_TIME_NONE;
    GST_BUFFER_DURATION(buffer) = picture_time(take, 1);
    GST_BUFFER_FLAG_UNSET(buffer, GST_BUFFER_FLAG_DISCONT);
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static GstPadProbeReturn sound_passes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    if (info->type & GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM) {
        plain_segment(info);
        return GST_PAD_PROBE_OK;
    }
    shim_take *take = (shim_take *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = shim_running_time(pad, buffer), skip = 0, count = 0, place = 0;
    gsize frame = (gsize)frame_size(pad);
    if (time == GST_CLOCK_TIME_NONE || !frame) return GST_PAD_PROBE_DROP;
    guint64 frames = gst_buffer_get_size(buffer) / frame;
    if (!shim_take_sound(take, time, frames, &skip, &count, &place)) return GST_PAD_PROBE_DROP;
    buffer = gst_buffer_make_writable(buffer);
    if (skip || count < frames) gst_buffer_resize(buffer, (gssize)(skip * frame), (gssize)(count * frame));
    guint64 first = gst_util_uint64_scale_round(place, (guint64)take->rate, GST_SECOND);
    GST_BUFFER_PTS(buffer) = place;
    GST_BUFFER_DTS(buffer) = GST_CLOCK_TIME_NONE;
    GST_BUFFER_DURATION(buffer) = gst_util_uint64_scale(first + count, GST_SECOND, (guint64)take->rate) - place;
    GST_BUFFER_OFFSET(buffer) = first;
    GST_BUFFER_OFFSET_END(buffer) = first + count;
    GST_BUFFER_FLAG_UNSET(buffer, GST_BUFFER_FLAG_DISCONT);
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static gulong probe(GstPad *pad, GstPadProbeType type, GstPadProbeCallback callback, shim_take *take) {
    return gst_pad_add_probe(pad, type, callback, shim_take_ref(take), shim_take_free);
}
gulong shim_take_watch(shim_take *take, GstPad *pad, gboolean has_sound) {
    return probe(pad, GST_PAD_PROBE_TYPE_BUFFER, has_sound ? sound_arrives : picture_arrives, take);
}
gulong shim_take_gate(shim_take *take, GstPad *pad, gboolean has_sound) {
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM);
    return probe(pad, type, has_sound ? sound_passes : picture_passes, take);
}

static GstPadProbeReturn picture_enters(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = shim_running_time(pad, buffer), stamp = GST_BUFFER_PTS(buffer);
    if (time == GST_CLOCK_TIME_NONE || !shim_take_enters((shim_take *)data, time)) return GST_PAD_PROBE_OK;
    shim_ask_for_key(pad, stamp, time, 0);
    return GST_PAD_PROBE_OK;
}
gulong shim_take_encoded(shim_take *take, GstPad *entry) {
    take->is_encoded = TRUE;
    return entry ? probe(entry, GST_PAD_PROBE_TYPE_BUFFER, picture_enters, take) : 0;
}

static GstPadProbeReturn end_passes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    if (GST_EVENT_TYPE(GST_PAD_PROBE_INFO_EVENT(info)) != GST_EVENT_EOS) return GST_PAD_PROBE_OK;
    GstElement *pipeline = (GstElement *)data;
    gst_element_post_message(
        pipeline, gst_message_new_application((GstObject *)pipeline, gst_structure_new_empty("film-written")));
    return GST_PAD_PROBE_OK;
}
void shim_watch_written(GstPad *pad, GstElement *pipeline) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, end_passes, pipeline, NULL);
}

static GstPadProbeReturn first_passes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)info;
    GstElement *pipeline = (GstElement *)g_object_get_data((GObject *)data, "shim-pipeline");
    GstStructure *structure = gst_structure_new("first-buffer", "name", G_TYPE_STRING, GST_OBJECT_NAME(data), NULL);
    gst_element_post_message(pipeline, gst_message_new_application((GstObject *)pipeline, structure));
    return GST_PAD_PROBE_REMOVE;
}
void shim_watch_first(GstPad *pad, GstElement *bin, GstElement *pipeline) {
    g_object_set_data((GObject *)bin, "shim-pipeline", pipeline);
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER, first_passes, gst_object_ref(bin), (GDestroyNotify)gst_object_unref);
}
static GstPadProbeReturn keeps_format(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    return GST_EVENT_TYPE(gst_pad_probe_info_get_event(info)) == GST_EVENT_RECONFIGURE ? GST_PAD_PROBE_DROP
                                                                                       : GST_PAD_PROBE_OK;
}
void shim_keep_format(GstPad *pad) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_UPSTREAM, keeps_format, NULL, NULL);
}
const char *shim_first_buffer(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    return structure && gst_structure_has_name(structure, "first-buffer") ? gst_structure_get_string(structure, "name")
                                                                          : NULL;
}
