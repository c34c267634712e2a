// A camera without hardware for PipeWire: pictures that carry their number, as 16 dark or bright fields and, below, their
// complement. Commands on standard input: freeze, thaw; its end ends the camera. It prints "ready", and when the picture 0 was sent, by
// CLOCK_MONOTONIC in microseconds.
//
//   camera NAME POSITION WIDTH HEIGHT RATE [PROPERTY=VALUE,...]
#include <fcntl.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **words) {
    if (count < 6) {
        fprintf(stderr, "usage: camera NAME POSITION WIDTH HEIGHT RATE [PROPERTY=VALUE,...]\n");
        return 64;
    }
    gst_init(NULL, NULL);
    int rate = atoi(words[5]);
    // Without drop-allocation, the provider crashes with PipeWire 0.3 and gives nothing with 1.4.
    char *text = g_strdup_printf(
        "appsrc name=source is-live=true do-timestamp=true format=time "
        "caps=video/x-raw,format=GRAY8,width=16,height=2,framerate=%d/1,pixel-aspect-ratio=1/1 "
        "! videoconvertscale method=nearest-neighbour add-borders=false "
        "! video/x-raw,format=YUY2,width=%s,height=%s,pixel-aspect-ratio=1/1 ! identity drop-allocation=true "
        "! pipewiresink mode=provide client-name=%s stream-properties=\"p,media.class=Video/Source,media.role=Camera,"
        "node.name=%s,node.description=%s,sessiond.camera.position=%s%s%s\"",
        rate, words[3], words[4], words[1], words[1], words[1], words[2], count > 6 ? "," : "", count > 6 ? words[6] : "");
    GError *error = NULL;
    GstElement *pipeline = gst_parse_launch(text, &error);
    if (!pipeline) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    GstElement *source = gst_bin_get_by_name(GST_BIN(pipeline), "source");
    GstBus *bus = gst_element_get_bus(pipeline);
    gst_element_set_state(pipeline, GST_STATE_PLAYING);
    gint64 next = g_get_monotonic_time();
    gboolean frozen = FALSE;
    printf("ready\nfirst %lld\n", (long long)next);
    fflush(stdout);
    for (unsigned number = 0;; number++) {
        struct pollfd input = {.fd = 0, .events = POLLIN};
        gint64 now;
        while ((now = g_get_monotonic_time()) < next) {
            if (poll(&input, 1, (int)((next - now) / 1000)) > 0) {
                char command[64];
                ssize_t size = read(0, command, sizeof command - 1);
                if (size <= 0) return 0;
                command[size] = 0;
                frozen = strstr(command, "freeze") != NULL;
            }
        }
        next += 1000000 / rate;
        GstMessage *message;
        while ((message = gst_bus_pop(bus))) {
            // With PipeWire 1.4, the provider fails when its last reader leaves.
            if (GST_MESSAGE_TYPE(message) == GST_MESSAGE_ERROR) {
                gst_element_set_state(pipeline, GST_STATE_NULL);
                gst_element_set_state(pipeline, GST_STATE_PLAYING);
            }
            gst_message_unref(message);
        }
        if (frozen) continue;
        // A row of GRAY8 has a stride of a multiple of 4.
        GstBuffer *buffer = gst_buffer_new_allocate(NULL, 32, NULL);
        GstMapInfo map;
        gst_buffer_map(buffer, &map, GST_MAP_WRITE);
        for (int bit = 0; bit < 16; bit++) {
            map.data[bit] = (number >> bit) & 1 ? 235 : 16;
            map.data[16 + bit] = (number >> bit) & 1 ? 16 : 235;
        }
        gst_buffer_unmap(buffer, &map);
        // As the driver of a camera numbers its pictures, also those that are lost.
        GST_BUFFER_OFFSET(buffer) = number;
        gst_app_src_push_buffer(GST_APP_SRC(source), buffer);
    }
}
