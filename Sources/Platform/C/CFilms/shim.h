// Functions for films that Swift cannot import from GStreamer: variadic functions, function-like macros, and code that
// runs on GStreamer's own threads.
#pragma once
#include "../CGStreamer/shim.h"
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/pbutils/pbutils.h>
#include <gst/tag/tag.h>
#include <gst/video/gstvideocodecalphameta.h>
#include <gst/video/video.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// A source element, or an element that makes one, reads this URI.
static inline void films_read(GstElement *element, const char *uri) {
    if (GST_IS_URI_HANDLER(element)) gst_uri_handler_set_uri((GstURIHandler *)element, uri, NULL);
    else shim_set_string(element, "uri", uri);
}

// Calls a function for each element that a pipeline gets from now on, on the thread that adds it: for those of a factory,
// or for all whose factory is known.
typedef void (*films_new_element)(GstElement *element, GstElementFactory *factory, gpointer data);
typedef struct {
    const char *name;  // of the factory; NULL: all
    films_new_element handle;
    gpointer data;
    GDestroyNotify release;
} films_watch;

static void films_element_added(GstBin *pipeline, GstBin *bin, GstElement *element, gpointer data) {
    (void)pipeline, (void)bin;
    films_watch *watch = (films_watch *)data;
    GstElementFactory *factory = gst_element_get_factory(element);
    if (!factory || (watch->name && strcmp(gst_plugin_feature_get_name((GstPluginFeature *)factory), watch->name))) return;
    watch->handle(element, factory, watch->data);
}
static void films_watch_free(gpointer data, GClosure *closure) {
    (void)closure;
    films_watch *watch = (films_watch *)data;
    if (watch->release) watch->release(watch->data);
    g_free(watch);
}
// Takes ownership of `data`, which `release` ends; both may be NULL.
static void films_on_element(
    GstElement *pipeline, const char *name, films_new_element handle, gpointer data, GDestroyNotify release) {
    films_watch *watch = g_new0(films_watch, 1);
    *watch = (films_watch){.name = name, .handle = handle, .data = data, .release = release};
    g_signal_connect_data(
        pipeline, "deep-element-added", G_CALLBACK(films_element_added), watch, films_watch_free, (GConnectFlags)0);
}

static void films_reader_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)data;
    // Some decoders read the file themselves, such as that of Musepack.
    GstElementFactoryListType readers =
        GST_ELEMENT_FACTORY_TYPE_DEMUXER | GST_ELEMENT_FACTORY_TYPE_PARSER | GST_ELEMENT_FACTORY_TYPE_DECODER;
    if (!gst_element_factory_list_is_type(factory, readers)) return;
    shim_delay_first_bytes(element);
}
static inline void films_hear_errors(GstElement *pipeline) {
    films_on_element(pipeline, NULL, films_reader_added, NULL, NULL);
}

// The demuxers of libav get no bytes at the end of a file, and some of them, such as that of NUT, then try again for ever.
// An error ends them: they have read the whole file. A probe gets reads before they happen only if it may block.
static GstPadProbeReturn films_libav_end(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)data;
    gint64 size = 0;
    if (!(info->type & GST_PAD_PROBE_TYPE_PULL) || info->data) return GST_PAD_PROBE_PASS;
    if (!gst_pad_peer_query_duration(pad, GST_FORMAT_BYTES, &size) || info->offset < (guint64)size)
        return GST_PAD_PROBE_PASS;
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_FLUSHING;
    return GST_PAD_PROBE_HANDLED;
}
// The decoder of GIF gives the time of the first picture to all of them. It decodes each picture at once, so each gets the
// time of the data that came last.
typedef struct {
    GstClockTime time;
    GstClockTime length;
} films_last_time;
static GstPadProbeReturn films_gif_data(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    films_last_time *last = (films_last_time *)data;
    last->time = GST_BUFFER_PTS((GstBuffer *)info->data);
    last->length = GST_BUFFER_DURATION((GstBuffer *)info->data);
    return GST_PAD_PROBE_OK;
}
static GstPadProbeReturn films_gif_picture(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    const films_last_time *last = (const films_last_time *)data;
    GstBuffer *buffer = gst_buffer_make_writable((GstBuffer *)info->data);
    GST_BUFFER_PTS(buffer) = last->time;
    GST_BUFFER_DURATION(buffer) = last->length;
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static void films_gif_probe(GstElement *element, const char *name, GstPadProbeCallback probe, films_last_time *last) {
    GstPad *pad = gst_element_get_static_pad(element, name);
    if (!pad) return;
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_BUFFER, probe, g_atomic_rc_box_acquire(last), (GDestroyNotify)g_atomic_rc_box_release);
    gst_object_unref(pad);
}
static void films_libav_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)data;
    const char *name = gst_plugin_feature_get_name((GstPluginFeature *)factory);
    if (g_str_has_prefix(name, "avdemux_")) {
        GstPad *pad = gst_element_get_static_pad(element, "sink");
        GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_PULL | GST_PAD_PROBE_TYPE_BLOCK);
        if (pad) gst_pad_add_probe(pad, type, films_libav_end, NULL, NULL);
        if (pad) gst_object_unref(pad);
    } else if (!strcmp(name, "avdec_gif")) {
        films_last_time *last = g_atomic_rc_box_new0(films_last_time);
        films_gif_probe(element, "sink", films_gif_data, last);
        films_gif_probe(element, "src", films_gif_picture, last);
        g_atomic_rc_box_release(last);
    }
}
static inline void films_mend_libav(GstElement *pipeline) {
    films_on_element(pipeline, NULL, films_libav_added, NULL, NULL);
}

// Reading a film frame by frame. Swift holds a `films_gate`; its probes check and change the input of the decoder.
//
// A decoder drops the frames before the segment, and moves the start of a frame that the segment cuts. Then the start
// of that frame is lost. So the segment is changed to begin at the start of the film, and the decoder passes on every
// frame from the key frame on, with its own time.
//
// Finding the key frames around a time needs no decoding. While `keys` is set, nothing goes to the decoder, and nothing
// is read after the first key frame behind `wanted`.
//
// Buffers from before a seek do not go to the decoder either. When the key frames are found, the demuxer ends the
// stream on its own thread, but a decoder that gets the end of the stream without a frame before it fails.
typedef struct {
    GMutex lock;
    GCond changed;
    gboolean keys;
    gboolean current;     // the buffers that arrive now were read after the seek
    gboolean done;
    GstClockTime wanted;  // stream times
    GstClockTime before;
    GstClockTime after;
    GstSegment segment;
    gboolean rebased;     // its times do not start at 0
} films_gate;

static inline films_gate *films_gate_new(void) {
    films_gate *gate = g_atomic_rc_box_new0(films_gate);
    g_mutex_init(&gate->lock);
    g_cond_init(&gate->changed);
    gst_segment_init(&gate->segment, GST_FORMAT_TIME);
    gate->current = TRUE;
    return gate;
}
static void films_gate_clear(gpointer data) {
    g_mutex_clear(&((films_gate *)data)->lock);
    g_cond_clear(&((films_gate *)data)->changed);
}
static inline void films_gate_free(gpointer gate) { g_atomic_rc_box_release_full(gate, films_gate_clear); }

// To be called before the seek to `wanted`, or before a pipeline begins to read.
static inline void films_gate_set(films_gate *gate, gboolean keys, GstClockTime wanted, gboolean seeks) {
    g_mutex_lock(&gate->lock);
    gate->current = !seeks;
    gate->keys = keys;
    gate->done = FALSE;
    gate->wanted = wanted;
    gate->before = gate->after = GST_CLOCK_TIME_NONE;
    g_mutex_unlock(&gate->lock);
}
// To be called after the seek: waits until the key frames around the time are known; false if that takes too long.
static inline gboolean films_gate_wait(films_gate *gate, gint64 microseconds) {
    gint64 end = g_get_monotonic_time() + microseconds;
    g_mutex_lock(&gate->lock);
    gboolean in_time = TRUE;
    while (!gate->done && in_time) in_time = g_cond_wait_until(&gate->changed, &gate->lock, end);
    gboolean done = gate->done;
    g_mutex_unlock(&gate->lock);
    return done;
}
static inline gboolean films_gate_is_rebased(films_gate *gate) { return gate->rebased; }
static inline GstClockTime films_gate_before(films_gate *gate) { return gate->before; }
static inline GstClockTime films_gate_after(films_gate *gate) { return gate->after; }

static void films_gate_open(films_gate *gate) {
    gate->done = TRUE;
    g_cond_broadcast(&gate->changed);
}

static GstPadProbeReturn films_gate_event(films_gate *gate, GstPadProbeInfo *info) {
    GstEvent *event = (GstEvent *)info->data;
    if (GST_EVENT_TYPE(event) == GST_EVENT_EOS) {
        g_mutex_lock(&gate->lock);
        gboolean dropped = gate->keys || !gate->current;
        if (gate->current) films_gate_open(gate);
        g_mutex_unlock(&gate->lock);
        if (dropped) {
            gst_event_unref(event);
            info->data = NULL;
            return GST_PAD_PROBE_HANDLED;
        }
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_FLUSH_STOP) {
        g_mutex_lock(&gate->lock);
        gate->current = TRUE;
        g_mutex_unlock(&gate->lock);
    } else if (GST_EVENT_TYPE(event) == GST_EVENT_SEGMENT) {
        GstSegment segment;
        gst_event_copy_segment(event, &segment);
        if (segment.format != GST_FORMAT_TIME) return GST_PAD_PROBE_OK;
        GstClockTime shift = MIN(segment.start, segment.time);
        segment.start -= shift;
        segment.time -= shift;
        segment.position = segment.start;
        segment.offset = 0;
        g_mutex_lock(&gate->lock);
        gate->segment = segment;
        g_mutex_unlock(&gate->lock);
        GstEvent *changed = gst_event_new_segment(&segment);
        gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
        gst_event_unref(event);
        info->data = changed;
    }
    return GST_PAD_PROBE_OK;
}
static GstPadProbeReturn films_gate_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    films_gate *gate = (films_gate *)data;
    if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)) return films_gate_event(gate, info);
    GstBuffer *buffer = (GstBuffer *)info->data;
    g_mutex_lock(&gate->lock);
    gboolean dropped = gate->keys || !gate->current;
    if (dropped) {
        GstClockTime time = GST_BUFFER_PTS_IS_VALID(buffer) ? GST_BUFFER_PTS(buffer) : GST_BUFFER_DTS(buffer);
        if (gate->current && !gate->done && GST_CLOCK_TIME_IS_VALID(time) && !GST_BUFFER_FLAG_IS_SET(buffer, GST_BUFFER_FLAG_DELTA_UNIT)) {
            guint64 place = 0;
            int sign = gst_segment_to_stream_time_full(&gate->segment, GST_FORMAT_TIME, time, &place);
            if (sign > 0 && place > gate->wanted) {
                gate->after = place;
                films_gate_open(gate);
            } else if (sign > 0) {
                gate->before = place;
            }
        }
        if (gate->done) info->ABI.abi.flow_ret = GST_FLOW_EOS;
        info->data = NULL;
        gst_buffer_unref(buffer);
    }
    g_mutex_unlock(&gate->lock);
    return dropped ? GST_PAD_PROBE_HANDLED : GST_PAD_PROBE_OK;
}
static void films_gate_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    const char *name = gst_plugin_feature_get_name((GstPluginFeature *)factory);
    if (!strcmp(name, "tsdemux") || !strcmp(name, "mpegpsdemux")) ((films_gate *)data)->rebased = TRUE;
    if (!gst_element_factory_list_is_type(factory, GST_ELEMENT_FACTORY_TYPE_DECODER)) return;
    const char *klass = gst_element_factory_get_metadata(factory, GST_ELEMENT_METADATA_KLASS);
    if (!klass || (!strstr(klass, "Video") && !strstr(klass, "Image"))) return;
    // Decoders with several threads pass on the first frame late.
    if (g_object_class_find_property(G_OBJECT_GET_CLASS(element), "max-threads"))
        g_object_set(element, "max-threads", 1, NULL);
    GstPad *pad = gst_element_get_static_pad(element, "sink");
    if (!pad) return;
    GstPadProbeType type = (GstPadProbeType)(
        GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM | GST_PAD_PROBE_TYPE_EVENT_FLUSH);
    gst_pad_add_probe(pad, type, films_gate_probe, g_atomic_rc_box_acquire(data), films_gate_free);
    gst_object_unref(pad);
}
// Applies the gate to every video decoder that the pipeline gets from now on.
static inline void films_gate_watch(films_gate *gate, GstElement *pipeline) {
    films_on_element(pipeline, NULL, films_gate_added, g_atomic_rc_box_acquire(gate), films_gate_free);
}

// Bytes that replace the bytes of a file for its demuxer.
typedef struct {
    guint64 place;
    guint size;
    guint8 bytes[8];
} films_patch;

static GstPadProbeReturn films_patch_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    films_patch *patch = (films_patch *)data;
    GstBuffer *buffer = (GstBuffer *)info->data;
    guint64 begin = info->offset, end = begin + (buffer ? gst_buffer_get_size(buffer) : 0);
    guint64 from = MAX(begin, patch->place), to = MIN(end, patch->place + patch->size);
    if (from >= to) return GST_PAD_PROBE_OK;
    // The memory of the buffer may belong to the file.
    GstBuffer *changed = gst_buffer_copy_deep(buffer);
    gst_buffer_fill(changed, from - begin, patch->bytes + (from - patch->place), to - from);
    gst_buffer_unref(buffer);
    info->data = changed;
    return GST_PAD_PROBE_OK;
}
static void films_patch_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)factory;
    GstPad *pad = gst_element_get_static_pad(element, "sink");
    if (!pad) return;
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_PULL | GST_PAD_PROBE_TYPE_BUFFER);
    gst_pad_add_probe(pad, type, films_patch_probe, g_atomic_rc_box_acquire(data), (GDestroyNotify)g_atomic_rc_box_release);
    gst_object_unref(pad);
}
static void films_patch_release(gpointer data, GClosure *closure) {
    (void)closure;
    g_atomic_rc_box_release(data);
}
// Every demuxer of MP4 files that the pipeline gets from now on reads `value` as the number of `size` bytes at `place`.
static inline void films_patch_number(GstElement *pipeline, guint64 place, guint size, guint64 value) {
    films_patch *patch = g_atomic_rc_box_new0(films_patch);
    patch->place = place;
    patch->size = MIN(size, 8);
    for (guint index = 0; index < patch->size; index++)
        patch->bytes[index] = (guint8)(value >> (8 * (patch->size - 1 - index)));
    films_on_element(pipeline, "qtdemux", films_patch_added, patch, (GDestroyNotify)g_atomic_rc_box_release);
}

// The pipeline of a discoverer is private, but its source is not.
typedef struct {
    guint64 place;
    guint size;
} films_unknown_length;
static void films_discoverer_source(GstDiscoverer *discoverer, GstElement *source, gpointer data) {
    (void)discoverer;
    films_unknown_length *length = (films_unknown_length *)data;
    GstObject *top = (GstObject *)gst_object_ref(source);
    for (GstObject *parent; (parent = gst_object_get_parent(top)); top = parent) gst_object_unref(top);
    if (GST_IS_BIN(top)) {
        films_hear_errors((GstElement *)top);
        films_mend_libav((GstElement *)top);
        if (length->size) films_patch_number((GstElement *)top, length->place, length->size, 0);
    }
    gst_object_unref(top);
}
static void films_unknown_length_free(gpointer data, GClosure *closure) {
    (void)closure;
    g_free(data);
}
// It hears errors, and demuxers of MP4 files read 0 as the number of `size` bytes at `place`; size 0: no number changes.
static inline void films_prepare_discoverer(GstDiscoverer *discoverer, guint64 place, guint size) {
    films_unknown_length *length = g_new0(films_unknown_length, 1);
    length->place = place;
    length->size = size;
    g_signal_connect_data(
        discoverer, "source-setup", G_CALLBACK(films_discoverer_source), length, films_unknown_length_free,
        (GConnectFlags)0);
}

// qtdemux 1.22 takes numbers with the lowest byte first for numbers with the highest byte first in some QuickTime files. The
// format of those tracks is corrected. The number of a track is the end of the id of its stream.
typedef struct {
    guint count;
    guint tracks[16];
} films_byte_order;

static GstPadProbeReturn films_byte_order_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    films_byte_order *order = (films_byte_order *)data;
    GstEvent *event = (GstEvent *)info->data;
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS) return GST_PAD_PROBE_OK;
    gchar *id = gst_pad_get_stream_id(pad);
    const gchar *number = id ? strrchr(id, '/') : NULL;
    guint track = number ? (guint)g_ascii_strtoull(number + 1, NULL, 10) : 0;
    g_free(id);
    gboolean is_listed = FALSE;
    for (guint index = 0; index < order->count; index++) is_listed |= track && order->tracks[index] == track;
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    const gchar *format = gst_structure_get_string(gst_caps_get_structure(caps, 0), "format");
    if (!is_listed || !format || !g_str_has_suffix(format, "BE")) return GST_PAD_PROBE_OK;
    gchar *corrected = g_strdup(format);
    memcpy(corrected + strlen(corrected) - 2, "LE", 2);
    caps = gst_caps_copy(caps);
    gst_caps_set_simple(caps, "format", G_TYPE_STRING, corrected, NULL);
    g_free(corrected);
    GstEvent *changed = gst_event_new_caps(caps);
    gst_caps_unref(caps);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    info->data = changed;
    return GST_PAD_PROBE_OK;
}
static void films_byte_order_pad(GstElement *demuxer, GstPad *pad, gpointer data) {
    (void)demuxer;
    gst_pad_add_probe(
        pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, films_byte_order_probe, g_atomic_rc_box_acquire(data),
        (GDestroyNotify)g_atomic_rc_box_release);
}
static void films_byte_order_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)factory;
    g_signal_connect_data(
        element, "pad-added", G_CALLBACK(films_byte_order_pad), g_atomic_rc_box_acquire(data), films_patch_release,
        (GConnectFlags)0);
}
// Every demuxer of QuickTime files that the pipeline gets from now on takes the numbers of these tracks, at most 16, as
// numbers with the lowest byte first.
static inline void films_correct_byte_order(GstElement *pipeline, const guint *tracks, guint count) {
    films_byte_order *order = g_atomic_rc_box_new0(films_byte_order);
    order->count = MIN(count, 16);
    memcpy(order->tracks, tracks, order->count * sizeof *tracks);
    films_on_element(pipeline, "qtdemux", films_byte_order_added, order, (GDestroyNotify)g_atomic_rc_box_release);
}

// decodebin 1.22 finds no decoder for pictures with transparency if it may ignore other streams, and copying them crashes. No
// format that is written here has transparency, so it is left out: such a stream is a usual one with further data.
static GstPadProbeReturn films_opaque_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    if (!gst_buffer_get_video_codec_alpha_meta((GstBuffer *)info->data)) return GST_PAD_PROBE_OK;
    GstBuffer *buffer = gst_buffer_make_writable((GstBuffer *)info->data);
    gst_buffer_remove_meta(buffer, (GstMeta *)gst_buffer_get_video_codec_alpha_meta(buffer));
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
// Called before decodebin looks at the pad, which has its format already.
static void films_opaque_pad(GstElement *demuxer, GstPad *pad, gpointer data) {
    (void)demuxer, (void)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (caps && gst_structure_has_field(gst_caps_get_structure(caps, 0), "codec-alpha")) {
        caps = gst_caps_make_writable(caps);
        gst_structure_remove_field(gst_caps_get_structure(caps, 0), "codec-alpha");
        gst_pad_set_caps(pad, caps);
        gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, films_opaque_probe, NULL, NULL);
    }
    if (caps) gst_caps_unref(caps);
}
static void films_opaque_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)factory, (void)data;
    g_signal_connect(element, "pad-added", G_CALLBACK(films_opaque_pad), NULL);
}
static inline void films_leave_transparency(GstElement *pipeline) {
    films_on_element(pipeline, "matroskademux", films_opaque_added, NULL, NULL);
}

// An AVI file has the decoding times of its pictures. avidemux takes those of key frames also for the times at which they are
// shown, which is wrong if there are B-frames: two pictures would have one time. Without these, the decoder finds the times.
static GstPadProbeReturn films_decoding_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    // The first picture, also after a seek, tells the decoder when it begins.
    GstBuffer *first = (GstBuffer *)info->data;
    if (!GST_BUFFER_DTS_IS_VALID(first) || GST_BUFFER_IS_DISCONT(first)) return GST_PAD_PROBE_OK;
    GstBuffer *buffer = gst_buffer_make_writable((GstBuffer *)info->data);
    GST_BUFFER_PTS(buffer) = GST_CLOCK_TIME_NONE;
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
// For MPEG-4 only: decoders of other formats need the times.
static void films_decoding_pad(GstElement *demuxer, GstPad *pad, gpointer data) {
    (void)demuxer, (void)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    if (!caps) return;
    const char *name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
    if (!strcmp(name, "video/mpeg") || !strcmp(name, "video/x-divx"))
        gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, films_decoding_probe, NULL, NULL);
    gst_caps_unref(caps);
}
static void films_decoding_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)factory, (void)data;
    g_signal_connect(element, "pad-added", G_CALLBACK(films_decoding_pad), NULL);
}
static inline void films_correct_avi(GstElement *pipeline) {
    films_on_element(pipeline, "avidemux", films_decoding_added, NULL, NULL);
}

// MP4 files state the length of a film as the sum of the durations of its pictures in decoding order. If the durations
// vary, the sum may be too small for the last pictures, and players leave them out. So each picture gets the duration
// that it would have as the last one: until the end of all pictures before it.
typedef struct {
    GstClockTime first;  // the start of the first picture, minus its decoding time
    GstClockTime end;
} films_length;

static GstPadProbeReturn films_length_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    films_length *length = (films_length *)data;
    GstBuffer *buffer = (GstBuffer *)info->data;
    GstClockTime shown = GST_BUFFER_PTS(buffer), decoded = GST_BUFFER_DTS(buffer), own = GST_BUFFER_DURATION(buffer);
    if (!GST_CLOCK_TIME_IS_VALID(shown) || !GST_CLOCK_TIME_IS_VALID(decoded) || !GST_CLOCK_TIME_IS_VALID(own))
        return GST_PAD_PROBE_OK;
    if (!GST_CLOCK_TIME_IS_VALID(length->first)) length->first = shown > decoded ? shown - decoded : 0;
    length->end = MAX(length->end, shown + own);
    GstClockTime begin = decoded + length->first;
    if (length->end <= begin || length->end - begin <= own) return GST_PAD_PROBE_OK;
    buffer = gst_buffer_make_writable(buffer);
    GST_BUFFER_DURATION(buffer) = length->end - begin;
    info->data = buffer;
    return GST_PAD_PROBE_OK;
}
static inline void films_lengthen(GstElement *element) {
    GstPad *pad = gst_element_get_static_pad(element, "src");
    if (!pad) return;
    films_length *length = g_new0(films_length, 1);
    length->first = GST_CLOCK_TIME_NONE;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, films_length_probe, length, g_free);
    gst_object_unref(pad);
}

// An export has at most `rate` pictures a second. videorate would also leave out single pictures of a film with fewer, because
// the times of pictures are rounded: Matroska has milliseconds. Here each picture may come a quarter of a period early.
typedef struct {
    GstClockTime period;
    GstClockTime due;
} films_rate;
static GstPadProbeReturn films_rate_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    films_rate *rate = (films_rate *)data;
    GstClockTime time = GST_BUFFER_PTS((GstBuffer *)info->data);
    if (!GST_CLOCK_TIME_IS_VALID(time)) return GST_PAD_PROBE_OK;
    if (time + rate->period / 4 < rate->due) return GST_PAD_PROBE_DROP;
    rate->due = MAX(rate->due, time) + rate->period;
    return GST_PAD_PROBE_OK;
}
static inline void films_limit_rate(GstElement *element, guint rate) {
    GstPad *pad = gst_element_get_static_pad(element, "sink");
    if (!pad) return;
    films_rate *limit = g_new0(films_rate, 1);
    limit->period = GST_SECOND / rate;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_BUFFER, films_rate_probe, limit, g_free);
    gst_object_unref(pad);
}

// The earliest start and the latest end of all buffers through some pads, in stream time. They give exact lengths, and
// the progress of an export. They are read on other threads.
typedef struct {
    guint64 begin;
    guint64 end;
} films_tally;

static inline films_tally *films_tally_new(void) {
    films_tally *tally = g_atomic_rc_box_new0(films_tally);
    tally->begin = GST_CLOCK_TIME_NONE;
    return tally;
}
static inline guint64 films_tally_begin(films_tally *tally) { return __atomic_load_n(&tally->begin, __ATOMIC_RELAXED); }
static inline void films_tally_free(gpointer tally) { g_atomic_rc_box_release(tally); }
static inline guint64 films_tally_end(films_tally *tally) { return __atomic_load_n(&tally->end, __ATOMIC_RELAXED); }

static void films_tally_add(films_tally *tally, GstPad *pad, GstBuffer *buffer) {
    GstClockTime time = GST_BUFFER_PTS_IS_VALID(buffer) ? GST_BUFFER_PTS(buffer) : GST_BUFFER_DTS(buffer);
    if (!GST_CLOCK_TIME_IS_VALID(time)) return;
    GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_SEGMENT, 0);
    if (!event) return;
    const GstSegment *segment;
    gst_event_parse_segment(event, &segment);
    guint64 begin = 0, end = 0;
    gboolean is_inside = segment->format == GST_FORMAT_TIME
        && gst_segment_to_stream_time_full(segment, GST_FORMAT_TIME, time, &begin) > 0;
    if (is_inside) {
        if (GST_BUFFER_DURATION_IS_VALID(buffer)) time += GST_BUFFER_DURATION(buffer);
        if (segment->stop != GST_CLOCK_TIME_NONE && time > segment->stop) time = segment->stop;
        is_inside = gst_segment_to_stream_time_full(segment, GST_FORMAT_TIME, time, &end) > 0;
    }
    gst_event_unref(event);
    if (!is_inside) return;
    guint64 before = films_tally_begin(tally);
    while (begin < before
           && !__atomic_compare_exchange_n(&tally->begin, &before, begin, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
    before = films_tally_end(tally);
    while (end > before
           && !__atomic_compare_exchange_n(&tally->end, &before, end, FALSE, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}
static gboolean films_tally_item(GstBuffer **buffer, guint index, gpointer data) {
    (void)index;
    gpointer *both = (gpointer *)data;
    films_tally_add((films_tally *)both[0], (GstPad *)both[1], *buffer);
    return TRUE;
}
static GstPadProbeReturn films_tally_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    if (info->type & GST_PAD_PROBE_TYPE_BUFFER_LIST) {
        gpointer both[] = {data, pad};
        gst_buffer_list_foreach((GstBufferList *)info->data, films_tally_item, both);
    } else {
        films_tally_add((films_tally *)data, pad, (GstBuffer *)info->data);
    }
    return GST_PAD_PROBE_OK;
}
static inline void films_tally_pad(films_tally *tally, GstPad *pad) {
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST);
    gst_pad_add_probe(pad, type, films_tally_probe, g_atomic_rc_box_acquire(tally), films_tally_free);
}

// Every pad that a bin gets from now on is linked to a sink that only counts.
static void films_sink_pad(GstElement *bin, GstPad *pad, gpointer data) {
    GstElement *pipeline = (GstElement *)gst_element_get_parent(bin);
    GstElement *sink = gst_element_factory_make("fakesink", NULL);
    if (pipeline && sink) {
        g_object_set(sink, "sync", FALSE, "async", FALSE, NULL);
        gst_bin_add((GstBin *)pipeline, sink);
        gst_element_sync_state_with_parent(sink);
        GstPad *end = gst_element_get_static_pad(sink, "sink");
        films_tally_pad((films_tally *)data, end);
        gst_pad_link(pad, end);
        gst_object_unref(end);
    }
    if (pipeline) gst_object_unref(pipeline);
}
static void films_tally_release(gpointer data, GClosure *closure) {
    (void)closure;
    films_tally_free(data);
}
static inline void films_tally_all(films_tally *tally, GstElement *bin) {
    g_signal_connect_data(
        bin, "pad-added", G_CALLBACK(films_sink_pad), g_atomic_rc_box_acquire(tally), films_tally_release,
        (GConnectFlags)0);
}

// Hardware decoders are not used: they may hang, and all programs share the few of them.
static inline void films_leave_hardware(void) {
    GList *list = gst_element_factory_list_get_elements(GST_ELEMENT_FACTORY_TYPE_HARDWARE, GST_RANK_NONE);
    for (GList *link = list; link; link = link->next)
        gst_plugin_feature_set_rank((GstPluginFeature *)link->data, GST_RANK_NONE);
    gst_plugin_feature_list_free(list);
}

// The rank of an element that is installed.
static inline void films_rank(const char *name, guint rank) {
    GstElementFactory *factory = gst_element_factory_find(name);
    if (!factory) return;
    gst_plugin_feature_set_rank((GstPluginFeature *)factory, rank);
    gst_object_unref(factory);
}

// Elements that read playlists are not used: playlists name other files, which would be opened and copied into an
// export.
static inline void films_leave_playlists(void) {
    const char *names[] = {"hlsdemux", "hlsdemux2", "dashdemux", "dashdemux2", "mssdemux", "mssdemux2", "sdpdemux"};
    for (size_t index = 0; index < sizeof names / sizeof names[0]; index++) films_rank(names[index], GST_RANK_NONE);
}

// The time of a sample in its film; none if it has no time, or is before the start of the film.
static inline GstClockTime films_sample_time(GstSample *sample) {
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    GstSegment *segment = gst_sample_get_segment(sample);
    if (!buffer || !segment || segment->format != GST_FORMAT_TIME || !GST_BUFFER_PTS_IS_VALID(buffer))
        return GST_CLOCK_TIME_NONE;
    return gst_segment_to_stream_time(segment, GST_FORMAT_TIME, GST_BUFFER_PTS(buffer));
}

// The duration of a sample; none if unknown.
static inline GstClockTime films_sample_length(GstSample *sample) {
    GstBuffer *buffer = gst_sample_get_buffer(sample);
    return buffer ? GST_BUFFER_DURATION(buffer) : GST_CLOCK_TIME_NONE;
}

// The rotation of the pictures on a pad: a value of videoflip's `video-direction`.
static inline gint films_orientation(GstPad *pad) {
    GstVideoOrientationMethod method = GST_VIDEO_ORIENTATION_IDENTITY;
    for (guint index = 0;; index++) {
        GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_TAG, index);
        if (!event) return (gint)method;
        GstTagList *tags;
        gst_event_parse_tag(event, &tags);
        gst_video_orientation_from_tag(tags, &method);
        gst_event_unref(event);
    }
}

// The brightness of a picture in memory, one byte for each pixel: at `first` + y * stride + x * step.
typedef struct {
    const guint8 *first;
    gint width, height, stride, step;
    GstVideoFrame frame;
} films_brightness;
// False for a format that is not supported here. films_brightness_unmap ends it; the sample must live until then.
static inline gboolean films_brightness_map(GstSample *sample, films_brightness *plane) {
    GstVideoInfo info;
    GstCaps *caps = gst_sample_get_caps(sample);
    if (!caps || !gst_video_info_from_caps(&info, caps)) return FALSE;
    if (GST_VIDEO_INFO_COMP_DEPTH(&info, 0) != 8 || GST_VIDEO_FORMAT_INFO_IS_COMPLEX(info.finfo)) return FALSE;
    if (!gst_video_frame_map(&plane->frame, &info, gst_sample_get_buffer(sample), GST_MAP_READ)) return FALSE;
    plane->first = GST_VIDEO_FRAME_COMP_DATA(&plane->frame, 0);
    plane->stride = GST_VIDEO_FRAME_COMP_STRIDE(&plane->frame, 0);
    plane->step = GST_VIDEO_FRAME_COMP_PSTRIDE(&plane->frame, 0);
    plane->width = GST_VIDEO_FRAME_COMP_WIDTH(&plane->frame, 0);
    plane->height = GST_VIDEO_FRAME_COMP_HEIGHT(&plane->frame, 0);
    return TRUE;
}
static inline void films_brightness_unmap(films_brightness *plane) { gst_video_frame_unmap(&plane->frame); }

// A sink drops what comes before the start of its segment. So the segment is changed to begin at 0, and its `offset`, which
// matters only for clocks, keeps the time in the film at which it began.
static GstPadProbeReturn films_lead_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    GstEvent *event = (GstEvent *)info->data;
    if (GST_EVENT_TYPE(event) != GST_EVENT_SEGMENT) return GST_PAD_PROBE_OK;
    GstSegment segment;
    gst_event_copy_segment(event, &segment);
    if (segment.format != GST_FORMAT_TIME || segment.start < segment.time) return GST_PAD_PROBE_OK;
    segment.offset = segment.start - segment.time;
    segment.start = segment.time = segment.position = segment.base = 0;
    GstEvent *changed = gst_event_new_segment(&segment);
    gst_event_set_seqnum(changed, gst_event_get_seqnum(event));
    gst_event_unref(event);
    info->data = changed;
    return GST_PAD_PROBE_OK;
}
static inline void films_keep_lead(GstElement *sink) {
    GstPad *pad = gst_element_get_static_pad(sink, "sink");
    if (!pad) return;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, films_lead_probe, NULL, NULL);
    gst_object_unref(pad);
}
// The time in the film; 0: it has none.
static int films_place(const GstSegment *segment, GstClockTime time, gint64 *place) {
    guint64 found = 0;
    int sign = GST_CLOCK_TIME_IS_VALID(time) ? gst_segment_to_stream_time_full(segment, GST_FORMAT_TIME, time, &found) : 0;
    *place = (sign < 0 ? -(gint64)found : (gint64)found) - (gint64)segment->offset;
    return sign;
}
// The time by which the first sample of a prepared sink comes before `base`, in nanoseconds: a decoder needs it, but it is not
// shown. 0 for other samples.
static inline GstClockTime films_lead(GstElement *sink, GstClockTime base) {
    GstSample *sample = gst_app_sink_try_pull_preroll((GstAppSink *)sink, 0);
    if (!sample) return 0;
    gint64 begin = 0;
    int sign = films_place(gst_sample_get_segment(sample), GST_BUFFER_PTS(gst_sample_get_buffer(sample)), &begin);
    gst_sample_unref(sample);
    return sign != 0 && begin < (gint64)base ? (GstClockTime)((gint64)base - begin) : 0;
}

// vp9dec confuses the colours of RGB pictures if it has to copy them: then its next element does not know that the planes of
// a picture may be anywhere (GstVideoMeta). A sink says that it does.
static GstPadProbeReturn films_planes_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad, (void)data;
    GstQuery *query = (GstQuery *)info->data;
    if (GST_QUERY_TYPE(query) != GST_QUERY_ALLOCATION || !(info->type & GST_PAD_PROBE_TYPE_PUSH)) return GST_PAD_PROBE_OK;
    GstCaps *caps = NULL;
    gst_query_parse_allocation(query, &caps, NULL);
    const char *format = caps ? gst_structure_get_string(gst_caps_get_structure(caps, 0), "format") : NULL;
    if (!format || strcmp(format, "GBR")) return GST_PAD_PROBE_OK;
    gst_query_add_allocation_meta(query, GST_VIDEO_META_API_TYPE, NULL);
    return GST_PAD_PROBE_HANDLED;
}
static inline void films_accept_planes(GstElement *sink) {
    GstPad *pad = gst_element_get_static_pad(sink, "sink");
    if (!pad) return;
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_QUERY_DOWNSTREAM, films_planes_probe, NULL, NULL);
    gst_object_unref(pad);
}

// A bridge from a pipeline that reads to a pipeline that writes. Samples of an appsink are pushed into the element
// `target`, on the same thread, with times relative to `base`. Coded samples keep their decoding order. Decoding times
// may be negative, so they are relative to a segment that begins late, as encoders do it.
typedef struct {
    GstElement *sink;  // owns the bridge
    GstElement *target;
    GstPad *source;  // linked to the sink pad of `target`; in no pipeline
    gint64 base;     // may be before the start of the film
    gboolean coded;
    GstCaps *caps;  // the last ones that `target` got
} films_bridge;

static const GstClockTime films_late = 1000 * 3600 * GST_SECOND;

static GstClockTime films_bridge_time(films_bridge *bridge, const GstSegment *segment, GstClockTime time, gint64 *place) {
    if (films_place(segment, time, place) == 0) return GST_CLOCK_TIME_NONE;
    *place -= bridge->base;
    if (bridge->coded) return (GstClockTime)(*place + (gint64)films_late);
    return *place < 0 ? 0 : (GstClockTime)*place;
}
// The language and the title of a track belong to the track, not to the film.
static void films_bridge_language(films_bridge *bridge) {
    GstPad *pad = gst_element_get_static_pad((GstElement *)bridge->sink, "sink");
    GstTagList *own = gst_tag_list_new_empty();
    for (guint index = 0; pad; index++) {
        GstEvent *event = gst_pad_get_sticky_event(pad, GST_EVENT_TAG, index);
        if (!event) break;
        GstTagList *tags;
        gst_event_parse_tag(event, &tags);
        if (gst_tag_list_get_scope(tags) == GST_TAG_SCOPE_STREAM) {
            const char *names[] = {GST_TAG_LANGUAGE_CODE, GST_TAG_LANGUAGE_NAME};
            for (guint name = 0; name < G_N_ELEMENTS(names); name++) {
                const GValue *value = gst_tag_list_get_value_index(tags, names[name], 0);
                if (value) gst_tag_list_add_value(own, GST_TAG_MERGE_REPLACE, names[name], value);
            }
        }
        gst_event_unref(event);
    }
    if (pad) gst_object_unref(pad);
    if (gst_tag_list_is_empty(own)) gst_tag_list_unref(own);
    else gst_pad_push_event(bridge->source, gst_event_new_tag(own));
}
// Sent before the first buffer, and when the format changes.
static void films_bridge_announce(films_bridge *bridge, GstCaps *caps) {
    if (!caps || (bridge->caps && gst_caps_is_equal(caps, bridge->caps))) return;
    gboolean isFirst = !bridge->caps;
    gst_caps_replace(&bridge->caps, caps);
    gst_pad_push_event(bridge->source, gst_event_new_caps(caps));
    if (!isFirst) return;
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    if (bridge->coded) segment.start = segment.position = films_late;
    gst_pad_push_event(bridge->source, gst_event_new_segment(&segment));
    films_bridge_language(bridge);
}
static GstFlowReturn films_bridge_take(films_bridge *bridge, GstSample *sample) {
    const GstSegment *segment = gst_sample_get_segment(sample);
    GstBuffer *buffer = gst_buffer_copy(gst_sample_get_buffer(sample));
    gint64 place = 0, order = 0;
    GstClockTime time = films_bridge_time(bridge, segment, GST_BUFFER_PTS(buffer), &place);
    GstClockTime coded = films_bridge_time(bridge, segment, GST_BUFFER_DTS(buffer), &order);
    if (GST_CLOCK_TIME_IS_VALID(time) && place < 0) {
        gst_buffer_unref(buffer);
        gst_sample_unref(sample);
        return GST_FLOW_OK;
    }
    GST_BUFFER_PTS(buffer) = time;
    GST_BUFFER_DTS(buffer) = bridge->coded ? coded : GST_CLOCK_TIME_NONE;
    films_bridge_announce(bridge, gst_sample_get_caps(sample));
    gst_sample_unref(sample);
    return gst_pad_push(bridge->source, buffer);
}
// Handles all samples that are available: for samples from before the bridge was built, there was no signal.
static GstFlowReturn films_bridge_sample(GstAppSink *sink, gpointer data) {
    GstFlowReturn flow = GST_FLOW_OK;
    GstSample *sample;
    while (flow == GST_FLOW_OK && (sample = gst_app_sink_try_pull_sample(sink, 0)))
        flow = films_bridge_take((films_bridge *)data, sample);
    return flow;
}
static void films_bridge_over(GstAppSink *sink, gpointer data) {
    (void)sink;
    gst_pad_push_event(((films_bridge *)data)->source, gst_event_new_eos());
}
static void films_bridge_free(gpointer data) {
    films_bridge *bridge = (films_bridge *)data;
    gst_pad_set_active(bridge->source, FALSE);
    gst_object_unref(bridge->source);
    gst_object_unref(bridge->target);
    gst_caps_replace(&bridge->caps, NULL);
    g_free(bridge);
}
// The pads of `target` must be active: its pipeline is at least paused.
static inline void films_bridge_pads(GstElement *sink, GstElement *target, gint64 base, gboolean coded) {
    GstPad *entry = gst_element_get_static_pad(target, "sink");
    if (!entry) return;
    films_bridge *bridge = g_new0(films_bridge, 1);
    bridge->sink = sink;
    bridge->target = (GstElement *)gst_object_ref(target);
    bridge->source = (GstPad *)gst_object_ref_sink(gst_pad_new(NULL, GST_PAD_SRC));
    bridge->base = base;
    bridge->coded = coded;
    gst_pad_set_active(bridge->source, TRUE);
    gst_pad_link_full(bridge->source, entry, GST_PAD_LINK_CHECK_NOTHING);
    gst_object_unref(entry);
    gst_pad_push_event(bridge->source, gst_event_new_stream_start(GST_OBJECT_NAME(target)));
    GstPad *source = (GstPad *)gst_object_ref(bridge->source);
    GstAppSinkCallbacks callbacks = {.eos = films_bridge_over, .new_sample = films_bridge_sample};
    gst_app_sink_set_callbacks((GstAppSink *)sink, &callbacks, bridge, films_bridge_free);
    // An empty track may have ended before the callbacks were set.
    if (gst_app_sink_is_eos((GstAppSink *)sink)) gst_pad_push_event(source, gst_event_new_eos());
    gst_object_unref(source);
}

// A muxer writes a few bytes at a time. They are gathered into large pieces for its sink, because each piece is a
// system call.
typedef struct {
    GstBufferList *list;
    gsize bytes;
    gboolean passes;
} films_gathering;

static GstFlowReturn films_gather_pass(films_gathering *gathering, GstPad *pad) {
    if (!gathering->list) return GST_FLOW_OK;
    GstBufferList *list = gathering->list;
    gathering->list = NULL;
    gathering->bytes = 0;
    gathering->passes = TRUE;
    GstFlowReturn flow = gst_pad_chain_list(pad, list);
    gathering->passes = FALSE;
    return flow;
}
static GstPadProbeReturn films_gather_probe(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    enum { enough = 1 << 18, many = 500 };
    films_gathering *gathering = (films_gathering *)data;
    if (gathering->passes) return GST_PAD_PROBE_OK;
    if (!(info->type & GST_PAD_PROBE_TYPE_BUFFER)) {
        // An event or a list: the gathered bytes before it go first.
        films_gather_pass(gathering, pad);
        return GST_PAD_PROBE_OK;
    }
    GstBuffer *buffer = (GstBuffer *)info->data;
    gathering->bytes += gst_buffer_get_size(buffer);
    if (!gathering->list) gathering->list = gst_buffer_list_new();
    gst_buffer_list_add(gathering->list, buffer);
    info->data = NULL;
    GST_PAD_PROBE_INFO_FLOW_RETURN(info) = GST_FLOW_OK;
    if (gathering->bytes >= enough || gst_buffer_list_length(gathering->list) >= many)
        GST_PAD_PROBE_INFO_FLOW_RETURN(info) = films_gather_pass(gathering, pad);
    return GST_PAD_PROBE_HANDLED;
}
static void films_gathering_free(gpointer data) {
    films_gathering *gathering = (films_gathering *)data;
    if (gathering->list) gst_buffer_list_unref(gathering->list);
    g_free(gathering);
}
static inline void films_gather(GstElement *sink) {
    // The probe is not on the pad of the muxer: an event that is being pushed there would overtake the list.
    GstPad *pad = gst_element_get_static_pad(sink, "sink");
    if (!pad) return;
    GstPadProbeType type = (GstPadProbeType)(
        GST_PAD_PROBE_TYPE_BUFFER | GST_PAD_PROBE_TYPE_BUFFER_LIST | GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM);
    gst_pad_add_probe(pad, type, films_gather_probe, g_new0(films_gathering, 1), films_gathering_free);
    gst_object_unref(pad);
}

// The default length of a decoder's queue, five buffers, would make two threads wait for each other at each buffer.
static void films_deepen_added(GstElement *element, GstElementFactory *factory, gpointer data) {
    (void)factory, (void)data;
    g_object_set(element, "max-size-buffers", 200, "max-size-bytes", 4 << 20, NULL);
}
static inline void films_deepen_queues(GstElement *pipeline) {
    films_on_element(pipeline, "decodebin", films_deepen_added, NULL, NULL);
}

// The new file states the same colorimetry as the film that is read. Otherwise the colours would be converted to the
// default colorimetry of the new size.
static inline void films_keep_colours(GstElement *sink, GstElement *filter) {
    GstPad *pad = gst_element_get_static_pad(sink, "sink");
    GstCaps *caps = pad ? gst_pad_get_current_caps(pad) : NULL;
    GstCaps *shape = NULL;
    g_object_get(filter, "caps", &shape, NULL);
    GstVideoInfo info;
    if (caps && shape && gst_video_info_from_caps(&info, caps)) {
        // If the film states none, the default of its size applies.
        gchar *colours = gst_video_colorimetry_to_string(&info.colorimetry);
        GstCaps *changed = gst_caps_copy(shape);
        if (colours) gst_caps_set_simple(changed, "colorimetry", G_TYPE_STRING, colours, NULL);
        g_object_set(filter, "caps", changed, NULL);
        gst_caps_unref(changed);
        g_free(colours);
    }
    if (shape) gst_caps_unref(shape);
    if (caps) gst_caps_unref(caps);
    if (pad) gst_object_unref(pad);
}
static inline void films_add_tag(GstTagList *list, const char *name, const char *text) {
    gst_tag_list_add(list, GST_TAG_MERGE_REPLACE, name, text, NULL);
}
static inline gboolean films_sets_contents(GstElement *muxer) { return GST_IS_TOC_SETTER(muxer); }
static inline void films_contents_free(GstToc *contents) { gst_toc_unref(contents); }
static inline void films_write_tags(GstElement *muxer, const GstTagList *tags) {
    if (!GST_IS_TAG_SETTER(muxer)) return;
    gst_tag_setter_merge_tags((GstTagSetter *)muxer, tags, GST_TAG_MERGE_REPLACE);
    // MP4 and Matroska muxers write the date, but not the date with a time that readers of other formats give.
    GstDateTime *time = NULL;
    GDate *date = NULL;
    if (gst_tag_list_get_date(tags, GST_TAG_DATE, &date)) return g_date_free(date);
    if (!gst_tag_list_get_date_time(tags, GST_TAG_DATE_TIME, &time)) return;
    gint month = gst_date_time_has_month(time) ? gst_date_time_get_month(time) : 1;
    gint day = gst_date_time_has_day(time) ? gst_date_time_get_day(time) : 1;
    date = g_date_new_dmy((GDateDay)day, (GDateMonth)month, (GDateYear)gst_date_time_get_year(time));
    gst_tag_setter_add_tags((GstTagSetter *)muxer, GST_TAG_MERGE_REPLACE, GST_TAG_DATE, date, NULL);
    g_date_free(date);
    gst_date_time_unref(time);
}
static inline GstEvent *films_seek(GstClockTime start, GstClockTime stop) {
    return gst_event_new_seek(
        1.0, GST_FORMAT_TIME, (GstSeekFlags)(GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_ACCURATE), GST_SEEK_TYPE_SET, (gint64)start,
        GST_SEEK_TYPE_SET, (gint64)stop);
}

// Application elements are elements by casts that are macros.
static inline GstSample *films_pull(GstElement *sink, GstClockTime timeout) {
    return gst_app_sink_try_pull_sample((GstAppSink *)sink, timeout);
}
static inline GstSample *films_pull_preroll(GstElement *sink, GstClockTime timeout) {
    return gst_app_sink_try_pull_preroll((GstAppSink *)sink, timeout);
}
static inline gboolean films_is_over(GstElement *sink) { return gst_app_sink_is_eos((GstAppSink *)sink); }
// Pushes the picture without its time, so that the encoder does not wait until the picture is due.
static inline gboolean films_push(GstElement *source, GstSample *sample) {
    GstBuffer *buffer = gst_buffer_copy(gst_sample_get_buffer(sample));
    GST_BUFFER_PTS(buffer) = GST_BUFFER_DTS(buffer) = GST_BUFFER_DURATION(buffer) = GST_CLOCK_TIME_NONE;
    return gst_app_src_push_buffer((GstAppSrc *)source, buffer) == GST_FLOW_OK;
}
static inline void films_end(GstElement *source) { gst_app_src_end_of_stream((GstAppSrc *)source); }
static inline void films_announce(GstElement *source, GstCaps *caps) {
    gst_app_src_set_caps((GstAppSrc *)source, caps);
}

// Width and height of raw pictures in pixels, and the aspect ratio of a pixel.
typedef struct {
    gint width, height, shape_n, shape_d;
} films_size;
static inline gboolean films_size_of(GstSample *sample, films_size *size) {
    GstVideoInfo info;
    GstCaps *caps = gst_sample_get_caps(sample);
    if (!caps || !gst_video_info_from_caps(&info, caps)) return FALSE;
    size->width = GST_VIDEO_INFO_WIDTH(&info);
    size->height = GST_VIDEO_INFO_HEIGHT(&info);
    size->shape_n = GST_VIDEO_INFO_PAR_N(&info);
    size->shape_d = GST_VIDEO_INFO_PAR_D(&info);
    return size->width > 0 && size->height > 0 && size->shape_n > 0 && size->shape_d > 0;
}

// sync_file_range(2), which the C library declares only with _GNU_SOURCE: waits until these bytes are on the disk.
static inline long films_write_back(int file, int64_t place, int64_t count) {
    return syscall(SYS_sync_file_range, file, place, count, 1u | 2u | 4u);
}

// The tags of the file itself; NULL if it has none, or the stream is no container. Owned by the stream.
static inline const GstTagList *films_container_tags(GstDiscovererStreamInfo *stream) {
    return GST_IS_DISCOVERER_CONTAINER_INFO(stream)
        ? gst_discoverer_container_info_get_tags((GstDiscovererContainerInfo *)stream) : NULL;
}

static inline gboolean films_has_transparency(GstCaps *caps) {
    gboolean has = FALSE;
    return gst_caps_get_size(caps) > 0
        && gst_structure_get_boolean(gst_caps_get_structure(caps, 0), "codec-alpha", &has) && has;
}

// The bits of each colour of coded pictures; 0: unknown.
static inline gint films_bits(GstCaps *caps) {
    guint bits = 0;
    if (gst_caps_get_size(caps) > 0) gst_structure_get_uint(gst_caps_get_structure(caps, 0), "bit-depth-luma", &bits);
    return (gint)bits;
}

// What kind of value a tag has: G_TYPE_* are macros.
typedef enum { films_tag_text, films_tag_whole, films_tag_number, films_tag_time, films_tag_date, films_tag_other } films_tag_kind;
static inline films_tag_kind films_kind_of_tag(const char *name) {
    if (!gst_tag_exists(name)) return films_tag_other;
    GType type = gst_tag_get_type(name);
    if (type == G_TYPE_STRING) return films_tag_text;
    if (type == G_TYPE_UINT) return films_tag_whole;
    if (type == G_TYPE_DOUBLE) return films_tag_number;
    if (type == G_TYPE_DATE) return films_tag_date;
    return type == GST_TYPE_DATE_TIME ? films_tag_time : films_tag_other;
}
