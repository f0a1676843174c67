/* SPDX-License-Identifier: MIT
 *
 * The loads under which operating system calls fail. Each fills and checks its blocks, frees them
 * all and tells how many requests were refused; a refusal is NULL with ENOMEM and nothing else. */
#ifndef HAK_TEST_FAULT_SCENARIO_H
#define HAK_TEST_FAULT_SCENARIO_H

#include <stddef.h>

typedef struct fault_scenario {
    const char *name;
    unsigned (*run)(void);
    void (*prepare)(void); /* before calls fail; NULL: the scenario is the process's first use */
} fault_scenario_t;

extern const fault_scenario_t fault_scenarios[];
extern const size_t fault_scenario_count;

/* Of scenario_more.c, for the table. */
unsigned fault_run_spans(void);
unsigned fault_run_grow(void);
unsigned fault_run_aligned(void);
unsigned fault_run_time(void);
unsigned fault_run_fork(void);
unsigned fault_run_churn(void);
/* Of scenario_guard.c. */
unsigned fault_run_guard(void);

/* Ends the process with status 1 and a line that says where. */
void fault_fail(const char *file, int line, const char *what);

#define FAULT_EXPECT(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fault_fail(__FILE__, __LINE__, #condition);                                            \
        }                                                                                          \
    } while (0)

#endif
