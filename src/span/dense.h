/* SPDX-License-Identifier: MIT
 *
 * Whether new memory of one kind will be written to throughout, by samples of what was. */
#ifndef HAK_SPAN_DENSE_H
#define HAK_SPAN_DENSE_H

#include "base/atomics.h"
#include "base/bits.h"

/* What the last samples said; all zero at first. Several threads may use it at once: a change may
 * be lost then. */
typedef struct hak_dense {
    uint8_t bet;  /* [atomic] ranges of 2 MiB that the last sample was good for; 0: not dense */
    uint8_t left; /* [atomic] ranges to open until a sample is due */
} hak_dense_t;

/* Estimates the bytes written to in memory that began as zero, by words of so many OS pages, which
 * the kernel reads: some may be inaccessible. Up to 4 system calls a page. SIZE_MAX: not known. */
size_t hak_dense_written(const char *base, size_t bytes, size_t most_pages);

/* Samples memory that began as untouched small OS pages, if a sample is due. With learn:0 nothing
 * is dense. */
void hak_dense_sample(hak_dense_t *dense, const char *base, size_t bytes);

/* Another range is opened: will it be written to throughout? */
bool hak_dense_take(hak_dense_t *dense);

/* Memory that is written to throughout without a sample. */
extern hak_dense_t hak_dense_sure;

#endif
