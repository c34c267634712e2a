// Pictures of GStreamer in a window that a program has made. The casts are macros.
#pragma once
#include <gst/gst.h>
#include <gst/video/videooverlay.h>

// The sink must be an overlay.
static inline void video_set_window(GstElement *sink, guintptr window) {
    gst_video_overlay_set_window_handle((GstVideoOverlay *)sink, window);
}
// The sink draws its last picture again.
static inline void video_draw_again(GstElement *sink) { gst_video_overlay_expose((GstVideoOverlay *)sink); }
