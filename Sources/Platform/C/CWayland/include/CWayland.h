// One window of Wayland, and the pictures of films in it. The functions of libwayland take callbacks and lists of arguments,
// and pictures come on the threads of GStreamer.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <gst/gst.h>

typedef struct wayland wayland;

typedef enum {
    // The window has a size now: width, height. The first of them: it may have contents.
    WAYLAND_SIZE,
    // It fills the screen, or does so no more: is_on.
    WAYLAND_FULLSCREEN,
    // The user has closed it.
    WAYLAND_CLOSED,
    // A key, with its meaning in X11's words, and whether Control, Alt or Super is held: value, is_on.
    WAYLAND_KEY,
    // Two clicks in short time.
    WAYLAND_DOUBLE_CLICK,
} wayland_kind;

typedef struct {
    wayland_kind kind;
    int width, height;
    uint32_t value;
    bool is_on;
} wayland_event;

// Connects to the compositor; NULL: none answers, or it lacks something that a window needs. The name is that of its socket, or
// the path; NULL: that of the environment.
wayland *wayland_connect(const char *name, const char *program);
// Whoever uses its display or its surface has a reference; the last one to give it back may do so on any thread.
wayland *wayland_ref(wayland *self);
void wayland_free(void *self);

// It can be read when there are events, or the connection is lost.
int wayland_descriptor(wayland *self);
// False: the connection is lost.
bool wayland_read(wayland *self);
// The next event; false: none.
bool wayland_next(wayland *self, wayland_event *event);

// The size of a screen; 0: unknown.
void wayland_screen(wayland *self, int *width, int *height);

void wayland_set_title(wayland *self, const char *title);
// Requests a window, whose first size is an event. The wanted size is a wish.
void wayland_show(wayland *self, int width, int height);
void wayland_hide(wayland *self);
void wayland_set_fullscreen(wayland *self, bool is_full);

// The pictures of a film are drawn in the window. Those of the films before it are ignored from now on; the last one of them
// stays until the film has a picture. Returns its number.
unsigned wayland_begin_film(wayland *self);
// Where the pictures of the newest film are in the window; what is outside is cut off.
void wayland_place(wayland *self, int x, int y, int width, int height);
// On any thread. Pixels are BGRx, as in Wayland's XRGB8888 of this machine.
void wayland_draw(wayland *self, unsigned film, const uint8_t *pixels, int width, int height, int stride);
// Draws what a fakesink with signal-handoffs gets, as the film of that number.
void wayland_draw_from(wayland *self, unsigned film, GstElement *sink);
