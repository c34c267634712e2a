// What Swift cannot import from GStreamer: function-like macros and variadics, each as the thinnest inline function.
#pragma once
#include <gst/gst.h>
