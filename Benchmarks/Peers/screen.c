// Says when the pictures of a coded film are on a screen of X11, and when the clicks of its sound are at a monitor.
//
//   screen MONITOR   answers lines of its standard input; times are milliseconds of CLOCK_MONOTONIC:
//     see NUMBER SECONDS   when that number is seen for the first time from now on; 0: nothing but black
//     any SECONDS          when any number is seen, and the number
//     watch SECONDS        a line for each number that is seen for the first time, and for each click; then a full stop
//   An answer of "-" means that the time is over.
//
// Each picture has 16 columns in its row 180 of 640 pixels, black or white: its number plus one, in binary.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xcb/xcb.h>

#include "listening.h"

enum { width = 640, row = 180, columns = 16, rate = 48000, threshold = 2000 };

static xcb_connection_t *server;
static xcb_window_t root;
static double clicks[256];
static unsigned click_count;
static double loud;

static void hear(const void *data, size_t size, double arrival) {
    const short *samples = data;
    size_t count = size / 2;
    for (size_t i = 0; samples && i < count; i++) {
        if (samples[i] < threshold && samples[i] > -threshold) continue;
        double time = arrival - (double)(count - i) / rate * 1e6;
        // One click has many loud samples.
        if (time - loud > 200e3 && click_count < 256) clicks[click_count++] = time;
        loud = time;
    }
}

static int number(void) {
    xcb_get_image_reply_t *reply = xcb_get_image_reply(
        server, xcb_get_image(server, XCB_IMAGE_FORMAT_Z_PIXMAP, root, 0, row, width, 1, ~0u), NULL);
    if (!reply) exit(1);
    const uint8_t *pixels = xcb_get_image_data(reply);
    int found = 0;
    for (int column = 0; column < columns; column++) {
        int x = column * width / columns + width / columns / 2;
        if (pixels[x * 4 + 1] > 128) found |= 1 << column;
    }
    free(reply);
    return found;
}

int main(int count, char **words) {
    if (count != 2) return 64;
    server = xcb_connect(NULL, NULL);
    if (xcb_connection_has_error(server)) return 1;
    root = xcb_setup_roots_iterator(xcb_get_setup(server)).data->root;
    connect_to_server();
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 1};
    record(words[1], &spec, 192, hear);
    setvbuf(stdout, NULL, _IOLBF, 0);
    char line[100];
    printf("ready\n");
    for (;;) {
        // The sound is read also while nothing is asked for.
        struct pollfd input = {.fd = 0, .events = POLLIN};
        if (poll(&input, 1, 0) == 0) {
            turn();
            continue;
        }
        if (!fgets(line, sizeof line, stdin)) return 0;
        int wanted = 0, last = -1;
        double seconds = 0;
        int is_any = sscanf(line, "any %lf", &seconds) == 1, is_watch = sscanf(line, "watch %lf", &seconds) == 1;
        if (!is_any && !is_watch && sscanf(line, "see %d %lf", &wanted, &seconds) != 2) return 64;
        double end = now() + seconds * 1e6;
        click_count = 0;
        while (now() < end) {
            turn();
            int seen = number();
            double time = now();
            if (is_watch) {
                if (seen != last) printf("picture %.3f %d\n", time / 1e3, seen);
                last = seen;
            } else if (is_any ? seen > 0 : seen == wanted) {
                printf("%.3f %d\n", time / 1e3, seen);
                break;
            }
        }
        if (is_watch) {
            for (unsigned i = 0; i < click_count; i++) printf("click %.3f\n", clicks[i] / 1e3);
            printf(".\n");
        } else if (now() >= end) {
            printf("-\n");
        }
    }
}
