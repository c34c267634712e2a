#include "CStreaming.h"

#include <unistd.h>

// A file whose bytes must survive a crash of the machine. fdatasync runs on GStreamer's threads, so that neither the
// loop nor the sound waits for a slow disk. Only one runs at a time; further requests cause one more after it.
struct shim_disk {
    int descriptor;
    gint asked;  // 0: none runs; 1: one runs; 2: one runs, and another one follows
};

// Takes ownership of the descriptor.
shim_disk *shim_disk_new(int descriptor) {
    shim_disk *disk = g_atomic_rc_box_new0(shim_disk);
    disk->descriptor = descriptor;
    return disk;
}
static void shim_disk_clear(gpointer disk) { close(((shim_disk *)disk)->descriptor); }
void shim_disk_free(gpointer disk) { g_atomic_rc_box_release_full(disk, shim_disk_clear); }
static void shim_disk_run(GstElement *element, gpointer data) {
    (void)element;
    shim_disk *disk = (shim_disk *)data;
    do {
        g_atomic_int_set(&disk->asked, 1);
        fdatasync(disk->descriptor);
    } while (!g_atomic_int_compare_and_exchange(&disk->asked, 1, 0));
}
void shim_disk_sync(shim_disk *disk, GstElement *element) {
    while (!g_atomic_int_compare_and_exchange(&disk->asked, 1, 2)) {
        if (g_atomic_int_get(&disk->asked) == 2) return;
        if (!g_atomic_int_compare_and_exchange(&disk->asked, 0, 1)) continue;
        gst_element_call_async(element, shim_disk_run, g_atomic_rc_box_acquire(disk), shim_disk_free);
        return;
    }
}
