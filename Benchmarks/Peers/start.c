// Measures the time from exec until a program owns its name on the bus, for two programs in turn. Arguments: name and
// program, twice. Prints: start, ms, ms.
#include "programs.h"

enum { rounds = 41 };

static double start(DBusConnection *connection, const char *name, char *program) {
    double begin = now();
    pid_t process = start_program(program);
    wait_owner(connection, name, 1);
    double time = now() - begin;
    end_program(process);
    wait_owner(connection, name, 0);
    return time;
}

int main(int count, char **arguments) {
    if (count != 5) return 64;
    DBusConnection *connection = open_watching_bus();
    double first[rounds], second[rounds];
    for (int i = 0; i < rounds; i++) {
        first[i] = start(connection, arguments[1], arguments[2]);
        second[i] = start(connection, arguments[3], arguments[4]);
    }
    printf("start %.2f %.2f\n", median(first, rounds) / 1e3, median(second, rounds) / 1e3);
    return 0;
}
