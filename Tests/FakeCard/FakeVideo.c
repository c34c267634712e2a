// The controls of a camera of Video4Linux without hardware: a library that is loaded before others (LD_PRELOAD). The device
// FAKE_VIDEO_DEVICE is the file FAKE_VIDEO, with a line for each control:
//
//   NAME KIND LEAST MOST STEP VALUE [PLACE=VALUE ...]
//
// What is set is in the file, and each setting is a line of FAKE_VIDEO.log. While FAKE_VIDEO.busy exists, nothing can be set; while
// FAKE_VIDEO.hangs exists, the driver does not answer.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

// The numbers are those of the kernel's headers, so a wrong number in the product is seen.
static const struct {
    const char *name;
    __u32 id;
} names[] = {
    {"focus_auto", V4L2_CID_FOCUS_AUTO},
    {"focus_absolute", V4L2_CID_FOCUS_ABSOLUTE},
    {"auto_focus_start", V4L2_CID_AUTO_FOCUS_START},
    {"auto_exposure", V4L2_CID_EXPOSURE_AUTO},
    {"exposure_time_absolute", V4L2_CID_EXPOSURE_ABSOLUTE},
    {"auto_exposure_bias", V4L2_CID_AUTO_EXPOSURE_BIAS},
    {"white_balance_automatic", V4L2_CID_AUTO_WHITE_BALANCE},
    {"white_balance_temperature", V4L2_CID_WHITE_BALANCE_TEMPERATURE},
    {"do_white_balance", V4L2_CID_DO_WHITE_BALANCE},
    {"image_stabilization", V4L2_CID_IMAGE_STABILIZATION},
    {"led_mode", V4L2_CID_FLASH_LED_MODE},
    {"intensity_torch_mode", V4L2_CID_FLASH_TORCH_INTENSITY},
};
enum { most = sizeof names / sizeof *names };

struct control {
    __u32 id, kind;
    const char *name;
    long long least, most, step, value;
    int items;
    long long places[32], values[32];
};

static const char *suffixed(const char *suffix) {
    static char path[4096];
    snprintf(path, sizeof path, "%s%s", getenv("FAKE_VIDEO"), suffix);
    return path;
}

static int load(struct control *all) {
    FILE *file = fopen(suffixed(""), "r");
    char line[1024];
    int count = 0;
    while (file && count < most && fgets(line, sizeof line, file)) {
        struct control *control = all + count;
        char name[64], kind[16];
        int end = 0;
        memset(control, 0, sizeof *control);
        if (sscanf(line, "%63s %15s %lld %lld %lld %lld%n", name, kind, &control->least, &control->most, &control->step,
                   &control->value, &end) != 6)
            continue;
        for (int i = 0; i < most; i++)
            if (strcmp(names[i].name, name) == 0) control->id = names[i].id, control->name = names[i].name;
        const char *kinds[] = {"int", "bool", "menu", "button", "", "", "", "", "intmenu"};
        for (unsigned i = 0; i < 9; i++)
            if (strcmp(kinds[i], kind) == 0) control->kind = i + 1;
        char *text = line + end;
        while (control->items < 32) {
            int size = 0;
            if (sscanf(text, " %lld=%lld%n", control->places + control->items, control->values + control->items, &size) != 2)
                break;
            control->items++;
            text += size;
        }
        if (control->id && control->kind) count++;
    }
    if (file) fclose(file);
    return count;
}

static void save(const struct control *all, int count) {
    FILE *file = fopen(suffixed(""), "w");
    if (!file) return;
    const char *kinds[] = {"", "int", "bool", "menu", "button", "", "", "", "", "intmenu"};
    for (int i = 0; i < count; i++) {
        fprintf(file, "%s %s %lld %lld %lld %lld", all[i].name, kinds[all[i].kind], all[i].least, all[i].most, all[i].step,
                all[i].value);
        for (int j = 0; j < all[i].items; j++) fprintf(file, " %lld=%lld", all[i].places[j], all[i].values[j]);
        fputc('\n', file);
    }
    fclose(file);
}

static struct control *find(struct control *all, int count, __u32 id) {
    for (int i = 0; i < count; i++)
        if (all[i].id == id) return all + i;
    return NULL;
}

static int fail(int code) {
    errno = code;
    return -1;
}

static int answer(unsigned long request, void *argument) {
    while (access(suffixed(".hangs"), F_OK) == 0) usleep(20000);
    struct control all[most];
    int count = load(all);
    switch (request) {
    case VIDIOC_QUERY_EXT_CTRL: {
        struct v4l2_query_ext_ctrl *query = argument;
        struct control *control = find(all, count, query->id);
        if (!control) return fail(EINVAL);
        query->type = control->kind;
        query->minimum = control->least, query->maximum = control->most;
        query->step = (__u64)control->step;
        query->flags = 0;
        return 0;
    }
    case VIDIOC_QUERYMENU: {
        struct v4l2_querymenu *item = argument;
        struct control *control = find(all, count, item->id);
        for (int i = 0; control && i < control->items; i++)
            if (control->places[i] == item->index) {
                item->value = control->values[i];
                return 0;
            }
        return fail(EINVAL);
    }
    case VIDIOC_G_CTRL: {
        struct v4l2_control *wanted = argument;
        struct control *control = find(all, count, wanted->id);
        if (!control || control->kind == V4L2_CTRL_TYPE_BUTTON) return fail(EINVAL);
        wanted->value = (__s32)control->value;
        return 0;
    }
    case VIDIOC_S_CTRL: {
        struct v4l2_control *wanted = argument;
        struct control *control = find(all, count, wanted->id);
        if (access(suffixed(".busy"), F_OK) == 0) return fail(EBUSY);
        if (!control) return fail(EINVAL);
        if (control->kind != V4L2_CTRL_TYPE_BUTTON && (wanted->value < control->least || wanted->value > control->most))
            return fail(ERANGE);
        if (control->kind != V4L2_CTRL_TYPE_BUTTON) control->value = wanted->value;
        save(all, count);
        FILE *log = fopen(suffixed(".log"), "a");
        if (log) fprintf(log, "%s=%d\n", control->name, wanted->value), fclose(log);
        return 0;
    }
    }
    return fail(ENOTTY);
}

static const char *place(const char *path) {
    const char *device = getenv("FAKE_VIDEO_DEVICE");
    return device && getenv("FAKE_VIDEO") && strcmp(device, path) == 0 ? suffixed("") : path;
}

int open(const char *path, int flags, ...) {
    static int (*next)(const char *, int, ...);
    if (!next) next = dlsym(RTLD_NEXT, "open");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return next(place(path), flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = va_arg(rest, mode_t);
    va_end(rest);
    return open(path, flags | O_LARGEFILE, mode);
}

int ioctl(int file, unsigned long request, ...) {
    static int (*next)(int, unsigned long, ...);
    if (!next) next = dlsym(RTLD_NEXT, "ioctl");
    va_list rest;
    va_start(rest, request);
    void *argument = va_arg(rest, void *);
    va_end(rest);
    struct stat this, fake;
    int is_ours = request == VIDIOC_QUERY_EXT_CTRL || request == VIDIOC_QUERYMENU || request == VIDIOC_G_CTRL
                  || request == VIDIOC_S_CTRL;
    if (is_ours && getenv("FAKE_VIDEO") && fstat(file, &this) == 0 && stat(suffixed(""), &fake) == 0
        && this.st_ino == fake.st_ino && this.st_dev == fake.st_dev)
        return answer(request, argument);
    return next(file, request, argument);
}
