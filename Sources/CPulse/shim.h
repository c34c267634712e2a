// libpulse imports into Swift as it is; nothing to add so far.
#pragma once
#include <pulse/pulseaudio.h>
