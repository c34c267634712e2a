#include "CStreaming.h"

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
void shim_limit_view(GstPad *pad, guint64 skip, const void *header, gsize header_size, guint limit) {
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
