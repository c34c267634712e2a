// Windows of Wayland.
#pragma once
#include <wayland-client.h>
