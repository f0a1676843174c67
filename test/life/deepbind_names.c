/* SPDX-License-Identifier: MIT
 *
 * Plugins that prefer their own function to the program's, as RTLD_DEEPBIND lets them. They
 * allocate nothing, by what they import; with DEEPBIND_FINDS they could, and with DEEPBIND_HIDES
 * one that exports nothing frees. */
#ifdef DEEPBIND_HIDES

extern void free(void *block);
extern void deepbind_offer(void (*drop)(void *));

static void drop(void *block) {
    free(block);
}

__attribute__((constructor)) static void offer(void) {
    deepbind_offer(drop);
}

#else

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

#endif
