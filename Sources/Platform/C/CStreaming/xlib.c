#define _GNU_SOURCE
#include "CStreaming.h"
#include <dlfcn.h>

// libX11 ends the process after each error that no one handles. ximagesink handles none, and uses it on its own threads.
// It is loaded by that plugin alone, so its functions are looked for instead of linked.
typedef void *shim_display;
static void (*shim_unlock)(shim_display);
static void (*shim_set_end)(shim_display, void (*)(shim_display, void *), void *);

// libX11 has locked the display for a thread that is to end, and all others would wait for ever.
static void shim_connection_ended(shim_display display, void *unused) {
    (void)unused;
    shim_unlock(display);
}
static guint shim_errors;
guint shim_screen_errors(void) { return __atomic_load_n(&shim_errors, __ATOMIC_RELAXED); }
static int shim_error_arrived(shim_display display, void *event) {
    (void)event;
    __atomic_add_fetch(&shim_errors, 1, __ATOMIC_RELAXED);
    shim_set_end(display, shim_connection_ended, NULL);
    return 0;
}
static int shim_connection_broke(shim_display display) {
    (void)display;
    return 0;
}
void shim_outlive_screen(void) {
    void *library = dlopen("libX11.so.6", RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return;
    int (*(*watch_errors)(int (*)(shim_display, void *)))(shim_display, void *) = dlsym(library, "XSetErrorHandler");
    int (*(*watch_breaks)(int (*)(shim_display)))(shim_display) = dlsym(library, "XSetIOErrorHandler");
    shim_unlock = dlsym(library, "XUnlockDisplay");
    shim_set_end = dlsym(library, "XSetIOErrorExitHandler");
    if (watch_errors && watch_breaks && shim_unlock && shim_set_end) {
        watch_errors(shim_error_arrived);
        watch_breaks(shim_connection_broke);
    }
    // One reference is enough: the handlers stay.
    static void *kept;
    if (kept) dlclose(library);
    kept = library;
}
