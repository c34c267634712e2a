// libcurl, and shims for its variadic functions, which Swift cannot call: one for each type of argument.
#pragma once
#include <curl/curl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// curl_easy_setopt

static inline CURLcode shim_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode shim_set_size(CURL *easy, CURLoption option, int64_t value) {
    return curl_easy_setopt(easy, option, (curl_off_t)value);
}
// libcurl copies texts.
static inline CURLcode shim_set_text(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode shim_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode shim_set_context(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode shim_set_reader(CURL *easy, curl_read_callback read, curl_seek_callback seek, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_READFUNCTION, read);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_READDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_SEEKFUNCTION, seek);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_SEEKDATA, context);
    return code;
}
static inline CURLcode shim_set_writers(CURL *easy, curl_write_callback header, curl_write_callback body, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, header);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_HEADERDATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, body);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_WRITEDATA, context);
    return code;
}
static inline CURLcode shim_set_progress(CURL *easy, curl_xferinfo_callback progress, void *context) {
    CURLcode code = curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, progress);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_XFERINFODATA, context);
    if (code == CURLE_OK) code = curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
    return code;
}

// Limits the bytes of a new connection that wait unsent in the kernel, so that bytes that count as sent are really on
// their way, and few bytes must be sent again after a cut. This does not reduce the speed, because bytes on their way
// do not count here.
static inline int shim_limit_unsent(void *context, curl_socket_t socket, curlsocktype purpose) {
    int unsent = 128 << 10;
    (void)context;
    if (purpose == CURLSOCKTYPE_IPCXN) setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
    return CURL_SOCKOPT_OK;
}
static inline CURLcode shim_set_unsent_limit(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, shim_limit_unsent);
}

// Opens a socket that the children of this process do not inherit: a child would keep a cancelled connection open, and its
// server would go on sending.
static inline curl_socket_t shim_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
static inline CURLcode shim_set_private_sockets(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, shim_open_socket);
}

// curl_easy_getinfo

static inline CURLcode shim_get_size(CURL *easy, CURLINFO info, int64_t *value) {
    curl_off_t size = 0;
    CURLcode code = curl_easy_getinfo(easy, info, &size);
    *value = size;
    return code;
}
static inline CURLcode shim_get_context(CURL *easy, void **value) {
    return curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)value);
}

// The bytes in a socket's queue that the peer has not acknowledged; ioctl is variadic.
static inline int shim_unacknowledged(curl_socket_t socket) {
    int count = 0;
    return ioctl(socket, SIOCOUTQ, &count) == 0 && count > 0 ? count : 0;
}

// The bytes that have arrived at a socket and were not read.
static inline int shim_arrived(curl_socket_t socket) {
    int count = 0;
    return ioctl(socket, FIONREAD, &count) == 0 && count > 0 ? count : 0;
}

// The next close tells the peer at once that nothing is received any more; otherwise the peer would learn it only after it has
// sent more. For a socket without unsent bytes.
static inline void shim_close_at_once(curl_socket_t socket) {
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

// curl_multi_setopt

static inline CURLMcode shim_multi_set_socket(CURLM *multi, curl_socket_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, callback);
    return code == CURLM_OK ? curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context) : code;
}
static inline CURLMcode shim_multi_set_timer(CURLM *multi, curl_multi_timer_callback callback, void *context) {
    CURLMcode code = curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, callback);
    return code == CURLM_OK ? curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context) : code;
}

// Macros with casts.
static inline CURLcode shim_global_init(void) { return curl_global_init(CURL_GLOBAL_DEFAULT); }
enum {
    shim_read_abort = CURL_READFUNC_ABORT
};
