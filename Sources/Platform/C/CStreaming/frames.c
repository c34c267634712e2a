#define _GNU_SOURCE
#include "CStreaming.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

// The pictures of a camera for another program. GStreamer's thread leaves the newest picture here and goes on; a thread of its
// own writes one after the other, each as a whole.
struct shim_frames {
    gint references;
    GMutex lock;
    GCond changed;
    shim_frames_format format;
    char *path;
    GstElement *pipeline;  // borrowed: the pad is in it
    int wake;
    gboolean is_over;
    guint64 anchor;  // the running time of the first picture
    GstBuffer *waiting;
    guint64 number, time;  // of the newest picture
    gboolean is_read, is_writing;
    guint64 last;  // the number of the last picture that the reader got
    guint64 written, lost;
};

// More than a picture of the usual size; a FIFO has 64 kB by itself.
static const int pipe_size = 1 << 20;

void shim_frames_free(gpointer data) {
    shim_frames *frames = (shim_frames *)data;
    if (!g_atomic_int_dec_and_test(&frames->references)) return;
    if (frames->waiting) gst_buffer_unref(frames->waiting);
    if (frames->wake >= 0) close(frames->wake);
    g_mutex_clear(&frames->lock);
    g_cond_clear(&frames->changed);
    g_free(frames->path);
    g_free(frames);
}

// MARK: The thread that writes

static int open_reader(const shim_frames *frames) {
    // Without a reader it fails.
    int file = open(frames->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (file < 0) return -1;
    if (fstat(file, &status) || !S_ISFIFO(status.st_mode)) {
        close(file);
        return -1;
    }
    fcntl(file, F_SETPIPE_SZ, pipe_size);
    return file;
}
// FALSE: the reader has left, or this is over.
static gboolean write_all(const shim_frames *frames, int file, const guint8 *bytes, gsize count) {
    while (count) {
        ssize_t done = write(file, bytes, count);
        if (done > 0) {
            bytes += done;
            count -= (gsize)done;
            continue;
        }
        if (done < 0 && errno == EINTR) continue;
        if (done < 0 && errno != EAGAIN) return FALSE;
        struct pollfd waits[2] = {{.fd = file, .events = POLLOUT}, {.fd = frames->wake, .events = POLLIN}};
        poll(waits, 2, -1);
        // The reader has left, even if there is another one by now.
        if (waits[1].revents || waits[0].revents & POLLERR) return FALSE;
    }
    return TRUE;
}
static gboolean write_picture(
    const shim_frames *frames, int file, const shim_frame_header *header, const guint8 *bytes) {
    if (frames->format.has_header && !write_all(frames, file, (const guint8 *)header, sizeof *header)) return FALSE;
    for (int plane = 0; plane < 3; plane++) {
        gsize row = (gsize)frames->format.bytes[plane], stride = (gsize)frames->format.stride[plane];
        gsize rows = (gsize)frames->format.rows[plane];
        if (row == stride) {
            if (!write_all(frames, file, bytes, row * rows)) return FALSE;
        } else {
            for (gsize line = 0; line < rows; line++)
                if (!write_all(frames, file, bytes + line * stride, row)) return FALSE;
        }
        bytes += stride * rows;
    }
    return TRUE;
}
static void *write_pictures(void *data) {
    shim_frames *frames = (shim_frames *)data;
    int file = -1;
    // A reader that leaves is an error of write, and no signal.
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    gsize stored = 0;
    shim_frame_header header = {.header_size = sizeof header};
    header.width = (guint32)frames->format.width;
    header.height = (guint32)frames->format.height;
    for (int plane = 0; plane < 3; plane++) {
        stored += (gsize)frames->format.stride[plane] * (gsize)frames->format.rows[plane];
        header.picture_size += (guint32)(frames->format.bytes[plane] * frames->format.rows[plane]);
    }
    g_mutex_lock(&frames->lock);
    for (;;) {
        while (!frames->waiting && !frames->is_over) g_cond_wait(&frames->changed, &frames->lock);
        if (frames->is_over) break;
        GstBuffer *buffer = frames->waiting;
        frames->waiting = NULL;
        header.number = frames->number;
        header.time = frames->time;
        frames->is_writing = TRUE;
        g_mutex_unlock(&frames->lock);
        gboolean is_new = file < 0, is_done = FALSE;
        if (is_new) file = open_reader(frames);
        GstMapInfo map;
        gboolean is_mapped = file >= 0 && gst_buffer_map(buffer, &map, GST_MAP_READ);
        g_mutex_lock(&frames->lock);
        if (is_new && file >= 0) {
            frames->is_read = TRUE;
            frames->last = header.number - 1;
        }
        g_mutex_unlock(&frames->lock);
        if (is_mapped) {
            // One of another size is left out, and counts as lost.
            gboolean is_right = map.size >= stored;
            if (is_right) is_done = write_picture(frames, file, &header, map.data);
            gst_buffer_unmap(buffer, &map);
            if (is_right && !is_done) {
                close(file);
                file = -1;
            }
        }
        gst_buffer_unref(buffer);
        g_mutex_lock(&frames->lock);
        frames->is_writing = FALSE;
        frames->is_read = file >= 0;
        if (is_done) {
            frames->lost += header.number - frames->last - 1;
            frames->last = header.number;
            frames->written++;
        }
    }
    g_mutex_unlock(&frames->lock);
    if (file >= 0) close(file);
    shim_frames_free(frames);
    return NULL;
}

// MARK: GStreamer's thread

static GstPadProbeReturn picture_ends(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    shim_frames *frames = (shim_frames *)data;
    GstBuffer *buffer = GST_PAD_PROBE_INFO_BUFFER(info);
    guint64 time = shim_running_time(pad, buffer);
    if (time == GST_CLOCK_TIME_NONE) return GST_PAD_PROBE_OK;
    g_mutex_lock(&frames->lock);
    if (frames->anchor == GST_CLOCK_TIME_NONE) frames->anchor = time;
    guint64 number = 1;
    if (time > frames->anchor)
        number += gst_util_uint64_scale_round(
            time - frames->anchor, (guint64)frames->format.numerator,
            GST_SECOND * (guint64)frames->format.denominator);
    if (!frames->is_over && number > frames->number) {
        if (frames->waiting) gst_buffer_unref(frames->waiting);
        frames->waiting = gst_buffer_ref(buffer);
        frames->number = number;
        frames->time = gst_element_get_base_time(frames->pipeline) + time;
        g_cond_signal(&frames->changed);
    }
    g_mutex_unlock(&frames->lock);
    return GST_PAD_PROBE_OK;
}

// MARK: Requests

shim_frames *shim_frames_new(const shim_frames_format *format, GstPad *end, GstElement *pipeline) {
    shim_frames *frames = g_new0(shim_frames, 1);
    frames->references = 2;
    g_mutex_init(&frames->lock);
    g_cond_init(&frames->changed);
    frames->format = *format;
    frames->path = g_strdup(format->path);
    frames->format.path = frames->path;
    frames->pipeline = pipeline;
    frames->anchor = GST_CLOCK_TIME_NONE;
    frames->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_t thread;
    if (frames->wake < 0 || pthread_create(&thread, NULL, write_pictures, frames)) {
        frames->references = 1;
        shim_frames_free(frames);
        return NULL;
    }
    pthread_detach(thread);
    g_atomic_int_inc(&frames->references);
    gst_pad_add_probe(end, GST_PAD_PROBE_TYPE_BUFFER, picture_ends, frames, shim_frames_free);
    return frames;
}
void shim_frames_end(shim_frames *frames) {
    g_mutex_lock(&frames->lock);
    frames->is_over = TRUE;
    g_cond_signal(&frames->changed);
    g_mutex_unlock(&frames->lock);
    eventfd_write(frames->wake, 1);
}
shim_frames_facts shim_frames_read(shim_frames *frames) {
    g_mutex_lock(&frames->lock);
    shim_frames_facts facts = {.written = frames->written, .lost = frames->lost, .is_read = frames->is_read};
    // What came after the last one that the reader got, but for the one that is being written and the one that waits.
    guint64 after = frames->is_read ? frames->number - frames->last : 0;
    guint64 coming = (frames->is_writing ? 1 : 0) + (frames->waiting ? 1 : 0);
    if (after > coming) facts.lost += after - coming;
    g_mutex_unlock(&frames->lock);
    return facts;
}
