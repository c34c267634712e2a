// Measures PulseAudio's module-role-cork: the time from the creation of a phone stream until the server asks the music,
// another client, to cork. First without pauses, then each after a rest. Prints: cork and cork-rested, µs.
#include "silence.h"

enum { rounds = 101 };

static pa_mainloop *loop;
static double asked;
static int released;

static void wait_until(int *flag) {
    while (!*flag)
        if (pa_mainloop_iterate(loop, 1, NULL) < 0) exit(1);
}

static void heard(pa_stream *stream, const char *name, pa_proplist *list, void *context) {
    (void)stream, (void)list, (void)context;
    if (!strcmp(name, PA_STREAM_EVENT_REQUEST_CORK)) asked = now();
    if (!strcmp(name, PA_STREAM_EVENT_REQUEST_UNCORK)) released = 1;
}

static void done(pa_stream *stream, int success, void *flag) {
    (void)stream, (void)success;
    *(int *)flag = 1;
}

/// Obeys the module, because it asks only corked streams to uncork.
static void cork(pa_stream *stream, int corked) {
    int is_done = 0;
    pa_operation_unref(check(pa_stream_cork(stream, corked, done, &is_done), "pa_stream_cork"));
    wait_until(&is_done);
}

static void end(pa_stream *stream) {
    while (pa_stream_get_state(stream) == PA_STREAM_CREATING) pa_mainloop_iterate(loop, 1, NULL);
    pa_stream_disconnect(stream);
    pa_stream_unref(stream);
}

static pa_context *client(const char *name) {
    pa_context *context = check(pa_context_new(pa_mainloop_get_api(loop), name), "pa_context_new");
    if (pa_context_connect(context, NULL, PA_CONTEXT_NOAUTOSPAWN, NULL) < 0) exit(1);
    while (pa_context_get_state(context) != PA_CONTEXT_READY) {
        if (!PA_CONTEXT_IS_GOOD(pa_context_get_state(context))) exit(1);
        pa_mainloop_iterate(loop, 1, NULL);
    }
    return context;
}

/// Waits while the music continues.
static void wait_for(int microseconds) {
    double end = now() + microseconds;
    while (now() < end) {
        if (pa_mainloop_prepare(loop, (int)(end - now())) < 0 || pa_mainloop_poll(loop) < 0) exit(1);
        pa_mainloop_dispatch(loop);
    }
}

static void measure(const char *name, pa_context *caller, pa_stream *music, int pause) {
    double times[rounds];
    for (int i = 0; i < rounds; i++) {
        wait_for(pause);
        asked = 0;
        released = 0;
        double start = now();
        pa_stream *phone = play_silence(caller, "phone", heard);
        while (!asked) pa_mainloop_iterate(loop, 1, NULL);
        times[i] = asked - start;
        cork(music, 1);
        end(phone);
        wait_until(&released);
        cork(music, 0);
    }
    printf("%s %.1f\n", name, median(times, rounds));
}

int main(void) {
    loop = check(pa_mainloop_new(), "pa_mainloop_new");
    pa_stream *music = play_silence(client("music"), "music", heard);
    while (pa_stream_get_state(music) != PA_STREAM_READY) pa_mainloop_iterate(loop, 1, NULL);
    pa_context *caller = client("phone");
    measure("cork", caller, music, 0);
    measure("cork-rested", caller, music, rest);
    return 0;
}
