/* SPDX-License-Identifier: MIT
 *
 * model: lists the scenarios; model NAME: runs one, in all its executions. */
#include "explore.h"

#include <stdio.h>
#include <string.h>

static const model_scenario_t *const all[] = {litmus_scenarios, world_scenarios, fork_scenarios,
                                              lock_scenarios, unit_scenarios};

int main(int argc, char **argv) {
    int status = argc > 1 ? 2 : 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (const model_scenario_t *one = all[i]; one->name != NULL; one++) {
            if (argc == 1) {
                puts(one->name);
            } else if (strcmp(argv[1], one->name) == 0) {
                printf("%llu executions\n", (unsigned long long)model_explore(one));
                status = 0;
            }
        }
    }
    return status;
}
