// How late a live stream is, from glass to glass: one screen shows the time, and the time on another screen is read.
//   glass show           draws the milliseconds of the clock in 16 columns, dark or bright, on the screen of DISPLAY
//   glass read SECONDS   prints the milliseconds between each time on the screen of DISPLAY and the clock
//   glass first SECONDS  waits that long for a time on the screen of DISPLAY, and prints the milliseconds that this has taken
// Both screens have 320 x 180 pixels. The lowest row of columns is the complement of the others: other pictures are no times.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <xcb/xcb.h>

enum { WIDTH = 320, HEIGHT = 180, COLUMNS = 16, STEP = WIDTH / COLUMNS };

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}
static void rest(long nanoseconds) { nanosleep(&(struct timespec){.tv_nsec = nanoseconds}, NULL); }

static int show(xcb_connection_t *server, xcb_screen_t *screen) {
    xcb_gcontext_t bright = xcb_generate_id(server), dark = xcb_generate_id(server);
    xcb_create_gc(server, bright, screen->root, XCB_GC_FOREGROUND, &screen->white_pixel);
    xcb_create_gc(server, dark, screen->root, XCB_GC_FOREGROUND, &screen->black_pixel);
    for (;;) {
        unsigned number = (unsigned)now() & 0xFFFF;
        for (int column = 0; column < COLUMNS; column++) {
            int is_bright = number >> column & 1;
            xcb_rectangle_t upper = {(int16_t)(column * STEP), 0, STEP, HEIGHT / 2};
            xcb_rectangle_t lower = {(int16_t)(column * STEP), HEIGHT / 2, STEP, HEIGHT / 2};
            xcb_poly_fill_rectangle(server, screen->root, is_bright ? bright : dark, 1, &upper);
            xcb_poly_fill_rectangle(server, screen->root, is_bright ? dark : bright, 1, &lower);
        }
        // The server draws all of it before it reads the next request of another client, or nothing.
        if (xcb_flush(server) <= 0) return 0;
        rest(4000000);
    }
}

static int row(xcb_connection_t *server, xcb_screen_t *screen, int y, unsigned *number) {
    xcb_get_image_reply_t *reply = xcb_get_image_reply(
        server, xcb_get_image(server, XCB_IMAGE_FORMAT_Z_PIXMAP, screen->root, 0, (int16_t)y, WIDTH, 1, ~0u), NULL);
    if (!reply) return 0;
    *number = 0;
    const uint8_t *bytes = xcb_get_image_data(reply);
    for (int column = 0; column < COLUMNS; column++)
        if (bytes[(column * STEP + STEP / 2) * 4 + 1] > 127) *number |= 1u << column;
    free(reply);
    return 1;
}

int main(int count, char **words) {
    xcb_connection_t *server = xcb_connect(NULL, NULL);
    if (count < 2 || xcb_connection_has_error(server)) return 1;
    xcb_screen_t *screen = xcb_setup_roots_iterator(xcb_get_setup(server)).data;
    if (!strcmp(words[1], "show")) return show(server, screen);
    if (count < 3) return 64;
    long begin = now(), end = begin + atol(words[2]) * 1000;
    int is_first = !strcmp(words[1], "first");
    unsigned last = 0, upper = 0, lower = 0;
    while (now() < end) {
        if (!row(server, screen, HEIGHT / 4, &upper) || !row(server, screen, HEIGHT * 3 / 4, &lower)) return 1;
        if (upper != last && (upper ^ lower) == 0xFFFF) {
            printf("%ld\n", is_first ? now() - begin : (((long)now() - (long)upper) & 0xFFFF));
            if (is_first) return 0;
            last = upper;
        }
        rest(1000000);
    }
    return 0;
}
