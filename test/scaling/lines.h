/* SPDX-License-Identifier: MIT
 *
 * Counts cache lines that move between virtual CPUs. The core is compiled with -fsanitize=thread,
 * and lines.c stands for the run-time part of ThreadSanitizer: it sees each access. */
#ifndef TEST_SCALING_LINES_H
#define TEST_SCALING_LINES_H

#include <stdint.h>

enum { LINES_CPUS = 256 };

/* The calling thread is this CPU from here on; only one thread runs at a time. */
void lines_run_on(unsigned cpu);
/* What the calling thread does from here on is not seen. */
void lines_leave(void);
/* Counts from 0. */
void lines_reset(void);
/* Lines that came from another CPU, or were taken away from others, since the reset. */
uint64_t lines_moved(void);
/* Prints the lines that moved most, with their addresses. */
void lines_print(unsigned most);
/* An access of the calling CPU, as of the core. */
void lines_access(const void *address, uint64_t bytes, int is_write);

#endif
