// The session descriptions of WebRTC.
#pragma once
#include <gst/sdp/sdp.h>
