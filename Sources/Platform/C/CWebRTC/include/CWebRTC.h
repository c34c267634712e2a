// GStreamer's webrtcbin, which sends: its offer, the answer to it, and whether it is connected. Its signals come on its own
// threads; what they say is an application message of webrtcbin on the bus of the pipeline.
#pragma once
#include <gst/gst.h>

// What a message of webrtcbin says; SHIM_WEBRTC_NOTHING for every other message.
typedef enum {
    SHIM_WEBRTC_NOTHING,
    // `text` is the offer, with all addresses of this machine.
    SHIM_WEBRTC_OFFER,
    SHIM_WEBRTC_CONNECTED,
    // The peer has closed the connection, or does not answer any more.
    SHIM_WEBRTC_LOST,
    // The offer cannot be made, or the answer not be used: `text` says why.
    SHIM_WEBRTC_FAILED,
} shim_webrtc_kind;

// `text` belongs to the message.
shim_webrtc_kind shim_webrtc_read(GstMessage *message, const char **text);
// Makes an offer of what is linked to the element, by the caps that it will have. Called once, when it has started.
void shim_webrtc_offer(GstElement *webrtc);
// How many packets the peer has sent since the first call of this, which must be when it is connected.
guint64 shim_webrtc_received(GstElement *webrtc);
// Takes the answer of the peer. FALSE: it is not a session description.
gboolean shim_webrtc_answer(GstElement *webrtc, const char *text, gsize length);
