// A camera without hardware for PipeWire: pictures that carry their number, as 16 dark or bright fields and, below, their
// complement. Commands on standard input: freeze, thaw; its end ends the camera. It prints "ready", and when the picture 0 was sent, by
// CLOCK_MONOTONIC in microseconds.
//
//   camera NAME POSITION WIDTH HEIGHT RATE [PROPERTY=VALUE,...]
#include <pipewire/pipewire.h>
#include <spa/param/video/format-utils.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { fields = 16, dark = 16, bright = 235, grey = 128 };

static struct {
    struct pw_main_loop *loop;
    struct pw_stream *stream;
    struct spa_source *timer;
    uint32_t width, height, rate;
    uint64_t number;
    int64_t next;  // when the picture `number` is sent, in microseconds
    bool is_frozen, is_watched;
} camera;

static int64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000 + time.tv_nsec / 1000;
}
static void arm(void) {
    struct timespec time = {.tv_sec = camera.next / 1000000, .tv_nsec = camera.next % 1000000 * 1000};
    pw_loop_update_timer(pw_main_loop_get_loop(camera.loop), camera.timer, &time, NULL, true);
}

// YUY2: a brightness, and half of the colour, for each point.
static void draw(uint8_t *bytes) {
    size_t row = camera.width * 2;
    for (uint32_t half = 0; half < 2; half++) {
        uint32_t first = half * camera.height / 2, end = half ? camera.height : camera.height / 2;
        uint8_t *line = bytes + first * row;
        for (uint32_t x = 0; x < camera.width; x++) {
            bool bit = camera.number >> (x * fields / camera.width) & 1;
            line[x * 2] = bit == (half == 0) ? bright : dark;
            line[x * 2 + 1] = grey;
        }
        for (uint32_t y = first + 1; y < end; y++) memcpy(bytes + y * row, line, row);
    }
}
static void send(void) {
    struct pw_buffer *waiting = camera.is_watched ? pw_stream_dequeue_buffer(camera.stream) : NULL;
    if (!waiting) return;
    struct spa_buffer *buffer = waiting->buffer;
    struct spa_data *data = &buffer->datas[0];
    uint32_t size = camera.width * camera.height * 2;
    if (data->data && data->maxsize >= size) {
        draw(data->data);
        *data->chunk = (struct spa_chunk){.size = size, .stride = (int32_t)camera.width * 2};
        struct spa_meta_header *header = spa_buffer_find_meta_data(buffer, SPA_META_Header, sizeof *header);
        // As the driver of a camera numbers its pictures, also those that are lost.
        if (header) *header = (struct spa_meta_header){.pts = now() * 1000, .seq = camera.number};
    }
    pw_stream_queue_buffer(camera.stream, waiting);
    pw_stream_trigger_process(camera.stream);
}
static void on_time(void *nothing, uint64_t expirations) {
    (void)nothing, (void)expirations;
    for (; camera.next <= now(); camera.number++, camera.next += 1000000 / camera.rate)
        if (!camera.is_frozen) send();
    arm();
}

static void on_state(void *nothing, enum pw_stream_state old, enum pw_stream_state state, const char *error) {
    (void)nothing, (void)old;
    camera.is_watched = state == PW_STREAM_STATE_STREAMING;
    if (state != PW_STREAM_STATE_ERROR && state != PW_STREAM_STATE_UNCONNECTED) return;
    fprintf(stderr, "the camera has ended: %s\n", error ? error : "the server is gone");
    pw_main_loop_quit(camera.loop);
}
static void on_param(void *nothing, uint32_t id, const struct spa_pod *param) {
    (void)nothing;
    if (!param || id != SPA_PARAM_Format) return;
    uint8_t space[512];
    struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(space, sizeof space);
    const struct spa_pod *params[] = {
        spa_pod_builder_add_object(
            &builder, SPA_TYPE_OBJECT_ParamBuffers, SPA_PARAM_Buffers, SPA_PARAM_BUFFERS_buffers,
            SPA_POD_CHOICE_RANGE_Int(8, 4, 16), SPA_PARAM_BUFFERS_blocks, SPA_POD_Int(1), SPA_PARAM_BUFFERS_size,
            SPA_POD_Int((int)(camera.width * camera.height * 2)), SPA_PARAM_BUFFERS_stride, SPA_POD_Int((int)camera.width * 2),
            SPA_PARAM_BUFFERS_dataType, SPA_POD_CHOICE_FLAGS_Int((1 << SPA_DATA_MemFd) | (1 << SPA_DATA_MemPtr))),
        spa_pod_builder_add_object(
            &builder, SPA_TYPE_OBJECT_ParamMeta, SPA_PARAM_Meta, SPA_PARAM_META_type, SPA_POD_Id(SPA_META_Header),
            SPA_PARAM_META_size, SPA_POD_Int(sizeof(struct spa_meta_header)))};
    pw_stream_update_params(camera.stream, params, 2);
}
static const struct pw_stream_events events = {
    PW_VERSION_STREAM_EVENTS, .state_changed = on_state, .param_changed = on_param};

static void on_input(void *nothing, int descriptor, uint32_t mask) {
    (void)nothing, (void)mask;
    char command[64];
    ssize_t size = read(descriptor, command, sizeof command - 1);
    if (size <= 0) {
        pw_main_loop_quit(camera.loop);
        return;
    }
    command[size] = 0;
    camera.is_frozen = strstr(command, "freeze") != NULL;
}

static struct pw_properties *properties(char *name, const char *position, char *more) {
    struct pw_properties *properties = pw_properties_new(
        PW_KEY_MEDIA_CLASS, "Video/Source", PW_KEY_MEDIA_ROLE, "Camera", PW_KEY_NODE_NAME, name, PW_KEY_NODE_DESCRIPTION, name,
        PW_KEY_APP_NAME, name, "sessiond.camera.position", position, NULL);
    for (char *word = more ? strtok(more, ",") : NULL; word; word = strtok(NULL, ",")) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value = 0;
        pw_properties_set(properties, word, value + 1);
    }
    return properties;
}

int main(int count, char **words) {
    if (count < 6) {
        fprintf(stderr, "usage: camera NAME POSITION WIDTH HEIGHT RATE [PROPERTY=VALUE,...]\n");
        return 64;
    }
    camera.width = (uint32_t)atoi(words[3]), camera.height = (uint32_t)atoi(words[4]), camera.rate = (uint32_t)atoi(words[5]);
    pw_init(NULL, NULL);
    camera.loop = pw_main_loop_new(NULL);
    struct pw_loop *loop = pw_main_loop_get_loop(camera.loop);
    camera.stream = pw_stream_new_simple(
        loop, words[1], properties(words[1], words[2], count > 6 ? words[6] : NULL), &events, NULL);
    if (!camera.stream) {
        fprintf(stderr, "the camera cannot be connected\n");
        return 1;
    }
    uint8_t space[512];
    struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(space, sizeof space);
    const struct spa_pod *format = spa_pod_builder_add_object(
        &builder, SPA_TYPE_OBJECT_Format, SPA_PARAM_EnumFormat, SPA_FORMAT_mediaType, SPA_POD_Id(SPA_MEDIA_TYPE_video),
        SPA_FORMAT_mediaSubtype, SPA_POD_Id(SPA_MEDIA_SUBTYPE_raw), SPA_FORMAT_VIDEO_format, SPA_POD_Id(SPA_VIDEO_FORMAT_YUY2),
        SPA_FORMAT_VIDEO_size, SPA_POD_Rectangle(&SPA_RECTANGLE(camera.width, camera.height)), SPA_FORMAT_VIDEO_framerate,
        SPA_POD_Fraction(&SPA_FRACTION(camera.rate, 1)));
    if (pw_stream_connect(
            camera.stream, PW_DIRECTION_OUTPUT, PW_ID_ANY, PW_STREAM_FLAG_DRIVER | PW_STREAM_FLAG_MAP_BUFFERS, &format, 1) < 0) {
        fprintf(stderr, "the camera cannot be connected\n");
        return 1;
    }
    camera.timer = pw_loop_add_timer(loop, on_time, NULL);
    pw_loop_add_io(loop, 0, SPA_IO_IN | SPA_IO_HUP, false, on_input, NULL);
    camera.next = now();
    printf("ready\nfirst %lld\n", (long long)camera.next);
    fflush(stdout);
    on_time(NULL, 0);
    pw_main_loop_run(camera.loop);
    pw_stream_destroy(camera.stream);
    pw_main_loop_destroy(camera.loop);
    return 0;
}
