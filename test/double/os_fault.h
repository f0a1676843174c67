/* SPDX-License-Identifier: MIT
 *
 * What tests tell the double of the operating system. */
#ifndef HAK_TEST_DOUBLE_OS_FAULT_H
#define HAK_TEST_DOUBLE_OS_FAULT_H

#include "os/os.h"

/* Takes what is written to standard error, true, or lets it be; without text, before an abort,
 * which it may leave by a jump. NULL: all is let be. */
typedef bool hak_os_fault_reports_t(const char *data, size_t length);
void hak_os_fault_reports(hak_os_fault_reports_t *reports);
/* Every call numbered from `first` (0 = the next one) on fails, `count` times. */
void hak_os_fault_plan(hak_os_call_t call, uint64_t first, uint64_t count);
void hak_os_fault_clear(void);
uint64_t hak_os_fault_calls(hak_os_call_t call); /* calls made since the last clear */
/* hak_os_now_ns stands still, a little further on each time; hak_os_fault_clear lets it go on. */
void hak_os_fault_stop_clock(void);
void hak_os_fault_advance_clock(uint64_t ns);
/* Each first touch of a huge page takes so long from now on, on a clock that stands still. */
void hak_os_fault_slow_touches(uint64_t ns);
uint64_t hak_os_fault_late_touches(void); /* whose page was there already */
/* As if the kernel's transparent huge pages were "always": it backs what is mapped from now on with
 * them, unless told not to. */
void hak_os_fault_huge_pages_always(bool is_on);
/* As if the calling thread ran on that CPU from now on. */
void hak_os_fault_run_on(uint32_t cpu);
/* Content of files: returns its length, which may be above `capacity`, or HAK_OS_FAULT_REAL to let
 * the real file be read. NULL: all are real. A file that is kept open is asked for at each read,
 * and lost at the next call of this, as if the program had closed it. Called by whoever reads, so
 * it may not allocate. */
#define HAK_OS_FAULT_REAL SIZE_MAX
typedef size_t hak_os_fault_files_t(const char *path, char *buffer, size_t capacity);
void hak_os_fault_files(hak_os_fault_files_t *files);
/* The next look for control groups is as if it were the first of the process. */
void hak_os_fault_groups_anew(void);

/* Resident bytes of a range; SIZE_MAX: not told. And roughly of the process; 0: not told. */
size_t hak_os_resident(const void *base, size_t bytes);
uint64_t hak_os_resident_all(void);

#endif
