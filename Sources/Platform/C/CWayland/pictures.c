#include "CWayland.h"

typedef struct {
    wayland *window;
    unsigned film;
} target;

static void target_left(gpointer data, GClosure *closure) {
    (void)closure;
    wayland_free(((target *)data)->window);
    g_free(data);
}

static void picture_came(GstElement *sink, GstBuffer *buffer, GstPad *pad, gpointer data) {
    (void)sink;
    target *place = (target *)data;
    GstCaps *caps = gst_pad_get_current_caps(pad);
    GstMapInfo map;
    if (caps && gst_buffer_map(buffer, &map, GST_MAP_READ)) {
        const GstStructure *format = gst_caps_get_structure(caps, 0);
        gint width = 0, height = 0;
        gst_structure_get_int(format, "width", &width);
        gst_structure_get_int(format, "height", &height);
        // Four bytes for each pixel: rows have no rest.
        if (width > 0 && height > 0 && (gsize)width * (gsize)height * 4 <= map.size)
            wayland_draw(place->window, place->film, map.data, width, height, width * 4);
        gst_buffer_unmap(buffer, &map);
    }
    if (caps) gst_caps_unref(caps);
}

void wayland_draw_from(wayland *self, unsigned film, GstElement *sink) {
    // The first one of a pause or a seek, and those that play.
    static const char *const signals[] = {"preroll-handoff", "handoff"};
    for (int number = 0; number < 2; number++) {
        target *place = g_new(target, 1);
        *place = (target){.window = wayland_ref(self), .film = film};
        g_signal_connect_data(sink, signals[number], G_CALLBACK(picture_came), place, target_left, (GConnectFlags)0);
    }
}
