/* SPDX-License-Identifier: MIT
 *
 * Plugins that prefer their own function to the program's, as RTLD_DEEPBIND lets them. They
 * allocate nothing, by what they import; with DEEPBIND_FINDS they could. */
int deepbind_version(void);
int deepbind_ask(void);

static volatile int version = 2; /* not known to the compiler, which else answers by itself */

__attribute__((noinline)) int deepbind_version(void) {
    return version;
}

int deepbind_ask(void) {
    return deepbind_version();
}

#ifdef DEEPBIND_FINDS
extern void *dlsym(void *handle, const char *name);
void *deepbind_find(const char *name);

void *deepbind_find(const char *name) {
    return dlsym((void *)0, name);
}
#endif
