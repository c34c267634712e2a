// Measures calls and signals over the bus. The references are a ping to the daemon, and a relay that decides nothing.
// Arguments: the addresses of three buses, each with a daemon without sessions. The first also has the relay, and the
// daemon of the third saves no state.
#include <sys/epoll.h>
#include <unistd.h>

#include "sessions.h"

enum {
    blocks = 100, block = 20, trips = blocks * block, telling_blocks = 50, tellings = telling_blocks * block,
    rested_blocks = 5, rested = rested_blocks * block, crowds = 151, crowd = 100, multitude = 1000, per_client = 25
};

typedef struct {
    DBusConnection *connection;
    char path[session_path];
} Session;

static double trip(DBusConnection *connection, DBusMessage *call) {
    double start = now();
    DBusMessage *reply = ask(connection, call);
    double time = now() - start;
    dbus_message_unref(reply);
    return time;
}

static Session create(DBusConnection *connection, const char *class, const char *option) {
    Session session = {.connection = connection};
    create_session(connection, class, option, session.path);
    return session;
}

/// A session on a new connection, which subscribes to the session's signals and to those of the relay.
static Session listener(const char *address, const char *option) {
    Session session = create(open_bus(address), "app", option);
    char rule[200];
    snprintf(rule, sizeof rule, "type='signal',interface='org.sessiond1.Session',path='%s'", session.path);
    dbus_bus_add_match(session.connection, rule, NULL);
    dbus_bus_add_match(session.connection, "type='signal',interface='bench.Relay'", NULL);
    dbus_connection_flush(session.connection);
    return session;
}

/// A call without options, to the session or, with NULL, to the relay.
static DBusMessage *with_options(const Session *session, const char *member) {
    return no_options(
        session ? method(session->path, "org.sessiond1.Session", member, "org.sessiond1")
                : method("/relay", "bench.Relay", member, "bench.Relay"));
}

static double activate(const Session *session) { return trip(session->connection, with_options(session, "Activate")); }
static double deactivate(const Session *session) {
    return trip(session->connection, with_options(session, "Deactivate"));
}
static double ping(const Session *session) {
    return trip(
        session->connection, method("/org/sessiond1", "org.freedesktop.DBus.Peer", "Ping", "org.sessiond1"));
}

/// Discards all received messages.
static void drain(const Session *sessions, int count) {
    for (int i = 0; i < count; i++) {
        DBusMessage *message;
        dbus_connection_read_write(sessions[i].connection, 0);
        while ((message = dbus_connection_pop_message(sessions[i].connection))) dbus_message_unref(message);
    }
}

/// Measures the time from sending the call until the last session has received the signal. Then waits for the answer.
static double told(
    DBusConnection *caller, DBusMessage *call, const char *member, const Session *sessions, int count, double *answered) {
    int poll = epoll_create1(EPOLL_CLOEXEC);
    drain(sessions, count);
    for (int i = 0; i < count; i++) {
        int descriptor;
        dbus_connection_get_unix_fd(sessions[i].connection, &descriptor);
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
        epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event);
    }
    DBusPendingCall *pending;
    double start = now();
    dbus_connection_send_with_reply(caller, call, &pending, 10000);
    dbus_connection_flush(caller);
    for (int left = count; left;) {
        struct epoll_event events[16];
        int ready = epoll_wait(poll, events, 16, 10000);
        if (ready <= 0) {
            fprintf(stderr, "%s: %d of %d sessions got no signal\n", member, left, count);
            exit(1);
        }
        for (int i = 0; i < ready; i++) {
            DBusConnection *connection = sessions[events[i].data.u32].connection;
            DBusMessage *message;
            dbus_connection_read_write(connection, 0);
            while ((message = dbus_connection_pop_message(connection))) {
                const char *name = dbus_message_get_member(message);
                if (name && !strcmp(name, member)) left--;
                dbus_message_unref(message);
            }
        }
    }
    double time = now() - start;
    dbus_pending_call_block(pending);
    if (answered) *answered = now() - start;
    DBusMessage *reply = dbus_pending_call_steal_reply(pending);
    if (dbus_message_get_type(reply) == DBUS_MESSAGE_TYPE_ERROR) {
        fprintf(stderr, "%s: %s\n", dbus_message_get_member(call), dbus_message_get_error_name(reply));
        exit(1);
    }
    dbus_message_unref(reply);
    dbus_message_unref(call);
    dbus_pending_call_unref(pending);
    close(poll);
    return time;
}

/// Pings the daemon before the measured call, so that it has sent all signals of the previous call.
static double settled(double (*call)(const Session *), const Session *session) {
    ping(session);
    return call(session);
}

enum { pings, activations, deactivations, kinds };

/// Alternates pings and calls, each after another ping.
static void take_turns(const Session *session, double *times[kinds], int from, int count) {
    for (int i = from; i < from + count; i++) {
        double first = settled(ping, session);
        times[activations][i] = settled(activate, session);
        double second = settled(ping, session);
        times[deactivations][i] = settled(deactivate, session);
        times[pings][i] = (first + second) / 2;
    }
}

/// The ratio of the times, each divided by the time of a ping to the same process: one may run on one processor and the
/// other on two.
static double median_ratio_in_pings(double *ours[kinds], double *theirs[kinds], int kind) {
    static double own[trips], other[trips];
    for (int i = 0; i < trips; i++) {
        own[i] = ours[kind][i] / ours[pings][i];
        other[i] = theirs[kind][i] / theirs[pings][i];
    }
    return median_ratio(own, other, blocks, block);
}

/// Measures a daemon with one session, one with many, and one that saves no state. Short blocks of the three take
/// turns, long enough for the caches of the processor to fill.
static void round_trips(const Session *alone, const Session *among, const Session *unkept) {
    static double times[3][kinds][trips];
    double *one[] = {times[0][0], times[0][1], times[0][2]}, *many[] = {times[1][0], times[1][1], times[1][2]};
    double *free[] = {times[2][0], times[2][1], times[2][2]};
    for (int b = 0; b < blocks; b++) {
        take_turns(alone, one, b * block, block);
        take_turns(among, many, b * block, block);
        take_turns(unkept, free, b * block, block);
    }
    const char *names[] = {"ping", "activate", "deactivate"};
    for (int k = 1; k < kinds; k++) {
        double ratio = median_ratio(one[k], one[pings], blocks, block);
        double ratio_among = median_ratio_in_pings(many, one, k), ratio_kept = median_ratio_in_pings(one, free, k);
        printf("%s-1000 %.1f %.3f\n", names[k], median(many[k], trips), ratio_among);
        printf("%s-unkept %.1f %.3f\n", names[k], median(free[k], trips), ratio_kept);
        printf("%s %.1f %.3f\n", names[k], median(one[k], trips), ratio);
    }
    printf("%s %.1f\n", names[pings], median(one[pings], trips));
    printf("%s-1000 %.1f\n", names[pings], median(many[pings], trips));
}

static double ping_relay(const Session *session) {
    return trip(session->connection, method("/relay", "org.freedesktop.DBus.Peer", "Ping", "bench.Relay"));
}

/// Measures each call after a ping to its receiver and `pause` microseconds of rest.
static void tell(
    const char *name, const Session *caller, const Session *victim, int count, int pause, double *ours, double *answers,
    double *relays) {
    for (int i = 0; i < count; i++) {
        activate(victim);
        ping(caller);
        usleep(pause);
        ours[i] = told(
            caller->connection, with_options(caller, "Activate"), "InterruptionBegan", victim, 1, &answers[i]);
        deactivate(caller);
        ping(caller);
        ping_relay(caller);
        usleep(pause);
        relays[i] = told(caller->connection, with_options(NULL, "Broadcast"), "Told", victim, 1, NULL);
    }
    double ratio = median_ratio(ours, relays, count / block, block);
    printf("%s %.1f %.3f\n", name, median(ours, count), ratio);
    printf("%s-answer %.1f\n", name, median(answers, count));
    printf("%s-relay %.1f\n", name, median(relays, count));
}

static void one(const Session *caller, const char *address) {
    static double ours[tellings], answers[tellings], relays[tellings];
    Session victim = listener(address, NULL);
    tell("told", caller, &victim, tellings, 0, ours, answers, relays);
    tell("told-rested", caller, &victim, rested, rest, ours, answers, relays);
    deactivate(&victim);
}

static void many(const char *address) {
    static double ours[crowds], unicasts[crowds], broadcasts[crowds];
    Session victims[crowd];
    for (int i = 0; i < crowd; i++) victims[i] = listener(address, "mix-with-others");
    Session caller = create(open_bus(address), "call", NULL);
    for (int i = 0; i < crowds; i++) {
        for (int k = 0; k < crowd; k++) activate(&victims[k]);
        ping(&caller);
        ours[i] = told(
            caller.connection, with_options(&caller, "Activate"), "InterruptionBegan", victims, crowd, NULL);
        deactivate(&caller);
        ping(&caller);
        DBusMessage *call = method("/relay", "bench.Relay", "Unicast", "bench.Relay");
        DBusMessageIter arguments, names;
        dbus_message_iter_init_append(call, &arguments);
        dbus_message_iter_open_container(&arguments, DBUS_TYPE_ARRAY, "s", &names);
        for (int k = 0; k < crowd; k++) {
            const char *name = dbus_bus_get_unique_name(victims[k].connection);
            dbus_message_iter_append_basic(&names, DBUS_TYPE_STRING, &name);
        }
        dbus_message_iter_close_container(&arguments, &names);
        unicasts[i] = told(caller.connection, call, "Told", victims, crowd, NULL);
        ping(&caller);
        broadcasts[i] = told(
            caller.connection, with_options(NULL, "Broadcast"), "Told", victims, crowd, NULL);
    }
    printf("told-100 %.1f\n", median(ours, crowds));
    printf("unicasts-100 %.1f\n", median(unicasts, crowds));
    printf("broadcast-100 %.1f\n", median(broadcasts, crowds));
}

int main(int count, char **arguments) {
    if (count != 4) return 64;
    Session alone = create(open_bus(arguments[1]), "app", NULL), unkept = create(open_bus(arguments[3]), "app", NULL);
    DBusConnection *other = NULL;
    for (int i = 1; i < multitude; i++) {
        if (i % per_client == 1) other = open_bus(arguments[2]);
        create(other, "app", NULL);
    }
    Session among = create(open_bus(arguments[2]), "app", NULL);
    round_trips(&alone, &among, &unkept);
    one(&alone, arguments[1]);
    many(arguments[1]);
    return 0;
}
