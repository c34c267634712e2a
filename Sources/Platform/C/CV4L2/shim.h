// Controls of Video4Linux. Each function returns 0, or -1 with errno.
#pragma once
#include <linux/videodev2.h>
#include <stdint.h>

// The header that declares it would also be a part of this module, and is one of Glibc already. It is variadic.
extern int ioctl(int file, unsigned long request, ...);

static inline int shim_video_query(int device, struct v4l2_query_ext_ctrl *control) {
    return ioctl(device, VIDIOC_QUERY_EXT_CTRL, control);
}

static inline int shim_video_item(int device, uint32_t control, uint32_t place, int64_t *value) {
    struct v4l2_querymenu item = {.id = control, .index = place};
    if (ioctl(device, VIDIOC_QUERYMENU, &item) != 0) return -1;
    *value = item.value;
    return 0;
}

static inline int shim_video_get(int device, uint32_t control, int32_t *value) {
    struct v4l2_control wanted = {.id = control};
    if (ioctl(device, VIDIOC_G_CTRL, &wanted) != 0) return -1;
    *value = wanted.value;
    return 0;
}

static inline int shim_video_set(int device, uint32_t control, int32_t value) {
    struct v4l2_control wanted = {.id = control, .value = value};
    return ioctl(device, VIDIOC_S_CTRL, &wanted);
}
