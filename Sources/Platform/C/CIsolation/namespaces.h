// What start.c and isolate.c have in common.
#pragma once
#include <linux/capability.h>

// In a new user namespace: this process keeps its user and its group. Returns 1 if the kernel allows it. Allocates
// nothing.
int isolation_keep_ids(unsigned int user, unsigned int group);

// Drops all capabilities. The bounding set is not changed.
void isolation_drop_capabilities(void);
