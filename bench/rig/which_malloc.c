/* SPDX-License-Identifier: MIT
 * which_malloc
 *
 * Says which allocator a program gets, as one line of JSON: the file that malloc comes from, the
 * C library's version, and the allocator's own version as that file reports it ("" if it reports
 * none, as the C library's own, Google's tcmalloc and snmalloc). For mimalloc also the bare number.
 * Run it with the same LD_PRELOAD as the program in question. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct version {
    char text[128];
    int raw; /* mimalloc's number; 0 for the others */
} version_t;

/* The file that NAME comes from; "" if it is nowhere. */
static const char *file_of(const char *name) {
    Dl_info info;
    void *address = dlsym(RTLD_DEFAULT, name);
    return address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname
                                                                                    : "";
}

/* Puts function NAME into *FUNCTION if it comes from the same file as malloc: another allocator
 * may be loaded as well without being the one in use. */
static int of_malloc(const char *name, void *function) {
    void *address = dlsym(RTLD_DEFAULT, name);
    if (address == NULL || strcmp(file_of(name), file_of("malloc")) != 0) {
        return 0;
    }
    memcpy(function, &address, sizeof address);
    return 1;
}

/* mimalloc's number has one digit for each part up to 999 (209: 2.0.9), a patch of two digits up to
 * 9999, and two digits for minor and patch above (20302: 2.3.2). */
static void decode_mimalloc(version_t *version) {
    int n = version->raw;
    int patch_base = n < 1000 ? 10 : 100, minor_base = n < 10000 ? 10 : 100;
    int patch = n % patch_base, rest = n / patch_base;
    snprintf(version->text, sizeof version->text, "%d.%d.%d", rest / minor_base, rest % minor_base,
             patch);
}

static version_t read_version(void) {
    version_t version = {0};
    const char *(*hak)(void);
    const char *(*tc)(int *, int *, const char **);
    int (*mi)(void), (*je)(const char *, void *, size_t *, void *, size_t);
    const char *text = NULL;
    size_t length = sizeof text;
    if (of_malloc("hak_version", &hak)) {
        text = hak();
    } else if (of_malloc("mi_version", &mi)) {
        version.raw = mi();
        decode_mimalloc(&version);
    } else if (of_malloc("mallctl", &je)) {
        text = je("version", &text, &length, NULL, 0) == 0 ? text : NULL;
    } else if (of_malloc("tc_version", &tc)) {
        int major, minor;
        const char *patch;
        text = tc(&major, &minor, &patch);
    }
    if (text != NULL) {
        snprintf(version.text, sizeof version.text, "%s", text);
    }
    return version;
}

static void print_string(const char *name, const char *text) {
    printf("\"%s\":\"", name);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\') {
            putchar('\\');
        }
        putchar((unsigned char)*text >= ' ' ? *text : '?');
    }
    putchar('"');
}

int main(void) {
    void *volatile block = malloc(64); /* the allocator is in use, not only loaded */
    if (block == NULL) {
        fputs("which_malloc: malloc gives no memory\n", stderr);
        return 1;
    }
    free(block);
    const char *(*glibc)(void);
    void *address = dlsym(RTLD_DEFAULT, "gnu_get_libc_version");
    memcpy(&glibc, &address, sizeof address);
    version_t version = read_version();
    putchar('{');
    print_string("malloc", file_of("malloc"));
    putchar(',');
    print_string("glibc", glibc != NULL ? glibc() : "");
    putchar(',');
    print_string("version", version.text);
    printf(",\"raw\":%d}\n", version.raw);
    return fflush(stdout) == 0 ? 0 : 1;
}
