// Measures the milliseconds of sound on a monitor within two seconds after a device was unplugged.
//
//   leak MONITOR MODULE    unloads this module of the server and prints the milliseconds
#include "listening.h"

enum { rate = 48000, window = rate / 1000, threshold = 300 };

static double begin;
static int heard, filled, loud;

static void hear(const void *data, size_t size, double arrival) {
    const short *samples = data;
    for (size_t i = 0; i < size / 2; i++) {
        double time = arrival - (double)(size / 2 - i) / rate * 1e6;
        if (begin == 0 || time < begin) continue;
        if (samples && (samples[i] > threshold || samples[i] < -threshold)) loud = 1;
        if (++filled < window) continue;
        heard += loud;
        filled = loud = 0;
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 64;
    connect_to_server();
    pa_sample_spec spec = {.format = PA_SAMPLE_S16LE, .rate = rate, .channels = 1};
    record(arguments[1], &spec, 192, hear);
    turn_until(now() + 500e3);
    begin = now();
    pa_operation_unref(pa_context_unload_module(context, (unsigned)atoi(arguments[2]), NULL, NULL));
    turn_until(begin + 2100e3);
    printf("%d\n", heard);
    return 0;
}
