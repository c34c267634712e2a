// What the keys of a keyboard mean, in Wayland.
#pragma once
#include <xkbcommon/xkbcommon.h>
