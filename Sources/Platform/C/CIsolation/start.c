// Starts untrusted programs.
#define _GNU_SOURCE
#include "CIsolation.h"
#include "namespaces.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int isolation_is_sanitized(void) {
    return dlsym(NULL, "__asan_init") != NULL || dlsym(NULL, "__tsan_init") != NULL;
}

// What the child needs. It shares its parent's memory until it executes the program.
struct request {
    const char *path;
    char *const *arguments;
    char *const *environment;
    const struct isolation_start *start;
    int is_sanitized;
    unsigned int user, group;
    // Set by the child.
    volatile int error;
};

static void confine(const struct isolation_start *start, int is_sanitized) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    // Otherwise a program of root would get all capabilities again.
    prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_NOROOT_LOCKED, 0, 0, 0);
    for (int number = 0; prctl(PR_CAPBSET_READ, number, 0, 0, 0) >= 0; number++)
        prctl(PR_CAPBSET_DROP, number, 0, 0, 0);
    isolation_drop_capabilities();
    setrlimit(RLIMIT_NOFILE, &start->files);
    struct rlimit memory;
    if (is_sanitized || getrlimit(RLIMIT_DATA, &memory) != 0) return;
    if (memory.rlim_max > start->memory) {
        memory.rlim_cur = memory.rlim_max = start->memory;
        setrlimit(RLIMIT_DATA, &memory);
    }
}

static void redirect(int output) {
    if (output < 0) return;
    const int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (empty >= 0) dup2(empty, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
}

// Runs in the child. So it must not allocate memory.
static int execute(void *context) {
    struct request *request = context;
    struct sigaction action = {0};
    action.sa_handler = SIG_DFL;
    for (int number = 1; number < 65; number++) sigaction(number, &action, NULL);
    setsid();
    if (request->start->has_namespaces && !isolation_keep_ids(request->user, request->group)) {
        request->error = EPERM;
        _exit(127);
    }
    redirect(request->start->output);
    confine(request->start, request->is_sanitized);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(request->path, request->arguments, request->environment);
    request->error = errno;
    _exit(127);
}

enum { stack_size = 64 << 10 };

static pid_t start(struct request *request, void *stack) {
    // Like vfork, with a stack of its own: the parent waits until the program is executed. A sanitizer allows no other
    // process to share its memory; then a program that cannot be executed ends at once.
    const int memory = request->is_sanitized ? 0 : CLONE_VM | CLONE_VFORK;
    const int namespaces = request->start->has_namespaces ? CLONE_NEWUSER | CLONE_NEWPID : 0;
    request->error = 0;
    const pid_t process = clone(execute, (char *)stack + stack_size, memory | SIGCHLD | namespaces, request);
    if (process < 0) return -1;
    if (request->error == 0) return process;
    // The child could not execute the program.
    while (waitpid(process, NULL, 0) < 0 && errno == EINTR) {}
    errno = request->error;
    return -1;
}

pid_t isolation_start_program(
    const char *path, char *const arguments[], char *const environment[], const struct isolation_start *how
) {
    struct isolation_start chosen = *how;
    struct request request = {
        .path = path, .arguments = arguments, .environment = environment, .start = &chosen,
        .is_sanitized = isolation_is_sanitized(), .user = geteuid(), .group = getegid()};
    void *stack = mmap(NULL, stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) return -1;
    sigset_t all, before;
    sigfillset(&all);
    // Our signal handlers must not run in the child, because it uses our memory.
    sigprocmask(SIG_SETMASK, &all, &before);
    pid_t process = start(&request, stack);
    // Kernels and sandboxes refuse namespaces with several errors.
    if (process < 0 && chosen.has_namespaces) {
        chosen.has_namespaces = 0;
        process = start(&request, stack);
    }
    const int failure = errno;
    sigprocmask(SIG_SETMASK, &before, NULL);
    munmap(stack, stack_size);
    errno = failure;
    return process;
}

pid_t isolation_fork(void) {
    const unsigned int user = geteuid(), group = getegid();
    // Its writing end is closed when this process ends.
    int life[2];
    if (pipe2(life, O_CLOEXEC) != 0) return -1;
    // The process namespace is that of the child.
    if (unshare(CLONE_NEWUSER | CLONE_NEWPID) == 0) isolation_keep_ids(user, group);
    const pid_t child = fork();
    if (child == 0) {
        close(life[1]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        // The parent may have ended before that.
        struct pollfd parent = {life[0], POLLIN, 0};
        if (poll(&parent, 1, 0) != 0) _exit(1);
        setsid();
    }
    close(life[0]);
    return child;
}
