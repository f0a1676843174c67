/* SPDX-License-Identifier: MIT
 *
 * The probes' instructions, and the notes that describe them (.note.stapsdt, version 3). Each is a
 * nop of its own function, so that an event has one place. */
#include "base/probe.h"

/* In the file, where the kernel looks them up, not in zeroed memory. */
#define PROBE_COUNTED __attribute__((section(".probes"), used))
PROBE_COUNTED uint16_t hak_probe_alloc_listeners;
PROBE_COUNTED uint16_t hak_probe_free_listeners;

#if defined(__x86_64__)
#define PROBE_ARGUMENT(number) "8@%" #number
#else
#define PROBE_ARGUMENT(number) "8@%x" #number
#endif

/* The note holds the address of the nop, that of .stapsdt.base (which tells how far a prelinker
 * moved the file), that of the semaphore, and three strings. Arguments are in registers. */
#define PROBE(name, semaphore, arguments, ...)                                                     \
    __asm__ volatile("990: nop\n"                                                                  \
                     ".pushsection .note.stapsdt,\"\",%%note\n"                                    \
                     ".balign 4\n"                                                                 \
                     ".4byte 992f-991f, 994f-993f, 3\n"                                            \
                     "991: .asciz \"stapsdt\"\n"                                                   \
                     "992: .balign 4\n"                                                            \
                     "993: .8byte 990b\n"                                                          \
                     ".8byte _.stapsdt.base\n"                                                     \
                     ".8byte " #semaphore "\n"                                                     \
                     ".asciz \"otel_memory\"\n"                                                    \
                     ".asciz \"" #name "\"\n"                                                      \
                     ".asciz \"" arguments "\"\n"                                                  \
                     "994: .balign 4\n"                                                            \
                     ".popsection\n"                                                               \
                     ".ifndef _.stapsdt.base\n"                                                    \
                     ".pushsection .stapsdt.base,\"aG\",%%progbits,.stapsdt.base,comdat\n"         \
                     ".weak _.stapsdt.base\n"                                                      \
                     ".hidden _.stapsdt.base\n"                                                    \
                     "_.stapsdt.base: .space 1\n"                                                  \
                     ".size _.stapsdt.base, 1\n"                                                   \
                     ".popsection\n"                                                               \
                     ".endif\n" ::__VA_ARGS__)

HAK_NOINLINE void hak_probe_alloc(const void *block, uint64_t size, uint64_t weighted_bytes) {
    PROBE(alloc, hak_probe_alloc_listeners,
          PROBE_ARGUMENT(0) " " PROBE_ARGUMENT(1) " " PROBE_ARGUMENT(2), "r"(block), "r"(size),
          "r"(weighted_bytes));
}

HAK_NOINLINE void hak_probe_free(const void *block) {
    PROBE(free, hak_probe_free_listeners, PROBE_ARGUMENT(0), "r"(block));
}
