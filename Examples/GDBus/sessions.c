/* Lists the sessions, with the types that gdbus-codegen generates from the D-Bus interfaces.
 *
 *     xml=$(pkg-config --variable=interfacesdir sessiond)
 *     gdbus-codegen --interface-prefix org.sessiond1. --c-namespace Sessiond --c-generate-object-manager \
 *         --c-generate-autocleanup all --generate-c-code sessiond "$xml"/org.sessiond1.*.xml
 *     cc sessions.c sessiond.c $(pkg-config --cflags --libs gio-unix-2.0) -o sessions
 */
#include <stdio.h>
#include "sessiond.h"

int main(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SessiondManager) manager = sessiond_manager_proxy_new_for_bus_sync(
        G_BUS_TYPE_SESSION, G_DBUS_PROXY_FLAGS_NONE, "org.sessiond1", "/org/sessiond1", NULL, &error);
    g_autoptr(GDBusObjectManager) objects = sessiond_object_manager_client_new_for_bus_sync(
        G_BUS_TYPE_SESSION, G_DBUS_OBJECT_MANAGER_CLIENT_FLAGS_NONE, "org.sessiond1", "/org/sessiond1", NULL, &error);
    if (!manager || !objects) {
        fprintf(stderr, "%s\n", error->message);
        return 69;
    }
    printf("sessiond %s\n", sessiond_manager_get_version(manager));
    GList *all = g_dbus_object_manager_get_objects(objects);
    for (GList *item = all; item; item = item->next) {
        SessiondSession *session = sessiond_object_peek_session(SESSIOND_OBJECT(item->data));
        if (session)
            printf("%s: %s\n", sessiond_session_get_name(session), sessiond_session_get_state(session));
    }
    g_list_free_full(all, g_object_unref);
    return 0;
}
