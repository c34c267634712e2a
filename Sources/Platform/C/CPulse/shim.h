// Swift can import libpulse directly. The extensions have separate headers.
#pragma once
#include <pulse/pulseaudio.h>
#include <pulse/ext-stream-restore.h>
