// The parts of GStreamer that Swift cannot import (variadic functions and function-like macros), and code for
// GStreamer's threads.
#pragma once
#include <gst/audio/gstaudiobasesink.h>
#include <gst/base/gstbasetransform.h>
#include <gst/controller/gstdirectcontrolbinding.h>
#include <gst/controller/gstinterpolationcontrolsource.h>
#include <gst/gst.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The library of a function. The headers define dladdr and its type only with _GNU_SOURCE.
typedef struct {
    const char *file;
    void *base;
    const char *symbol;
    void *address;
} shim_origin;
extern int shim_dladdr(const void *address, shim_origin *origin) __asm__("dladdr");

// The file that GStreamer itself was loaded from; NULL if unknown.
static inline const char *shim_library_file(void) {
    shim_origin origin;
    return shim_dladdr((const void *)gst_init, &origin) ? origin.file : NULL;
}

// The variable that makes gst_init and gst_update_registry skip the list of all plugins. GStreamer's own plugin scanner
// sets it. It is in no header, so it is searched in the library; NULL if a library no longer has it.
extern void *shim_dlsym(void *handle, const char *name) __asm__("dlsym");
static inline gboolean *shim_registry_switch(void) {
    return (gboolean *)shim_dlsym(NULL, "_gst_disable_registry_cache");
}

// g_object_set is variadic, and G_TYPE_* (for g_object_set_property) are function-like macros.
static inline void shim_set_string(gpointer object, const char *name, const char *value) {
    g_object_set(object, name, value, NULL);
}
static inline void shim_set_double(gpointer object, const char *name, double value) {
    g_object_set(object, name, value, NULL);
}
static inline void shim_set_float(gpointer object, const char *name, double value) {
    g_object_set(object, name, (float)value, NULL);
}
static inline void shim_set_int64(gpointer object, const char *name, gint64 value) {
    g_object_set(object, name, value, NULL);
}
static inline void shim_set_int(gpointer object, const char *name, gint value) {
    g_object_set(object, name, value, NULL);
}
static inline void shim_set_bool(gpointer object, const char *name, gboolean value) {
    g_object_set(object, name, value, NULL);
}

// gst_structure_set is variadic, and G_TYPE_STRING is a function-like macro.
static inline void shim_structure_set_string(GstStructure *structure, const char *name, const char *value) {
    gst_structure_set(structure, name, G_TYPE_STRING, value, NULL);
}

static inline void shim_set_structure(gpointer object, const char *name, const GstStructure *value) {
    g_object_set(object, name, value, NULL);
}

// The end of the last buffer that a filter passed on, in the time of the item. It is a field of a base class, which
// Swift could only read by rebinding memory. It is read without the stream lock, which is held while the sink waits.
static inline GstClockTime shim_transform_position(GstElement *element) {
    GstSegment *segment = &((GstBaseTransform *)element)->segment;
    if (segment->format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID(segment->position)) return GST_CLOCK_TIME_NONE;
    return gst_segment_to_stream_time(segment, GST_FORMAT_TIME, segment->position);
}

// The same in running time.
static inline GstClockTime shim_transform_running_time(GstElement *element) {
    GstSegment *segment = &((GstBaseTransform *)element)->segment;
    if (segment->format != GST_FORMAT_TIME || !GST_CLOCK_TIME_IS_VALID(segment->position)) return GST_CLOCK_TIME_NONE;
    return gst_segment_to_running_time(segment, GST_FORMAT_TIME, segment->position);
}

// Pad probes run on GStreamer's streaming threads, where no Swift code may run.

// Blocks a pad at its next buffer, and posts an application message on the bus for each item that arrives at the
// blocked pad. It blocks only at a buffer, because the elements before the pad have negotiated their format by then.
static GstPadProbeReturn shim_pad_held(GstPad *pad, GstPadProbeInfo *info, gpointer element) {
    (void)pad;
    GstStructure *structure = gst_structure_new("pad-held", "id", G_TYPE_ULONG, info->id, NULL);
    gst_element_post_message((GstElement *)element, gst_message_new_application((GstObject *)element, structure));
    return GST_PAD_PROBE_OK;
}
// The number of the probe (returned by shim_hold_pad) that a message is from, or 0. gst_structure_get is variadic.
static inline gulong shim_held_pad(GstMessage *message) {
    const GstStructure *structure = gst_message_get_structure(message);
    gulong id = 0;
    if (structure && gst_structure_has_name(structure, "pad-held"))
        gst_structure_get(structure, "id", G_TYPE_ULONG, &id, NULL);
    return id;
}
static inline gulong shim_hold_pad(GstPad *pad, GstElement *pipeline) {
    GstPadProbeType type =
        (GstPadProbeType)(GST_PAD_PROBE_TYPE_BLOCK | GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    return gst_pad_add_probe(pad, type, shim_pad_held, pipeline, NULL);
}

// Posts on the bus that a source has ended. While another source follows, it drops the end, so that the elements after
// the pad do not get it.
typedef struct {
    gint armed;
    GstElement *pipeline;
} shim_succession;

static GstPadProbeReturn shim_source_ended(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_succession *succession = (shim_succession *)data;
    if (((GstEvent *)info->data)->type != GST_EVENT_EOS) return GST_PAD_PROBE_OK;
    if (!__atomic_load_n(&succession->armed, __ATOMIC_ACQUIRE)) return GST_PAD_PROBE_OK;
    gst_element_post_message(
        succession->pipeline,
        gst_message_new_application((GstObject *)succession->pipeline, gst_structure_new_empty("source-ended")));
    return GST_PAD_PROBE_DROP;
}
static inline void shim_watch_end(GstPad *pad, shim_succession *succession) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, shim_source_ended, succession, NULL);
}
static inline void shim_succession_arm(shim_succession *succession, gint armed) {
    __atomic_store_n(&succession->armed, armed, __ATOMIC_RELEASE);
}

// Changes a file for its readers: skips its first bytes or replaces them by a header, and refuses reads above a limit,
// because parsers read any size that a header claims into memory. Runs on GStreamer's threads.
typedef struct {
    guint64 skip;
    GBytes *header;
    gsize header_size;
    guint limit;
    GstPadGetRangeFunction get_range;
    GstPadQueryFunction query;
} shim_view;

// Reads a range that begins in the header: the rest of the header, and the following bytes of the file.
static GstFlowReturn shim_view_get_head(
    shim_view *view, GstPad *pad, GstObject *parent, guint64 offset, guint length, GstBuffer **buffer) {
    gsize count = MIN((gsize)length, view->header_size - (gsize)offset);
    GBytes *part = g_bytes_new_from_bytes(view->header, (gsize)offset, count);
    GstBuffer *whole = gst_buffer_new_wrapped_bytes(part);
    g_bytes_unref(part);
    if (length > count) {
        GstBuffer *rest = NULL;
        GstFlowReturn result = view->get_range(pad, parent, view->skip, length - (guint)count, &rest);
        if (result == GST_FLOW_OK) {
            whole = gst_buffer_append(whole, rest);
        } else if (result != GST_FLOW_EOS) {
            gst_buffer_unref(whole);
            return result;
        }
    }
    if (*buffer) {
        GstMapInfo map;
        gst_buffer_map(whole, &map, GST_MAP_READ);
        gst_buffer_resize(*buffer, 0, (gssize)gst_buffer_fill(*buffer, 0, map.data, map.size));
        gst_buffer_unmap(whole, &map);
        gst_buffer_unref(whole);
    } else {
        *buffer = whole;
    }
    return GST_FLOW_OK;
}

static GstFlowReturn shim_view_get_range(
    GstPad *pad, GstObject *parent, guint64 offset, guint length, GstBuffer **buffer) {
    shim_view *view = (shim_view *)g_object_get_data((GObject *)pad, "shim-view");
    if (length > view->limit) {
        GST_ELEMENT_ERROR(
            (GstElement *)parent, RESOURCE, READ, ("a piece of it claims to be %u MB", length >> 20), (NULL));
        return GST_FLOW_ERROR;
    }
    GstFlowReturn result = offset < view->header_size
        ? shim_view_get_head(view, pad, parent, offset, length, buffer)
        : view->get_range(pad, parent, offset - view->header_size + view->skip, length, buffer);
    if (result == GST_FLOW_OK && view->skip && *buffer) {
        *buffer = gst_buffer_make_writable(*buffer);
        GST_BUFFER_OFFSET(*buffer) = offset;
        GST_BUFFER_OFFSET_END(*buffer) = offset + gst_buffer_get_size(*buffer);
    }
    return result;
}
static gboolean shim_view_query(GstPad *pad, GstObject *parent, GstQuery *query) {
    shim_view *view = (shim_view *)g_object_get_data((GObject *)pad, "shim-view");
    gboolean result = view->query(pad, parent, query);
    if (result && view->skip && GST_QUERY_TYPE(query) == GST_QUERY_DURATION) {
        GstFormat format;
        gint64 size;
        gst_query_parse_duration(query, &format, &size);
        if (format == GST_FORMAT_BYTES && size > (gint64)view->skip)
            gst_query_set_duration(query, format, size - (gint64)view->skip + (gint64)view->header_size);
    }
    return result;
}
static void shim_view_free(gpointer data) {
    g_bytes_unref(((shim_view *)data)->header);
    g_free(data);
}
static inline void shim_limit_view(GstPad *pad, guint64 skip, const void *header, gsize header_size, guint limit) {
    shim_view *view = g_new0(shim_view, 1);
    view->skip = skip;
    view->header = g_bytes_new(header, header_size);
    view->header_size = header_size;
    view->limit = limit;
    view->get_range = GST_PAD_GETRANGEFUNC(pad);
    view->query = GST_PAD_QUERYFUNC(pad);
    g_object_set_data_full((GObject *)pad, "shim-view", view, shim_view_free);
    gst_pad_set_getrange_function(pad, shim_view_get_range);
    gst_pad_set_query_function(pad, shim_view_query);
}

// Limits the bytes from a server between two buffers of sound, because parsers keep all of them in memory. Runs on
// GStreamer's threads.
typedef struct {
    gint64 bytes;
    gint64 limit;
} shim_appetite;

static GstPadProbeReturn shim_appetite_feed(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_appetite *appetite = (shim_appetite *)data;
    gsize size = info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST
        ? gst_buffer_list_calculate_size((GstBufferList *)info->data)
        : gst_buffer_get_size((GstBuffer *)info->data);
    gint64 before = __atomic_fetch_add(&appetite->bytes, (gint64)size, __ATOMIC_RELAXED);
    if (before + (gint64)size <= appetite->limit) return GST_PAD_PROBE_OK;
    GstElement *element = gst_pad_get_parent_element(pad);
    if (element && before <= appetite->limit)
        GST_ELEMENT_ERROR(
            element, RESOURCE, READ, ("more than %d MB come before any sound", (int)(appetite->limit >> 20)), (NULL));
    if (element) gst_object_unref(element);
    return GST_PAD_PROBE_DROP;
}
static GstPadProbeReturn shim_appetite_still(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)info;
    __atomic_store_n(&((shim_appetite *)data)->bytes, 0, __ATOMIC_RELAXED);
    return GST_PAD_PROBE_OK;
}
static inline void shim_limit_appetite(GstPad *source, GstPad *sound, gint64 limit) {
    shim_appetite *appetite = g_atomic_rc_box_new0(shim_appetite);
    appetite->limit = limit;
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    gst_pad_add_probe(source, type, shim_appetite_feed, appetite, g_atomic_rc_box_release);
    gst_pad_add_probe(
        sound, GST_PAD_PROBE_TYPE_BUFFER, shim_appetite_still, g_atomic_rc_box_acquire(appetite),
        g_atomic_rc_box_release);
}

// Removes the padding of an encoder before and after the sound: `skip` frames, and everything after the next `length`
// frames. For the elements after the pad, the sound begins at 0; seeks and lengths are converted. Runs on GStreamer's
// threads; only the streaming thread uses the changing fields.
typedef struct {
    guint64 skip;
    guint64 length;
    gint rate;
    gsize frame;   // bytes; 0 if the format is unexpected: then nothing is removed
    guint64 base;  // the running time of the beginning of the current segment; none before the first, or after a flush
    guint64 from;  // the position of its beginning
} shim_trim;

static inline guint64 shim_trim_time(shim_trim *trim, guint64 frames) {
    return gst_util_uint64_scale(frames, GST_SECOND, (guint64)trim->rate);
}
static inline guint64 shim_less(guint64 time, guint64 less) {
    return time == GST_CLOCK_TIME_NONE ? time : time > less ? time - less : 0;
}
static void shim_trim_format(shim_trim *trim, GstEvent *event) {
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    const GstStructure *structure = gst_caps_get_structure(caps, 0);
    const char *format = gst_structure_get_string(structure, "format");
    int rate = 0, channels = 0, bits = format ? atoi(format + 1) : 0;
    gst_structure_get_int(structure, "rate", &rate);
    gst_structure_get_int(structure, "channels", &channels);
    trim->frame = rate == trim->rate && bits % 8 == 0 && !strchr(format, '_') ? (gsize)(bits / 8 * channels) : 0;
}
static GstEvent *shim_trim_segment(shim_trim *trim, GstEvent *event) {
    GstSegment segment;
    gst_event_copy_segment(event, &segment);
    if (segment.format != GST_FORMAT_TIME) return event;
    guint64 skip = shim_trim_time(trim, trim->skip), length = shim_trim_time(trim, trim->length);
    segment.start = shim_less(segment.start, skip);
    segment.stop = shim_less(segment.stop, skip);
    segment.time = shim_less(segment.time, skip);
    segment.position = shim_less(segment.position, skip);
    if (segment.duration != GST_CLOCK_TIME_NONE) segment.duration = length;
    // A segment that follows without a flush, as in a loop, begins at the trimmed end of the last one.
    if (trim->base != GST_CLOCK_TIME_NONE && segment.base > trim->base)
        segment.base = trim->base + (guint64)((double)shim_less(length, trim->from) / ABS(segment.rate));
    trim->base = segment.base;
    trim->from = segment.start;
    GstEvent *changed = gst_event_new_segment(&segment);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    return changed;
}
static GstEvent *shim_trim_seek(shim_trim *trim, GstEvent *event) {
    gdouble rate;
    GstFormat format;
    GstSeekFlags flags;
    GstSeekType start_type, stop_type;
    gint64 start, stop, skip = (gint64)shim_trim_time(trim, trim->skip);
    gst_event_parse_seek(event, &rate, &format, &flags, &start_type, &start, &stop_type, &stop);
    if (format != GST_FORMAT_TIME) return event;
    if (start_type == GST_SEEK_TYPE_SET) start += skip;
    if (stop_type == GST_SEEK_TYPE_SET) stop += skip;
    GstEvent *changed = gst_event_new_seek(rate, format, flags, start_type, start, stop_type, stop);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    return changed;
}
static GstPadProbeReturn shim_trim_buffer(shim_trim *trim, GstPadProbeInfo *info) {
    GstBuffer *buffer = (GstBuffer *)info->data;
    if (!trim->frame || !GST_BUFFER_PTS_IS_VALID(buffer)) return GST_PAD_PROBE_OK;
    gint64 count = (gint64)(gst_buffer_get_size(buffer) / trim->frame);
    gint64 first = (gint64)gst_util_uint64_scale_round(GST_BUFFER_PTS(buffer), (guint64)trim->rate, GST_SECOND)
        - (gint64)trim->skip;
    gint64 before = first < 0 ? -first : 0;
    gint64 behind = first + count > (gint64)trim->length ? first + count - (gint64)trim->length : 0;
    if (before + behind >= count) return GST_PAD_PROBE_DROP;
    buffer = gst_buffer_make_writable(buffer);
    if (before || behind)
        gst_buffer_resize(
            buffer, (gssize)before * (gssize)trim->frame, (gssize)(count - before - behind) * (gssize)trim->frame);
    GST_BUFFER_PTS(buffer) = shim_trim_time(trim, (guint64)(first + before));
    GST_BUFFER_DURATION(buffer) =
        shim_trim_time(trim, (guint64)(first + count - behind)) - GST_BUFFER_PTS(buffer);
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static GstPadProbeReturn shim_trim_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    shim_trim *trim = (shim_trim *)data;
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER) return shim_trim_buffer(trim, info);
    if (info->type & GST_PAD_PROBE_TYPE_QUERY_UPSTREAM) {
        GstQuery *query = (GstQuery *)info->data;
        GstFormat format;
        gint64 length;
        if (!(info->type & GST_PAD_PROBE_TYPE_PULL) || GST_QUERY_TYPE(query) != GST_QUERY_DURATION)
            return GST_PAD_PROBE_OK;
        gst_query_parse_duration(query, &format, &length);
        if (format == GST_FORMAT_TIME && length >= 0)
            gst_query_set_duration(query, format, (gint64)shim_trim_time(trim, trim->length));
        return GST_PAD_PROBE_OK;
    }
    GstEvent *event = (GstEvent *)info->data;
    switch (GST_EVENT_TYPE(event)) {
        case GST_EVENT_CAPS: shim_trim_format(trim, event); break;
        case GST_EVENT_SEGMENT: info->data = shim_trim_segment(trim, event); break;
        case GST_EVENT_SEEK: info->data = shim_trim_seek(trim, event); break;
        case GST_EVENT_FLUSH_STOP: trim->base = GST_CLOCK_TIME_NONE; break;
        default: break;
    }
    return GST_PAD_PROBE_OK;
}
static inline void shim_trim_pad(GstPad *pad, guint64 skip, guint64 length, gint rate) {
    shim_trim *trim = g_new0(shim_trim, 1);
    trim->skip = skip;
    trim->length = length;
    trim->rate = rate;
    trim->base = GST_CLOCK_TIME_NONE;
    GstPadProbeType type = (GstPadProbeType)(
        GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_BOTH | GST_PAD_PROBE_TYPE_EVENT_FLUSH
        | GST_PAD_PROBE_TYPE_QUERY_UPSTREAM);
    gst_pad_add_probe(pad, type, shim_trim_probe, trim, g_free);
}

// Counts the bytes through a pad, and drops those after `limit`. So lengths are exact, even if the loop is late.
typedef struct {
    gint64 bytes;
    gint64 limit;
    GstElement *pipeline;
} shim_tally;

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
static inline void shim_count_bytes(GstPad *pad, shim_tally *tally) {
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, shim_count, tally, NULL);
}
static inline gint64 shim_tally_bytes(shim_tally *tally) { return __atomic_load_n(&tally->bytes, __ATOMIC_RELAXED); }
static inline void shim_tally_limit(shim_tally *tally, gint64 limit) {
    __atomic_store_n(&tally->limit, limit, __ATOMIC_RELAXED);
}

// A file whose bytes must survive a crash of the machine. fdatasync runs on GStreamer's threads, so that neither the
// loop nor the sound waits for a slow disk. Only one runs at a time; further requests cause one more after it.
typedef struct {
    int descriptor;
    gint asked;  // 0: none runs; 1: one runs; 2: one runs, and another one follows
} shim_disk;

// Takes ownership of the descriptor.
static inline shim_disk *shim_disk_new(int descriptor) {
    shim_disk *disk = g_atomic_rc_box_new0(shim_disk);
    disk->descriptor = descriptor;
    return disk;
}
static void shim_disk_clear(gpointer disk) { close(((shim_disk *)disk)->descriptor); }
static inline void shim_disk_free(gpointer disk) { g_atomic_rc_box_release_full(disk, shim_disk_clear); }
static void shim_disk_run(GstElement *element, gpointer data) {
    (void)element;
    shim_disk *disk = (shim_disk *)data;
    do {
        g_atomic_int_set(&disk->asked, 1);
        fdatasync(disk->descriptor);
    } while (!g_atomic_int_compare_and_exchange(&disk->asked, 1, 0));
}
static inline void shim_disk_sync(shim_disk *disk, GstElement *element) {
    while (!g_atomic_int_compare_and_exchange(&disk->asked, 1, 2)) {
        if (g_atomic_int_get(&disk->asked) == 2) return;
        if (!g_atomic_int_compare_and_exchange(&disk->asked, 0, 1)) continue;
        gst_element_call_async(element, shim_disk_run, g_atomic_rc_box_acquire(disk), shim_disk_free);
        return;
    }
}

// A file in memory; -1 if there are no descriptors left. The headers define memfd_create only with _GNU_SOURCE.
static inline int shim_memory_file(const char *name) { return (int)syscall(SYS_memfd_create, name, 1u /* CLOEXEC */); }

// The clock of pulsesink gets the played time of its stream from libpulse (pa_stream_get_time). When a stream is
// uncorked, libpulse 16 continues from the future moment at which the server and the sink will have reacted. Before
// that moment, the result is negative, which is converted to a time in the far future. libpulse then keeps returning
// this time, because its times never decrease. So the sink assumes that all its data were played, and the clock stops.
//
// For a stream that waits for its first uncork, libpulse 16 returns how long it has waited. The pipeline would begin at
// this time, and play as much silence before its first sample. The right time is 0.
//
// So this clock does not ask libpulse before the first start, and for some time after a later start. It counts the time
// itself instead. If libpulse is nevertheless too far ahead, which may happen after the server lacked processor time,
// the clock does not ask it any more, and counts the time while the ring buffer runs. That is exact enough until the
// end of the current sound, but not to find the position at which a new sound begins. shim_clock_is_lost reports this
// state.
typedef struct {
    GMutex lock;
    GstAudioClockGetTimeFunc ask;
    GstAudioBaseSink *sink;
    GstClockTime told;
    gint64 asked;
    gint64 started;  // 0 before the first start
    gboolean runs;
    gboolean lost;
} shim_doubt;

// How far the time of a stream may be ahead, in nanoseconds: more than a server corrects at once.
static const GstClockTime shim_doubt_slack = 250 * GST_MSECOND;
// How long libpulse is not asked, in microseconds: the latency of a request, and half of the sink's buffer.
static const gint64 shim_doubt_rest = 150 * G_TIME_SPAN_MILLISECOND;

static GstClockTime shim_doubted_time(GstClock *clock, gpointer data) {
    shim_doubt *doubt = (shim_doubt *)g_object_get_data((GObject *)clock, "shim-doubt");
    g_mutex_lock(&doubt->lock);
    GstAudioRingBuffer *ring = doubt->sink->ringbuffer;
    gboolean runs = ring && g_atomic_int_get(&ring->state) == GST_AUDIO_RING_BUFFER_STATE_STARTED;
    gint64 now = g_get_monotonic_time();
    if (runs && !doubt->runs) {
        // The time cannot be negative at the first start.
        if (doubt->started) doubt->started = now;
        else doubt->started = 1;
    }
    GstClockTime passed = (GstClockTime)(now - doubt->asked) * GST_USECOND;
    // A pipeline asks when it begins to play, shortly before the ring buffer starts.
    GstClockTime counted = doubt->told + (runs ? passed : 0);
    GstClockTime time = counted;
    if (!doubt->lost && doubt->started && !(runs && now - doubt->started < shim_doubt_rest)) {
        time = doubt->ask(clock, data);
        if (GST_CLOCK_TIME_IS_VALID(time) && time > doubt->told + passed + shim_doubt_slack) {
            doubt->lost = TRUE;
            time = counted;
        }
    }
    if (GST_CLOCK_TIME_IS_VALID(time)) {
        doubt->told = time;
        doubt->asked = now;
        doubt->runs = runs;
    }
    g_mutex_unlock(&doubt->lock);
    return time;
}
static void shim_free_doubt(gpointer data) {
    g_mutex_clear(&((shim_doubt *)data)->lock);
    g_free(data);
}
// Installs this clock. Must be called before the first use of the sink. Does nothing for a sink without a clock.
static inline void shim_doubt_clock(GstElement *element) {
    GstAudioBaseSink *sink = (GstAudioBaseSink *)element;
    GstAudioClock *clock = (GstAudioClock *)sink->provided_clock;
    if (!clock || !clock->func) return;
    shim_doubt *doubt = g_new0(shim_doubt, 1);
    g_mutex_init(&doubt->lock);
    doubt->ask = clock->func;
    doubt->sink = sink;
    doubt->asked = g_get_monotonic_time();
    g_object_set_data_full((GObject *)clock, "shim-doubt", doubt, shim_free_doubt);
    clock->func = shim_doubted_time;
}
static inline shim_doubt *shim_doubt_of(GstElement *element) {
    GstClock *clock = ((GstAudioBaseSink *)element)->provided_clock;
    return clock ? (shim_doubt *)g_object_get_data((GObject *)clock, "shim-doubt") : NULL;
}
// Whether the clock no longer asks libpulse.
static inline gboolean shim_clock_is_lost(GstElement *element) {
    shim_doubt *doubt = shim_doubt_of(element);
    if (!doubt) return FALSE;
    g_mutex_lock(&doubt->lock);
    gboolean lost = doubt->lost;
    g_mutex_unlock(&doubt->lock);
    return lost;
}
// The sink has no stream. The next one begins at 0.
static inline void shim_renew_clock(GstElement *element) {
    shim_doubt *doubt = shim_doubt_of(element);
    if (!doubt) return;
    g_mutex_lock(&doubt->lock);
    doubt->told = 0;
    doubt->asked = g_get_monotonic_time();
    doubt->started = 0;
    doubt->runs = doubt->lost = FALSE;
    g_mutex_unlock(&doubt->lock);
}
