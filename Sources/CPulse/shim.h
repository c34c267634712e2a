// libpulse imports into Swift as it is; the extensions have headers of their own.
#pragma once
#include <pulse/pulseaudio.h>
#include <pulse/ext-stream-restore.h>
