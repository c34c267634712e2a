// The smallest daemon with both libraries: it owns a name on the session bus, connects to the sound server, and waits.
#include <pulse/pulseaudio.h>

#include "peers.h"

static void seen(
    pa_mainloop_api *api, pa_io_event *event, int descriptor, pa_io_event_flags_t flags, void *connection) {
    (void)api, (void)event, (void)descriptor, (void)flags;
    dbus_connection_read_write(connection, 0);
    while (dbus_connection_dispatch(connection) == DBUS_DISPATCH_DATA_REMAINS) {}
}

int main(void) {
    pa_mainloop *loop = check(pa_mainloop_new(), "pa_mainloop_new");
    pa_mainloop_api *api = pa_mainloop_get_api(loop);
    pa_context *context = check(pa_context_new(api, "idle"), "pa_context_new");
    pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL);
    DBusConnection *connection = check(dbus_bus_get_private(DBUS_BUS_SESSION, NULL), "dbus_bus_get_private");
    int descriptor;
    dbus_connection_get_unix_fd(connection, &descriptor);
    api->io_new(api, descriptor, PA_IO_EVENT_INPUT, seen, connection);
    if (dbus_bus_request_name(connection, "bench.Idle", 0, NULL) != DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER) return 1;
    return pa_mainloop_run(loop, NULL) < 0;
}
