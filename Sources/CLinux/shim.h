// Linux headers that Swift's Glibc module leaves out.
#pragma once
#include <sys/timerfd.h>
