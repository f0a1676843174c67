/* SPDX-License-Identifier: MIT
 *
 * Reports of the process's own heap, by the observer's library: link with -lhakmem-observe (CMake:
 * hakmem::observe). Static programs, and shared libraries that a program needs, take
 * libhakmem-observe.a (hakmem::observe_static): the shared one names no C library, which the
 * dynamic linker may then prepare too late. It reads the process as hakmem-observe
 * reads another: no lock of the heap is taken, nothing is allocated from it, and no thread is
 * stopped; while other threads work the figures are estimates. The process needs /proc, and a
 * descriptor for a moment.
 *
 * Every function writes to a file descriptor. Where there is no report (the process does not run on
 * hakmem, or on a version that this library does not know; /proc is missing; memory is out), one
 * line on standard error says why. Any thread may call, one after another makes its report; none is
 * async-signal-safe. errno is left alone. */
#ifndef HAKMEM_OBSERVE_H
#define HAKMEM_OBSERVE_H

#ifdef __cplusplus
extern "C" {
#define HAK_NOTHROW noexcept
#else
#define HAK_NOTHROW
#endif

/* The statistics, as text, or as JSON (docs/schema/stats.schema.json; `hakmem docs` prints where
 * docs/ is). `hakmem docs statistics` explains the figures. */
void hak_stats_print(int fd) HAK_NOTHROW;
void hak_stats_json(int fd) HAK_NOTHROW;

/* Why the process's resident memory (RSS) is as high as it is: the share of each cause, and for the
 * largest, in words, the option or action that lowers it. As text, or as JSON
 * (docs/schema/explain.schema.json). The kernel visits every page of the process for it. The
 * observer's own memory counts as others'. */
void hak_explain(int fd) HAK_NOTHROW;
void hak_explain_json(int fd) HAK_NOTHROW;

/* The use of every part of the allocator's memory, as JSON (docs/schema/map.schema.json). */
void hak_heap_map(int fd) HAK_NOTHROW;

/* The heap profile: which call sites hold memory, by a sample of the allocations since sampling
 * began, as JSON (docs/schema/profile.schema.json). Sampling begins and ends with the option
 * profile_rate: hak_option_set("profile_rate", "512k"), or "0". `hakmem docs profiling` explains
 * the figures. */
void hak_profile_json(int fd) HAK_NOTHROW;
/* The same as text that pprof reads, in the form of gperftools' heap profiler. */
void hak_profile_heap(int fd) HAK_NOTHROW;

#ifdef __cplusplus
}
#endif

#undef HAK_NOTHROW

#endif
