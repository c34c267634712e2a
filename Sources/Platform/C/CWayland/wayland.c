#define _GNU_SOURCE
#include "CWayland.h"
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <wayland-client.h>
#include <xkbcommon/xkbcommon.h>

// The two protocols that libwayland does not have, as far as they are used: xdg-shell (stable, version 1) and viewporter.
// Positions and popups, which are never made, have no type.
static const struct wl_interface xdg_surface_interface, xdg_toplevel_interface, viewport_interface;
static const struct wl_interface *no_types[8];
static const struct wl_interface *surface_types[] = {&xdg_surface_interface, &wl_surface_interface};
static const struct wl_interface *toplevel_types[] = {&xdg_toplevel_interface};
static const struct wl_interface *menu_types[] = {&wl_seat_interface, NULL, NULL, NULL};
static const struct wl_interface *output_types[] = {&wl_output_interface};
static const struct wl_interface *viewport_types[] = {&viewport_interface, &wl_surface_interface};

static const struct wl_message shell_requests[] = {
    {"destroy", "", no_types}, {"create_positioner", "n", no_types}, {"get_xdg_surface", "no", surface_types},
    {"pong", "u", no_types},
};
static const struct wl_message shell_events[] = {{"ping", "u", no_types}};
static const struct wl_interface shell_interface = {"xdg_wm_base", 1, 4, shell_requests, 1, shell_events};
enum { SHELL_GET_SURFACE = 2, SHELL_PONG = 3 };

static const struct wl_message xdg_surface_requests[] = {
    {"destroy", "", no_types}, {"get_toplevel", "n", toplevel_types}, {"get_popup", "n?oo", no_types},
    {"set_window_geometry", "iiii", no_types}, {"ack_configure", "u", no_types},
};
static const struct wl_message xdg_surface_events[] = {{"configure", "u", no_types}};
static const struct wl_interface xdg_surface_interface = {
    "xdg_surface", 1, 5, xdg_surface_requests, 1, xdg_surface_events};
enum { SURFACE_DESTROY = 0, SURFACE_GET_TOPLEVEL = 1, SURFACE_ACK = 4 };

static const struct wl_message toplevel_requests[] = {
    {"destroy", "", no_types}, {"set_parent", "?o", toplevel_types}, {"set_title", "s", no_types},
    {"set_app_id", "s", no_types}, {"show_window_menu", "ouii", menu_types}, {"move", "ou", menu_types},
    {"resize", "ouu", menu_types}, {"set_max_size", "ii", no_types}, {"set_min_size", "ii", no_types},
    {"set_maximized", "", no_types}, {"unset_maximized", "", no_types}, {"set_fullscreen", "?o", output_types},
    {"unset_fullscreen", "", no_types}, {"set_minimized", "", no_types},
};
static const struct wl_message toplevel_events[] = {{"configure", "iia", no_types}, {"close", "", no_types}};
static const struct wl_interface xdg_toplevel_interface = {"xdg_toplevel", 1, 14, toplevel_requests, 2, toplevel_events};
enum {
    TOPLEVEL_DESTROY = 0, TOPLEVEL_SET_TITLE = 2, TOPLEVEL_SET_APP_ID = 3, TOPLEVEL_MOVE = 5,
    TOPLEVEL_SET_FULLSCREEN = 11, TOPLEVEL_UNSET_FULLSCREEN = 12, STATE_FULLSCREEN = 2,
};

static const struct wl_message viewporter_requests[] = {{"destroy", "", no_types}, {"get_viewport", "no", viewport_types}};
static const struct wl_interface viewporter_interface = {"wp_viewporter", 1, 2, viewporter_requests, 0, NULL};
static const struct wl_message viewport_requests[] = {
    {"destroy", "", no_types}, {"set_source", "ffff", no_types}, {"set_destination", "ii", no_types}};
static const struct wl_interface viewport_interface = {"wp_viewport", 1, 3, viewport_requests, 0, NULL};
enum { VIEWPORTER_GET_VIEWPORT = 1, VIEWPORT_SET_SOURCE = 1, VIEWPORT_SET_DESTINATION = 2 };

// More than a user does before the loop looks.
enum { event_limit = 64 };

// Pictures that the compositor may still read.
enum { sheet_limit = 4 };
typedef struct {
    struct wl_buffer *buffer;
    uint8_t *pixels;
    int width, height;
    bool is_read;
} sheet;

typedef struct { int x, y, width, height; } place;

// Pictures come on the threads of GStreamer, and the compositor must be answered also while the loop is busy: a thread reads
// the connection, and tells the loop by a descriptor.
struct wayland {
    int references;
    pthread_t thread;
    bool has_thread;
    // For the loop, and for the end of the thread.
    int news, end;
    // Of all that follows, once the thread runs.
    pthread_mutex_t lock;
    bool is_lost;
    struct wl_display *display;
    struct wl_registry *registry;
    struct wl_compositor *compositor;
    struct wl_shm *memory;
    struct wl_seat *seat;
    struct wl_output *output;
    struct wl_keyboard *keyboard;
    struct wl_pointer *pointer;
    struct wl_proxy *shell, *viewporter;
    struct wl_subcompositor *subcompositor;
    struct wl_surface *surface, *picture;
    struct wl_subsurface *below;
    struct wl_proxy *picture_view;
    struct wl_buffer *black;
    sheet sheets[sheet_limit], *shown;
    // The number of the newest film, and of that whose picture is shown; where the pictures are, and whether that is in force.
    unsigned films, drawn;
    place wanted;
    bool is_placed;
    // The size of the window, and of the picture in it.
    int full_width, full_height, picture_width, picture_height;
    // Those of a shown window.
    struct wl_proxy *viewport, *xdg_surface, *toplevel;
    struct xkb_context *keys;
    struct xkb_keymap *keymap;
    struct xkb_state *state;
    char *program, *title;
    // What was wished, and what the compositor says before it is in force.
    int width, height, next_width, next_height;
    bool is_full, is_next_full, is_configured;
    int screen_width, screen_height, mode_width, mode_height, scale;
    uint32_t last_click;
    bool was_clicked;
    wayland_event events[event_limit];
    unsigned first, count;
};

static void tell(wayland *self, wayland_event event) {
    if (self->count == event_limit) return;
    self->events[(self->first + self->count++) % event_limit] = event;
    eventfd_write(self->news, 1);
}
bool wayland_next(wayland *self, wayland_event *event) {
    pthread_mutex_lock(&self->lock);
    bool is_there = self->count > 0;
    if (is_there) {
        *event = self->events[self->first];
        self->first = (self->first + 1) % event_limit;
        self->count--;
    }
    pthread_mutex_unlock(&self->lock);
    return is_there;
}

// The window. The thread has the lock while it calls the functions for events.

static void pinged(void *data, struct wl_proxy *shell, uint32_t serial) {
    (void)data;
    wl_proxy_marshal(shell, SHELL_PONG, serial);
}
static void (*const shell_listener[])(void *, struct wl_proxy *, uint32_t) = {pinged};

static void toplevel_configured(
    void *data, struct wl_proxy *toplevel, int32_t width, int32_t height, struct wl_array *states) {
    wayland *self = data;
    if (toplevel != self->toplevel) return;
    self->is_next_full = false;
    uint32_t *state;
    wl_array_for_each(state, states) if (*state == STATE_FULLSCREEN) self->is_next_full = true;
    // 0: the window may choose. After full screen that is the size before it.
    self->next_width = width > 0 ? width : 0;
    self->next_height = height > 0 ? height : 0;
}
static void toplevel_closed(void *data, struct wl_proxy *toplevel) {
    if (toplevel == ((wayland *)data)->toplevel) tell(data, (wayland_event){.kind = WAYLAND_CLOSED});
}
static const struct {
    void (*configure)(void *, struct wl_proxy *, int32_t, int32_t, struct wl_array *);
    void (*close)(void *, struct wl_proxy *);
} toplevel_listener = {toplevel_configured, toplevel_closed};

static void configured(void *data, struct wl_proxy *xdg_surface, uint32_t serial) {
    wayland *self = data;
    if (xdg_surface != self->xdg_surface) return;
    int width = self->next_width ? self->next_width : self->width;
    int height = self->next_height ? self->next_height : self->height;
    if (!self->is_next_full) self->width = width, self->height = height;
    wl_proxy_marshal(xdg_surface, SURFACE_ACK, serial);
    // What is below the pictures: one black pixel, as large as the window.
    wl_proxy_marshal(self->viewport, VIEWPORT_SET_DESTINATION, width, height);
    wl_surface_attach(self->surface, self->black, 0, 0);
    wl_surface_damage(self->surface, 0, 0, INT32_MAX, INT32_MAX);
    wl_surface_commit(self->surface);
    self->full_width = width;
    self->full_height = height;
    tell(self, (wayland_event){.kind = WAYLAND_SIZE, .width = width, .height = height});
    if (self->is_full != self->is_next_full) {
        self->is_full = self->is_next_full;
        tell(self, (wayland_event){.kind = WAYLAND_FULLSCREEN, .is_on = self->is_full});
    }
}
static void (*const xdg_surface_listener[])(void *, struct wl_proxy *, uint32_t) = {configured};

void wayland_set_title(wayland *self, const char *title) {
    pthread_mutex_lock(&self->lock);
    free(self->title);
    self->title = strdup(title);
    if (self->toplevel) wl_proxy_marshal(self->toplevel, TOPLEVEL_SET_TITLE, title);
    pthread_mutex_unlock(&self->lock);
    wl_display_flush(self->display);
}

void wayland_show(wayland *self, int width, int height) {
    if (self->toplevel) return;
    pthread_mutex_lock(&self->lock);
    self->width = width;
    self->height = height;
    self->next_width = self->next_height = 0;
    self->is_full = self->is_next_full = false;
    self->viewport = wl_proxy_marshal_constructor(
        self->viewporter, VIEWPORTER_GET_VIEWPORT, &viewport_interface, NULL, self->surface);
    self->xdg_surface = wl_proxy_marshal_constructor(
        self->shell, SHELL_GET_SURFACE, &xdg_surface_interface, NULL, self->surface);
    wl_proxy_add_listener(self->xdg_surface, (void (**)(void))xdg_surface_listener, self);
    self->toplevel =
        wl_proxy_marshal_constructor(self->xdg_surface, SURFACE_GET_TOPLEVEL, &xdg_toplevel_interface, NULL);
    wl_proxy_add_listener(self->toplevel, (void (**)(void))&toplevel_listener, self);
    wl_proxy_marshal(self->toplevel, TOPLEVEL_SET_APP_ID, self->program);
    if (self->title) wl_proxy_marshal(self->toplevel, TOPLEVEL_SET_TITLE, self->title);
    // Without contents: the compositor answers with a size.
    wl_surface_commit(self->surface);
    pthread_mutex_unlock(&self->lock);
    wl_display_flush(self->display);
}

static void remove_proxy(struct wl_proxy **proxy) {
    // The first request of each of them destroys it.
    if (*proxy) {
        wl_proxy_marshal(*proxy, 0);
        wl_proxy_destroy(*proxy);
    }
    *proxy = NULL;
}

void wayland_hide(wayland *self) {
    if (!self->toplevel) return;
    pthread_mutex_lock(&self->lock);
    remove_proxy(&self->toplevel);
    remove_proxy(&self->xdg_surface);
    remove_proxy(&self->viewport);
    wl_surface_attach(self->picture, NULL, 0, 0);
    wl_surface_commit(self->picture);
    wl_surface_attach(self->surface, NULL, 0, 0);
    wl_surface_commit(self->surface);
    self->full_width = self->full_height = self->picture_width = 0;
    self->drawn = 0;
    // What was said of this window is not about the next one.
    self->count = 0;
    pthread_mutex_unlock(&self->lock);
    wl_display_flush(self->display);
}

void wayland_set_fullscreen(wayland *self, bool is_full) {
    if (!self->toplevel) return;
    if (is_full)
        wl_proxy_marshal(self->toplevel, TOPLEVEL_SET_FULLSCREEN, NULL);
    else
        wl_proxy_marshal(self->toplevel, TOPLEVEL_UNSET_FULLSCREEN);
    wl_display_flush(self->display);
}

// The pictures.

static void sheet_was_read(void *data, struct wl_buffer *buffer) {
    wayland *self = data;
    for (int number = 0; number < sheet_limit; number++)
        if (self->sheets[number].buffer == buffer) self->sheets[number].is_read = false;
}
static const struct wl_buffer_listener sheet_listener = {sheet_was_read};

static void remove_sheet(sheet *old) {
    if (old->buffer) wl_buffer_destroy(old->buffer);
    if (old->pixels) munmap(old->pixels, (size_t)old->width * (size_t)old->height * 4);
    *old = (sheet){0};
}

static sheet *free_sheet(wayland *self, int width, int height) {
    sheet *found = NULL;
    for (int number = 0; number < sheet_limit && !found; number++)
        if (!self->sheets[number].is_read) found = &self->sheets[number];
    // The compositor has not looked for long: it loses the oldest one.
    if (!found) found = &self->sheets[0];
    if (found->width == width && found->height == height) return found;
    remove_sheet(found);
    size_t size = (size_t)width * (size_t)height * 4;
    int file = size <= INT32_MAX ? memfd_create("sessiond-movie", MFD_CLOEXEC) : -1;
    if (file < 0) return NULL;
    void *pixels = ftruncate(file, (off_t)size) == 0
        ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
    if (pixels != MAP_FAILED) {
        struct wl_shm_pool *pool = wl_shm_create_pool(self->memory, file, (int32_t)size);
        found->buffer = wl_shm_pool_create_buffer(pool, 0, width, height, width * 4, WL_SHM_FORMAT_XRGB8888);
        wl_shm_pool_destroy(pool);
        wl_buffer_add_listener(found->buffer, &sheet_listener, self);
        found->pixels = pixels;
        found->width = width;
        found->height = height;
    }
    close(file);
    return found->buffer ? found : NULL;
}

// What is outside of the window is cut off the picture.
static void put_picture(wayland *self) {
    place wanted = self->wanted;
    int left = wanted.x < 0 ? -wanted.x : 0, top = wanted.y < 0 ? -wanted.y : 0;
    int right = wanted.x + wanted.width < self->full_width ? wanted.x + wanted.width : self->full_width;
    int bottom = wanted.y + wanted.height < self->full_height ? wanted.y + wanted.height : self->full_height;
    int width = right - (wanted.x + left), height = bottom - (wanted.y + top);
    if (width <= 0 || height <= 0) return;
    double across = (double)self->picture_width / wanted.width, down = (double)self->picture_height / wanted.height;
    wl_proxy_marshal(
        self->picture_view, VIEWPORT_SET_SOURCE, wl_fixed_from_double(left * across), wl_fixed_from_double(top * down),
        wl_fixed_from_double(width * across), wl_fixed_from_double(height * down));
    wl_proxy_marshal(self->picture_view, VIEWPORT_SET_DESTINATION, width, height);
    wl_subsurface_set_position(self->below, wanted.x + left, wanted.y + top);
    self->is_placed = true;
}

unsigned wayland_begin_film(wayland *self) {
    pthread_mutex_lock(&self->lock);
    unsigned number = ++self->films;
    self->is_placed = false;
    pthread_mutex_unlock(&self->lock);
    return number;
}

void wayland_place(wayland *self, int x, int y, int width, int height) {
    pthread_mutex_lock(&self->lock);
    self->wanted = (place){x, y, width, height};
    self->is_placed = false;
    // Else its first picture comes with it.
    if (self->toplevel && self->picture_width && self->drawn == self->films) {
        put_picture(self);
        // Weston 14 cuts nothing off a picture that it has already.
        self->shown->is_read = true;
        wl_surface_attach(self->picture, self->shown->buffer, 0, 0);
        wl_surface_damage(self->picture, 0, 0, INT32_MAX, INT32_MAX);
        wl_surface_commit(self->picture);
        wl_surface_commit(self->surface);
    }
    pthread_mutex_unlock(&self->lock);
    wl_display_flush(self->display);
}

void wayland_draw(wayland *self, unsigned film, const uint8_t *pixels, int width, int height, int stride) {
    pthread_mutex_lock(&self->lock);
    // The film before it may still have pictures.
    sheet *new = self->toplevel && self->full_width && self->wanted.width && film == self->films && width > 0 && height > 0
        ? free_sheet(self, width, height) : NULL;
    if (new) {
        for (int row = 0; row < height; row++)
            memcpy(new->pixels + (size_t)row * (size_t)width * 4, pixels + (size_t)row * (size_t)stride, (size_t)width * 4);
        new->is_read = true;
        self->shown = new;
        bool is_other = !self->is_placed || self->picture_width != width || self->picture_height != height;
        self->picture_width = width;
        self->picture_height = height;
        self->drawn = film;
        if (is_other) put_picture(self);
        wl_surface_attach(self->picture, new->buffer, 0, 0);
        wl_surface_damage(self->picture, 0, 0, INT32_MAX, INT32_MAX);
        wl_surface_commit(self->picture);
        if (is_other) wl_surface_commit(self->surface);
    }
    pthread_mutex_unlock(&self->lock);
    if (new) wl_display_flush(self->display);
}

// The keyboard.

static void keymap_came(void *data, struct wl_keyboard *keyboard, uint32_t format, int descriptor, uint32_t size) {
    (void)keyboard;
    wayland *self = data;
    char *text = format == WL_KEYBOARD_KEYMAP_FORMAT_XKB_V1
        ? mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0) : MAP_FAILED;
    close(descriptor);
    if (text == MAP_FAILED) return;
    struct xkb_keymap *keymap = xkb_keymap_new_from_buffer(
        self->keys, text, strnlen(text, size), XKB_KEYMAP_FORMAT_TEXT_V1, XKB_KEYMAP_COMPILE_NO_FLAGS);
    munmap(text, size);
    if (!keymap) return;
    xkb_state_unref(self->state);
    xkb_keymap_unref(self->keymap);
    self->keymap = keymap;
    self->state = xkb_state_new(keymap);
}
static void keyboard_entered(
    void *data, struct wl_keyboard *keyboard, uint32_t serial, struct wl_surface *surface, struct wl_array *keys) {
    (void)data, (void)keyboard, (void)serial, (void)surface, (void)keys;
}
static void keyboard_left(void *data, struct wl_keyboard *keyboard, uint32_t serial, struct wl_surface *surface) {
    (void)data, (void)keyboard, (void)serial, (void)surface;
}
static void key_changed(
    void *data, struct wl_keyboard *keyboard, uint32_t serial, uint32_t time, uint32_t key, uint32_t state) {
    (void)keyboard, (void)serial, (void)time;
    wayland *self = data;
    if (state != WL_KEYBOARD_KEY_STATE_PRESSED || !self->state) return;
    // The numbers of keys in XKB are 8 higher than those of the kernel.
    uint32_t keysym = xkb_state_key_get_one_sym(self->state, key + 8);
    static const char *const others[] = {XKB_MOD_NAME_CTRL, XKB_MOD_NAME_ALT, XKB_MOD_NAME_LOGO};
    bool has_other = false;
    for (unsigned place = 0; place < 3; place++)
        has_other |= xkb_state_mod_name_is_active(self->state, others[place], XKB_STATE_MODS_EFFECTIVE) > 0;
    tell(self, (wayland_event){.kind = WAYLAND_KEY, .value = keysym, .is_on = has_other});
}
static void modifiers_changed(
    void *data, struct wl_keyboard *keyboard, uint32_t serial, uint32_t depressed, uint32_t latched, uint32_t locked,
    uint32_t group) {
    (void)keyboard, (void)serial;
    wayland *self = data;
    if (self->state) xkb_state_update_mask(self->state, depressed, latched, locked, 0, 0, group);
}
static void repeat_came(void *data, struct wl_keyboard *keyboard, int32_t rate, int32_t delay) {
    (void)data, (void)keyboard, (void)rate, (void)delay;
}
static const struct wl_keyboard_listener keyboard_listener = {
    keymap_came, keyboard_entered, keyboard_left, key_changed, modifiers_changed, repeat_came};

// The pointer: hidden over the window, which it moves, as there may be no title bar.

static void pointer_entered(
    void *data, struct wl_pointer *pointer, uint32_t serial, struct wl_surface *surface, wl_fixed_t x, wl_fixed_t y) {
    (void)data, (void)surface, (void)x, (void)y;
    wl_pointer_set_cursor(pointer, serial, NULL, 0, 0);
}
static void pointer_left(void *data, struct wl_pointer *pointer, uint32_t serial, struct wl_surface *surface) {
    (void)data, (void)pointer, (void)serial, (void)surface;
}
static void pointer_moved(void *data, struct wl_pointer *pointer, uint32_t time, wl_fixed_t x, wl_fixed_t y) {
    (void)data, (void)pointer, (void)time, (void)x, (void)y;
}
// The code of the kernel, and milliseconds.
enum { left_button = 0x110, double_click = 400 };

static void button_changed(
    void *data, struct wl_pointer *pointer, uint32_t serial, uint32_t time, uint32_t button, uint32_t state) {
    (void)pointer;
    wayland *self = data;
    if (button != left_button || state != WL_POINTER_BUTTON_STATE_PRESSED || !self->toplevel) return;
    if (self->was_clicked && time - self->last_click < double_click) {
        self->was_clicked = false;
        tell(self, (wayland_event){.kind = WAYLAND_DOUBLE_CLICK});
        return;
    }
    self->was_clicked = true;
    self->last_click = time;
    if (!self->is_full) wl_proxy_marshal(self->toplevel, TOPLEVEL_MOVE, self->seat, serial);
}
static void axis_moved(void *data, struct wl_pointer *pointer, uint32_t time, uint32_t axis, wl_fixed_t value) {
    (void)data, (void)pointer, (void)time, (void)axis, (void)value;
}
static const struct wl_pointer_listener pointer_listener = {
    .enter = pointer_entered, .leave = pointer_left, .motion = pointer_moved, .button = button_changed,
    .axis = axis_moved};

static void seat_changed(void *data, struct wl_seat *seat, uint32_t abilities) {
    wayland *self = data;
    if (!(abilities & WL_SEAT_CAPABILITY_KEYBOARD)) {
        if (self->keyboard) wl_keyboard_destroy(self->keyboard);
        self->keyboard = NULL;
    } else if (!self->keyboard) {
        self->keyboard = wl_seat_get_keyboard(seat);
        wl_keyboard_add_listener(self->keyboard, &keyboard_listener, self);
    }
    if (!(abilities & WL_SEAT_CAPABILITY_POINTER)) {
        if (self->pointer) wl_pointer_destroy(self->pointer);
        self->pointer = NULL;
    } else if (!self->pointer) {
        self->pointer = wl_seat_get_pointer(seat);
        wl_pointer_add_listener(self->pointer, &pointer_listener, self);
    }
}
static void seat_named(void *data, struct wl_seat *seat, const char *name) { (void)data, (void)seat, (void)name; }
static const struct wl_seat_listener seat_listener = {seat_changed, seat_named};

// The screen.

static void output_described(
    void *data, struct wl_output *output, int32_t x, int32_t y, int32_t width, int32_t height, int32_t subpixel,
    const char *make, const char *model, int32_t transform) {
    (void)data, (void)output, (void)x, (void)y, (void)width, (void)height, (void)subpixel, (void)make, (void)model;
    (void)transform;
}
static void mode_came(
    void *data, struct wl_output *output, uint32_t flags, int32_t width, int32_t height, int32_t refresh) {
    (void)output, (void)refresh;
    wayland *self = data;
    if (!(flags & WL_OUTPUT_MODE_CURRENT)) return;
    self->mode_width = width;
    self->mode_height = height;
}
static void output_done(void *data, struct wl_output *output) {
    (void)output;
    wayland *self = data;
    self->screen_width = self->mode_width / (self->scale > 0 ? self->scale : 1);
    self->screen_height = self->mode_height / (self->scale > 0 ? self->scale : 1);
}
static void scale_came(void *data, struct wl_output *output, int32_t scale) {
    (void)output;
    ((wayland *)data)->scale = scale;
}
static const struct wl_output_listener output_listener = {
    .geometry = output_described, .mode = mode_came, .done = output_done, .scale = scale_came};
void wayland_screen(wayland *self, int *width, int *height) {
    *width = self->screen_width;
    *height = self->screen_height;
}

// The connection.

static void global_came(void *data, struct wl_registry *registry, uint32_t name, const char *interface, uint32_t version) {
    wayland *self = data;
    if (!strcmp(interface, "wl_compositor") && !self->compositor) {
        self->compositor = wl_registry_bind(registry, name, &wl_compositor_interface, 1);
    } else if (!strcmp(interface, "wl_subcompositor") && !self->subcompositor) {
        self->subcompositor = wl_registry_bind(registry, name, &wl_subcompositor_interface, 1);
    } else if (!strcmp(interface, "wl_shm") && !self->memory) {
        self->memory = wl_registry_bind(registry, name, &wl_shm_interface, 1);
    } else if (!strcmp(interface, "xdg_wm_base") && !self->shell) {
        self->shell = wl_registry_bind(registry, name, &shell_interface, 1);
        wl_proxy_add_listener(self->shell, (void (**)(void))shell_listener, self);
    } else if (!strcmp(interface, "wp_viewporter") && !self->viewporter) {
        self->viewporter = wl_registry_bind(registry, name, &viewporter_interface, 1);
    } else if (!strcmp(interface, "wl_seat") && !self->seat) {
        self->seat = wl_registry_bind(registry, name, &wl_seat_interface, 1);
        wl_seat_add_listener(self->seat, &seat_listener, self);
    } else if (!strcmp(interface, "wl_output") && version >= 2 && !self->output) {
        self->output = wl_registry_bind(registry, name, &wl_output_interface, 2);
        wl_output_add_listener(self->output, &output_listener, self);
    }
}
static void global_went(void *data, struct wl_registry *registry, uint32_t name) { (void)data, (void)registry, (void)name; }
static const struct wl_registry_listener registry_listener = {global_came, global_went};

static struct wl_buffer *make_black(struct wl_shm *memory) {
    int file = memfd_create("sessiond-movie", MFD_CLOEXEC);
    if (file < 0) return NULL;
    struct wl_buffer *buffer = NULL;
    // One pixel of 0: black.
    if (ftruncate(file, 4) == 0) {
        struct wl_shm_pool *pool = wl_shm_create_pool(memory, file, 4);
        buffer = wl_shm_pool_create_buffer(pool, 0, 1, 1, 4, WL_SHM_FORMAT_XRGB8888);
        wl_shm_pool_destroy(pool);
    }
    close(file);
    return buffer;
}

static void *read_for_ever(void *data) {
    wayland *self = data;
    struct pollfd files[] = {{.fd = wl_display_get_fd(self->display), .events = POLLIN}, {.fd = self->end, .events = POLLIN}};
    bool goes_on = true;
    while (goes_on && !files[1].revents) {
        while (wl_display_prepare_read(self->display) != 0) {
            pthread_mutex_lock(&self->lock);
            wl_display_dispatch_pending(self->display);
            pthread_mutex_unlock(&self->lock);
        }
        wl_display_flush(self->display);
        if (poll(files, 2, -1) > 0 && files[0].revents)
            goes_on = wl_display_read_events(self->display) >= 0;
        else
            wl_display_cancel_read(self->display);
        pthread_mutex_lock(&self->lock);
        goes_on = goes_on && wl_display_dispatch_pending(self->display) >= 0;
        pthread_mutex_unlock(&self->lock);
    }
    if (!goes_on) {
        pthread_mutex_lock(&self->lock);
        self->is_lost = true;
        pthread_mutex_unlock(&self->lock);
        eventfd_write(self->news, 1);
    }
    return NULL;
}

wayland *wayland_connect(const char *name, const char *program) {
    struct wl_display *display = wl_display_connect(name);
    if (!display) return NULL;
    wayland *self = calloc(1, sizeof *self);
    self->references = 1;
    self->news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->end = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&self->lock, NULL);
    self->display = display;
    self->program = strdup(program);
    self->keys = xkb_context_new(XKB_CONTEXT_NO_FLAGS);
    self->registry = wl_display_get_registry(display);
    wl_registry_add_listener(self->registry, &registry_listener, self);
    // What there is, and then what is said of it.
    bool is_there = wl_display_roundtrip(display) >= 0 && wl_display_roundtrip(display) >= 0 && self->compositor && self->subcompositor && self->memory && self->shell
        && self->viewporter && self->keys;
    if (is_there) {
        self->surface = wl_compositor_create_surface(self->compositor);
        self->picture = wl_compositor_create_surface(self->compositor);
        self->below = wl_subcompositor_get_subsurface(self->subcompositor, self->picture, self->surface);
        wl_subsurface_set_desync(self->below);
        // Clicks are for the window.
        struct wl_region *nothing = wl_compositor_create_region(self->compositor);
        wl_surface_set_input_region(self->picture, nothing);
        wl_region_destroy(nothing);
        self->picture_view = wl_proxy_marshal_constructor(
            self->viewporter, VIEWPORTER_GET_VIEWPORT, &viewport_interface, NULL, self->picture);
        self->black = make_black(self->memory);
        wl_display_flush(display);
    }
    if (is_there && self->black && self->news >= 0 && self->end >= 0)
        self->has_thread = pthread_create(&self->thread, NULL, read_for_ever, self) == 0;
    if (!self->has_thread) {
        wayland_free(self);
        return NULL;
    }
    return self;
}

wayland *wayland_ref(wayland *self) {
    __atomic_add_fetch(&self->references, 1, __ATOMIC_RELAXED);
    return self;
}
void wayland_free(void *data) {
    wayland *self = data;
    if (__atomic_sub_fetch(&self->references, 1, __ATOMIC_ACQ_REL) > 0) return;
    if (self->has_thread) {
        eventfd_write(self->end, 1);
        pthread_join(self->thread, NULL);
    }
    if (self->surface) wayland_hide(self);
    if (self->keyboard) wl_keyboard_destroy(self->keyboard);
    if (self->pointer) wl_pointer_destroy(self->pointer);
    if (self->seat) wl_seat_destroy(self->seat);
    if (self->output) wl_output_destroy(self->output);
    if (self->black) wl_buffer_destroy(self->black);
    for (int number = 0; number < sheet_limit; number++) remove_sheet(&self->sheets[number]);
    remove_proxy(&self->picture_view);
    if (self->below) wl_subsurface_destroy(self->below);
    if (self->picture) wl_surface_destroy(self->picture);
    if (self->surface) wl_surface_destroy(self->surface);
    if (self->subcompositor) wl_subcompositor_destroy(self->subcompositor);
    remove_proxy(&self->viewporter);
    remove_proxy(&self->shell);
    if (self->memory) wl_shm_destroy(self->memory);
    if (self->compositor) wl_compositor_destroy(self->compositor);
    wl_registry_destroy(self->registry);
    wl_display_flush(self->display);
    wl_display_disconnect(self->display);
    xkb_state_unref(self->state);
    xkb_keymap_unref(self->keymap);
    xkb_context_unref(self->keys);
    pthread_mutex_destroy(&self->lock);
    if (self->news >= 0) close(self->news);
    if (self->end >= 0) close(self->end);
    free(self->program);
    free(self->title);
    free(self);
}

int wayland_descriptor(wayland *self) { return self->news; }

bool wayland_read(wayland *self) {
    eventfd_t count;
    eventfd_read(self->news, &count);
    pthread_mutex_lock(&self->lock);
    bool is_lost = self->is_lost;
    pthread_mutex_unlock(&self->lock);
    return !is_lost;
}
