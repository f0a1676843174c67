/* SPDX-License-Identifier: MIT
 *
 * What the files of crimes share. */
#ifndef HAK_TEST_CRIME_CRIMES_H
#define HAK_TEST_CRIME_CRIMES_H

/* The compiler must not see what is done to an address. */
static inline void *hide(void *address) {
    void *volatile hidden = address;
    return hidden;
}

/* other.c: another thread, which does what it is told and stays; it is done on return. */
void start_other(void);
void by_other(void (*run)(void *), void *block);

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

#endif
