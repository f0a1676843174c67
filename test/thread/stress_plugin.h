/* SPDX-License-Identifier: MIT
 *
 * One round with the plugin of the stress test. Weak: a statically linked program has no loader. */
#ifndef HAK_TEST_THREAD_STRESS_PLUGIN_H
#define HAK_TEST_THREAD_STRESS_PLUGIN_H

#include <stdint.h>

void stress_plugin_round(const char *path, uint64_t *state) __attribute__((weak));

#endif
