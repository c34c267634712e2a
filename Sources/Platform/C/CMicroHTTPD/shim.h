// libmicrohttpd, and shims for its variadic functions, which Swift cannot call.
#pragma once
#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

// A server on a free port of 127.0.0.1 without a thread of its own: its epoll descriptor is watched by our loop. No
// connection times out, so an idle server wakes up never. The program must ignore SIGPIPE: only if it says so, files are sent
// by sendfile, which cannot suppress the signal.
static inline struct MHD_Daemon *shim_start_server(
    MHD_AccessHandlerCallback access, MHD_RequestCompletedCallback completed, unsigned int connections, void *context) {
    struct sockaddr_in address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, access, context, MHD_OPTION_SOCK_ADDR, &address,
        MHD_OPTION_NOTIFY_COMPLETED, completed, context, MHD_OPTION_CONNECTION_LIMIT, connections,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)(32 << 10), MHD_OPTION_CONNECTION_TIMEOUT, 0u,
        MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
}

static inline uint16_t shim_port(struct MHD_Daemon *server) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server, MHD_DAEMON_INFO_BIND_PORT);
    return info ? info->port : 0;
}

static inline int shim_server_descriptor(struct MHD_Daemon *server) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server, MHD_DAEMON_INFO_EPOLL_FD);
    return info ? info->epoll_fd : -1;
}

static inline int shim_socket(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info ? info->connect_fd : -1;
}

// Milliseconds until the server must run; -1: not before its descriptor is readable.
static inline int64_t shim_timeout(struct MHD_Daemon *server) {
    MHD_UNSIGNED_LONG_LONG milliseconds = 0;
    return MHD_get_timeout(server, &milliseconds) == MHD_YES ? (int64_t)milliseconds : -1;
}

// Clients that leave while their connections are suspended: libmicrohttpd does not look at those.

static inline int shim_watch_leaving(int set, int socket) {
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data = {.fd = socket}};
    return epoll_ctl(set, EPOLL_CTL_ADD, socket, &event);
}
static inline void shim_forget_leaving(int set, int socket) {
    struct epoll_event event = {0};
    epoll_ctl(set, EPOLL_CTL_DEL, socket, &event);
}
static inline int shim_leaving_set(void) { return epoll_create1(EPOLL_CLOEXEC); }

// The sockets whose clients have left, at most `room`.
static inline int shim_left(int set, int *sockets, int room) {
    struct epoll_event events[64];
    int count = epoll_wait(set, events, room < 64 ? room : 64, 0);
    for (int i = 0; i < count; i++) sockets[i] = events[i].data.fd;
    return count < 0 ? 0 : count;
}

// The names of closed enumerations depend on the compiler.

static const enum MHD_Result shim_yes = MHD_YES;
static const enum MHD_Result shim_no = MHD_NO;

static inline const char *shim_field(struct MHD_Connection *connection, const char *name) {
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}
static inline struct MHD_Response *shim_response(const void *bytes, size_t size) {
    return MHD_create_response_from_buffer(size, (void *)bytes, MHD_RESPMEM_MUST_COPY);
}

// Casts in macros.
static const ssize_t shim_end_of_stream = MHD_CONTENT_READER_END_OF_STREAM;
static const ssize_t shim_end_with_error = MHD_CONTENT_READER_END_WITH_ERROR;
static const uint64_t shim_size_unknown = MHD_SIZE_UNKNOWN;
