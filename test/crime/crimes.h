/* SPDX-License-Identifier: MIT
 *
 * What the files of crimes share. */
#ifndef HAK_TEST_CRIME_CRIMES_H
#define HAK_TEST_CRIME_CRIMES_H

#include <stddef.h>

/* The compiler must not see what is done to an address. */
static inline void *hide(void *address) {
    void *volatile hidden = address;
    return hidden;
}

typedef struct crime {
    const char *name;
    void (*commit)(void);
} crime_t;

#define CRIME(name)                                                                                \
    { #name, name }

/* commit.c: commits the crime that the argument names, with a second one on a heap that was used
 * before, and returns what main has to: 3 if nobody noticed. Without arguments the names are
 * listed. */
int commit_named(const crime_t *crimes, size_t count, int argc, char **argv);
#define CRIMES_MAIN(crimes)                                                                        \
    int main(int argc, char **argv) {                                                              \
        return commit_named((crimes), sizeof(crimes) / sizeof *(crimes), argc, argv);              \
    }
/* commit.c: the process has a clock of its own, which moves by this alone: how soon an error is found
 * may depend on time. */
void clock_advance_ms(unsigned ms);
/* A thread of its own, which is gone on return. */
void in_thread(void *(*run)(void *), void *block);
void free_in_thread(void *block);

/* other.c: another thread, which does what it is told and stays; it is done on return. */
void start_other(void);
void by_other(void (*run)(void *), void *block);
/* crimes_hardened.c: mallocs and frees enough for what waits to be used again. */
void churn(size_t bytes);

/* crimes_end.c */
void double_free_seen_at_exit(void);
void double_free_seen_at_exit_of_child(void);
void write_after_free_seen_at_exit(void);
void double_free_interleaved_seen_at_exit(void);
void double_free_interleaved_taken_again(void);

/* crimes_hardened.c */
void write_after_free_behind_the_link(void);
void write_after_free_at_the_end(void);
void overflow_by_one(void);
void overflow_by_one_of_zero(void);
void overflow_of_medium(void);
void overflow_seen_by_realloc(void);
void overflow_seen_by_another_thread(void);
void underflow_by_one(void);
void double_free_of_held_back(void);
void double_free_by_another_thread(void);
void realloc_of_held_back(void);
void write_behind_superslab(void);
void write_behind_huge(void);
void write_behind_grown_huge(void);
void read_of_freed_large(void);
void write_to_freed_large(void);
void write_to_freed_huge(void);
void write_to_moved_large(void);
void write_behind_large(void);
void write_to_sealed(void);

/* crimes_remote.c */
void free_inside_small_remote(void);
void free_inside_medium_remote(void);
void free_of_uncarved_remote(void);
void free_inside_small_old_remote(void);
void free_inside_medium_old_remote(void);
void free_inside_second_unit_old_remote(void);
void free_of_uncarved_old_remote(void);
void free_of_tail_waste_old_remote(void);
void free_again_of_uncarved_remote(void);
void double_free_before_the_end_of_a_thread(void);
void double_free_merged_at_exit(void);

/* crimes_far.c */
void double_free_interleaved_far(void);
void double_free_interleaved_of_medium(void);
void double_free_around_another_thread(void);
void double_free_crossed(void);
void double_free_interleaved_far_by_another_thread(void);
void double_free_of_closed(void);
void double_free_of_closed_by_another_thread(void);
void double_free_of_trimmed(void);
void realloc_of_closed(void);
void realloc_of_closed_that_fits(void);
void realloc_of_trimmed(void);
void usable_size_of_closed(void);
void usable_size_of_trimmed(void);
void free_inside_huge_of_chunk_like_data(void);
void double_free_of_chunk_like_retired(void);

/* crimes_sizes.c */
void usable_size_of_stack(void);
void usable_size_inside_small(void);
void usable_size_inside_large(void);
void usable_size_of_freed_small(void);
void usable_size_of_sorted(void);
void usable_size_of_freed_medium(void);
void usable_size_of_freed_by_another_thread(void);
void usable_size_of_freed_large(void);
void usable_size_of_freed_huge(void);
void freezero_of_freed_small(void);
void freezero_of_more_than_the_block(void);
void freezero_of_more_than_the_large_block(void);
void recallocarray_of_more_than_the_block(void);

/* crimes_zero_size.c */
void read_of_zero_size(void);
void write_to_zero_size(void);
void write_to_zero_size_of_calloc(void);
void write_to_zero_size_of_realloc(void);
void write_to_zero_size_of_memalign(void);
void write_to_zero_size_of_new(void);
void overflow_of_zero_size(void);
void double_free_of_zero_size(void);
void double_free_of_old_zero_size(void);
void free_inside_zero_size(void);
void realloc_of_freed_zero_size(void);
void usable_size_of_freed_zero_size(void);
void sized_free_of_zero_size(void);

#endif
