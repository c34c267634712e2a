// Linux headers that Swift's Glibc module leaves out.
#pragma once
#include <sys/prctl.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

// prctl is variadic.
static inline int shim_set_parent_death_signal(int signal) { return prctl(PR_SET_PDEATHSIG, signal); }
