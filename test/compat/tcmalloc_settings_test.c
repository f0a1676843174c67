/* SPDX-License-Identifier: MIT
 *
 * gperftools' settings of unused memory: the last one wins, and each is read as it was set. Nothing
 * that a C function of theirs does may throw. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "api/expect.h"
#include "hakmem/hakmem.h"

enum { GET_NUMERIC = 11, FREE_LISTS = 24, PLACES = 29, MIB = 1 << 20 };

void *instance(void) __asm__("_ZN15MallocExtension8instanceEv");
void register_object(void *object) __asm__("_ZN15MallocExtension8RegisterEPS_");
int MallocExtension_GetNumericProperty(const char *name, size_t *value);
int MallocExtension_SetNumericProperty(const char *name, size_t value);
void MallocExtension_SetMemoryReleaseRate(double rate);
double MallocExtension_GetMemoryReleaseRate(void);
void MallocExtension_GetStats(char *text, int length);
void HeapProfilerStart(const char *prefix);
void HeapProfilerStop(void);
char *GetHeapProfile(void);
void *tc_new(size_t size);
void *tc_new_nothrow(size_t size, const void *quiet);

static unsigned news; /* calls of operator new, which may throw */

/* In place of the library's. */
void *operator_new(size_t size) __asm__("_Znwm");
void *operator_new(size_t size) {
    news++;
    return malloc(size);
}

static const char *option(const char *name) {
    static char text[256];
    EXPECT_EQ(hak_option_get(name, text, sizeof text), 0);
    return text;
}

static size_t aggressive(void) {
    size_t value = 7;
    EXPECT_EQ(MallocExtension_GetNumericProperty("tcmalloc.aggressive_memory_decommit", &value), 1);
    return value;
}

static void set_aggressive(size_t value) {
    EXPECT_EQ(MallocExtension_SetNumericProperty("tcmalloc.aggressive_memory_decommit", value), 1);
}

static void the_first_thread_s_cpus_are_counted(void) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const char *cache = "tcmalloc.max_total_thread_cache_bytes";
    EXPECT_EQ(MallocExtension_SetNumericProperty(cache, 64 * MIB), 1);
    EXPECT(strcmp(option("cache"), "64m") == 0);
}

static void the_last_setting_of_unused_memory_wins(void) {
    char first[256];
    snprintf(first, sizeof first, "%s", option("retain_percent"));
    EXPECT(aggressive() == 0 && MallocExtension_GetMemoryReleaseRate() == 1);
    MallocExtension_SetMemoryReleaseRate(7.25);
    EXPECT(strcmp(option("retain_percent"), "10") == 0);
    set_aggressive(1);
    EXPECT(strcmp(option("retain_min"), "0") == 0);
    EXPECT(aggressive() == 1 && MallocExtension_GetMemoryReleaseRate() == 7.25);
    set_aggressive(0); /* the rate is in force again */
    EXPECT(strcmp(option("retain_percent"), "10") == 0);
    EXPECT(aggressive() == 0 && MallocExtension_GetMemoryReleaseRate() == 7.25);
    set_aggressive(1);
    MallocExtension_SetMemoryReleaseRate(0);
    EXPECT(strcmp(option("retain_min"), "1t") == 0);
    EXPECT(aggressive() == 0 && MallocExtension_GetMemoryReleaseRate() == 0);
    set_aggressive(1);
    set_aggressive(0);
    EXPECT(strcmp(option("retain_min"), "1t") == 0);
    MallocExtension_SetMemoryReleaseRate(-3);
    EXPECT(MallocExtension_GetMemoryReleaseRate() == 0);
    MallocExtension_SetMemoryReleaseRate(1);
    EXPECT(strcmp(option("retain_percent"), first) == 0);
}

static void functions_of_c_allocate_nothing_that_may_throw(void) {
    char text[1000];
    void *lists[3] = {0}; /* an empty std::vector */
    (*(void (***)(void *, void *))instance())[FREE_LISTS](instance(), lists);
    EXPECT(news > 0); /* a function of C++ may */
    free(lists[0]);
    news = 0;
    MallocExtension_GetStats(text, sizeof text);
    HeapProfilerStart("/nowhere/a-prefix-that-no-short-string-of-cxx-has-room-for");
    for (int i = 0; i < 2000; i++) {
        free(malloc(1000));
    }
    free(GetHeapProfile());
    HeapProfilerStop();
    EXPECT_EQ(news, 0);
}

static bool out_of_memory(void *self, const char *name, size_t *value) {
    (void)self, (void)name;
    *value = tc_new(SIZE_MAX / 2) != NULL; /* throws */
    return true;
}

static void what_an_object_of_the_program_throws_ends_there(void) {
    void *places[PLACES] = {[GET_NUMERIC] = (void *)out_of_memory}, *object = places;
    void *before = instance();
    size_t value = 7;
    register_object(&object);
    EXPECT_EQ(MallocExtension_GetNumericProperty("generic.heap_size", &value), 0);
    EXPECT_EQ(value, 7);
    register_object(before);
    EXPECT(tc_new_nothrow(SIZE_MAX / 2, "") == NULL);
}

int main(void) {
    RUN(the_first_thread_s_cpus_are_counted);
    RUN(the_last_setting_of_unused_memory_wins);
    RUN(functions_of_c_allocate_nothing_that_may_throw);
    RUN(what_an_object_of_the_program_throws_ends_there);
    return expect_status();
}
