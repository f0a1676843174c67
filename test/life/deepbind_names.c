/* SPDX-License-Identifier: MIT
 *
 * A plugin that prefers its own function to the program's, as RTLD_DEEPBIND lets it, and allocates
 * nothing. */
int deepbind_version(void);
int deepbind_ask(void);

static volatile int version = 2; /* not known to the compiler, which else answers by itself */

__attribute__((noinline)) int deepbind_version(void) {
    return version;
}

int deepbind_ask(void) {
    return deepbind_version();
}
