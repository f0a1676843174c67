/* SPDX-License-Identifier: MIT
 *
 * How hooks_test.c takes over munmap, madvise and mremap: by functions of these names, or by a jump
 * over the first bytes of the C library's. Included behind its hooks. */
#ifndef HAK_TEST_LIFE_HOOKS_H
#define HAK_TEST_LIFE_HOOKS_H

#ifdef HOOKS_PATCH

#if defined(__x86_64__)
static const unsigned char landing[] = {0xf3, 0x0f, 0x1e, 0xfa}; /* endbr64 */
static const unsigned char jump[] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
enum { JUMP_ADDRESS = 2 }; /* mov $address, %rax; jmp *%rax */
#elif defined(__aarch64__)
static const unsigned char landing[] = {0x5f, 0x24, 0x03, 0xd5}; /* bti c */
static const unsigned char jump[] = {0x50, 0, 0, 0x58, 0, 2, 0x1f, 0xd6, 0, 0, 0, 0, 0, 0, 0, 0};
enum { JUMP_ADDRESS = 8 }; /* ldr x16, 8; br x16; address */
#endif

static void patch(const char *name, uintptr_t hook) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *code = dlsym(RTLD_NEXT, name);
    EXPECT(code != NULL);
    void *first = (void *)((uintptr_t)code & -page);
    if (mprotect(first, 2 * page, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
        expect_skip("code may not be changed here");
    }
    code += memcmp(code, landing, sizeof landing) == 0 ? sizeof landing : 0;
    memcpy(code, jump, sizeof jump);
    memcpy(code + JUMP_ADDRESS, &hook, sizeof hook);
    __builtin___clear_cache((char *)code, (char *)code + sizeof jump);
}

static void take_over(void) {
    patch("munmap", (uintptr_t)hook_munmap);
    patch("madvise", (uintptr_t)hook_madvise);
    patch("mremap", (uintptr_t)hook_mremap);
}

#else

int munmap(void *base, size_t bytes) __attribute__((alias("hook_munmap")));
int madvise(void *base, size_t bytes, int advice) __attribute__((alias("hook_madvise")));
void *mremap(void *base, size_t old_bytes, size_t bytes, int flags, ...)
    __attribute__((alias("hook_mremap")));

static void take_over(void) {
}

#endif

#endif
