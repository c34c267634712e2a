// Windows of X11.
#pragma once
#include <xcb/xcb.h>
