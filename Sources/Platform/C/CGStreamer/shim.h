// The parts of GStreamer that Swift cannot import: variadic functions and function-like macros. What runs on GStreamer's
// threads is in CStreaming, but what CFilms needs, too, is here.
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

// A new device provider, which the caller owns; gst_device_provider_factory_get gives the same one to all of a process.
static inline GstDeviceProvider *shim_new_provider(GstDeviceProviderFactory *factory) {
    GstPluginFeature *loaded = gst_plugin_feature_load((GstPluginFeature *)factory);
    if (!loaded) return NULL;
    GType type = gst_device_provider_factory_get_device_provider_type((GstDeviceProviderFactory *)loaded);
    GstDeviceProvider *provider = type ? (GstDeviceProvider *)g_object_new(type, NULL) : NULL;
    gst_object_unref(loaded);
    return provider ? (GstDeviceProvider *)gst_object_ref_sink(provider) : NULL;
}

static inline guint shim_get_uint(gpointer object, const char *name) {
    guint value = 0;
    g_object_get(object, name, &value, NULL);
    return value;
}

// The time to the server and back that srtsink measures, in milliseconds; 0 if unknown.
static inline double shim_srt_round_trip(GstElement *sink) {
    GstStructure *stats = NULL;
    double time = 0;
    g_object_get(sink, "stats", &stats, NULL);
    if (!stats) return 0;
    gst_structure_get_double(stats, "rtt-ms", &time);
    gst_structure_free(stats);
    return time;
}

// A number in the statistics of an element; 0 if it has none.
static inline guint64 shim_statistic(GstElement *element, const char *name) {
    GstStructure *stats = NULL;
    guint64 number = 0;
    g_object_get(element, "stats", &stats, NULL);
    if (!stats) return 0;
    gst_structure_get_uint64(stats, name, &number);
    gst_structure_free(stats);
    return number;
}
// Whether the server of an rtmp2sink takes the stream: before that, the element has no figures.
static inline gboolean shim_rtmp_is_taken(GstElement *sink) { return shim_statistic(sink, "out-bytes-total") > 0; }
// What a sink got too late to show it.
static inline guint64 shim_sink_dropped(GstElement *sink) { return shim_statistic(sink, "dropped"); }

static inline void shim_set_caps(gpointer object, GstCaps *caps) { g_object_set(object, "caps", caps, NULL); }

// While decodebin adds an element, it suppresses the errors of that element. A demuxer that reads a damaged file may
// fail during this time, on its own thread. Then nothing reports the error, and code that waits for the pipeline waits
// in vain. Therefore the next element gets its first bytes only after the typefind element has returned: elements are
// added on its thread.
static inline GstPadProbeReturn shim_first_bytes(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)info, (void)data;
    GstPad *peer = gst_pad_get_peer(pad);
    GstElement *before = peer ? gst_pad_get_parent_element(peer) : NULL;
    GstPad *finder = before ? gst_element_get_static_pad(before, "sink") : NULL;
    // With a limit: adding an element may fail, and then waits for this thread.
    for (int tries = 0; finder && tries < 400 && !GST_PAD_IS_FLUSHING(pad); tries++) {
        if (GST_PAD_STREAM_TRYLOCK(finder)) {
            GST_PAD_STREAM_UNLOCK(finder);
            break;
        }
        g_usleep(250);
    }
    if (finder) gst_object_unref(finder);
    if (before) gst_object_unref(before);
    if (peer) gst_object_unref(peer);
    return GST_PAD_PROBE_REMOVE;
}
static inline void shim_delay_first_bytes(GstElement *element) {
    GstPad *pad = gst_element_get_static_pad(element, "sink");
    if (!pad) return;
    GstPadProbeType type = (GstPadProbeType)(GST_PAD_PROBE_TYPE_PULL | GST_PAD_PROBE_TYPE_BUFFER);
    gst_pad_add_probe(pad, type, shim_first_bytes, NULL, NULL);
    gst_object_unref(pad);
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

// A file in memory; -1 if there are no descriptors left. The headers define memfd_create only with _GNU_SOURCE.
static inline int shim_memory_file(const char *name) { return (int)syscall(SYS_memfd_create, name, 1u /* CLOEXEC */); }

// G_VALUE_HOLDS_STRING and others are macros.
static inline const char *shim_value_string(const GValue *value) {
    return G_VALUE_HOLDS_STRING(value) ? g_value_get_string(value) : NULL;
}
static inline gboolean shim_has_property(gpointer object, const char *name) {
    return g_object_class_find_property(G_OBJECT_GET_CLASS(object), name) != NULL;
}
static inline guint64 shim_get_uint64(gpointer object, const char *name) {
    guint64 value = 0;
    g_object_get(object, name, &value, NULL);
    return value;
}
// The last buffer of a sink; owned by the caller; NULL if there was none.
static inline GstSample *shim_last_sample(GstElement *sink) {
    GstSample *sample = NULL;
    g_object_get(sink, "last-sample", &sample, NULL);
    return sample;
}
static inline void shim_sample_unref(GstSample *sample) { gst_sample_unref(sample); }
static inline void shim_select_pad(GstElement *selector, GstPad *pad) { g_object_set(selector, "active-pad", pad, NULL); }
// The next picture that arrives at the pad of an encoder, or of a queue before it, is encoded so that it needs no other.
static inline void shim_force_key(GstPad *pad) {
    GstStructure *structure = gst_structure_new("GstForceKeyUnit", "all-headers", G_TYPE_BOOLEAN, TRUE, NULL);
    gst_pad_send_event(pad, gst_event_new_custom(GST_EVENT_CUSTOM_DOWNSTREAM, structure));
}
