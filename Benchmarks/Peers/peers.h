// Shared by all measuring programs.
#pragma once

#include <dbus/dbus.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/// Microseconds of the monotonic clock.
static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec / 1e3;
}

static inline int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double median(double *values, int count) {
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

/// The median of the ratios of all blocks. The calls of a block take turns, so that other load on the machine affects
/// both kinds equally.
static inline double median_ratio(const double *ours, const double *theirs, int blocks, int block) {
    double ratios[blocks], one[block], other[block];
    for (int b = 0; b < blocks; b++) {
        memcpy(one, ours + b * block, sizeof one);
        memcpy(other, theirs + b * block, sizeof other);
        ratios[b] = median(one, block) / median(other, block);
    }
    return median(ratios, blocks);
}

/// The pause before each measurement "after a rest", in microseconds.
enum { rest = 20000 };

static inline void *check(void *pointer, const char *what) {
    if (!pointer) {
        fprintf(stderr, "%s failed\n", what);
        exit(1);
    }
    return pointer;
}

static inline DBusConnection *open_bus(const char *address) {
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *connection = dbus_connection_open_private(address, &error);
    if (!connection || !dbus_bus_register(connection, &error)) {
        fprintf(stderr, "%s: %s\n", address, error.message ? error.message : "no bus");
        exit(1);
    }
    dbus_connection_set_exit_on_disconnect(connection, FALSE);
    return connection;
}

static inline DBusMessage *method(const char *path, const char *interface, const char *member, const char *service) {
    return check(dbus_message_new_method_call(service, path, interface, member), member);
}

/// Waits for the answer and frees the call. Exits if the answer is an error.
static inline DBusMessage *ask(DBusConnection *connection, DBusMessage *call) {
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(connection, call, 60000, &error);
    if (!reply) {
        fprintf(stderr, "%s: %s: %s\n", dbus_message_get_member(call), error.name, error.message);
        exit(1);
    }
    dbus_message_unref(call);
    return reply;
}

/// Appends an empty dictionary to the arguments of the call.
static inline DBusMessage *no_options(DBusMessage *call) {
    DBusMessageIter arguments, options;
    dbus_message_iter_init_append(call, &arguments);
    dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "{sv}", &options);
    dbus_message_iter_close_container(&arguments, &options);
    return call;
}
