/* SPDX-License-Identifier: MIT
 *
 * The replaceable forms of operator new and delete, as replaced_test.cpp names them: which of them
 * replaced.cpp defines is a set of bits, REPLACED_SET, and how often each was called is counted. */
#ifndef HAK_TEST_API_REPLACED_H
#define HAK_TEST_API_REPLACED_H

/* For #if. */
#define FORM_NEW 0
#define FORM_NEW_NOTHROW 1
#define FORM_NEW_ARRAY 2
#define FORM_NEW_ARRAY_NOTHROW 3
#define FORM_DELETE 4
#define FORM_DELETE_NOTHROW 5
#define FORM_DELETE_SIZED 6
#define FORM_DELETE_ARRAY 7
#define FORM_DELETE_ARRAY_NOTHROW 8
#define FORM_DELETE_ARRAY_SIZED 9
#define FORM_ALIGNED 10 /* what this is added to is the form for over-aligned types */
#define FORM_COUNT 20

#define FORM_BIT(form) (1u << (form))
#define FORM_BIT_ALIGNED(form) (1u << (FORM_ALIGNED + (form)))

/* Sets that programs have. */
#define SET_PLAIN (FORM_BIT(FORM_NEW) | FORM_BIT(FORM_DELETE))
#define SET_ALIGNED (FORM_BIT_ALIGNED(FORM_NEW) | FORM_BIT_ALIGNED(FORM_DELETE))
#define SET_BOTH (SET_PLAIN | SET_ALIGNED)
#define SET_ARRAY (FORM_BIT(FORM_NEW_ARRAY) | FORM_BIT(FORM_DELETE_ARRAY))
#define SET_NEW FORM_BIT(FORM_NEW)
#define SET_NEW_AND_SIZED (FORM_BIT(FORM_NEW) | FORM_BIT(FORM_DELETE_SIZED))
#define SET_NOTHROW (FORM_BIT(FORM_NEW_NOTHROW) | FORM_BIT_ALIGNED(FORM_NEW_NOTHROW))
#define SET_DELETE FORM_BIT(FORM_DELETE)
#define SET_ALL ((1u << FORM_COUNT) - 1)
#define SET_NONE 0

extern unsigned replaced_calls[FORM_COUNT];
extern bool replaced_fails;   /* new forms throw, nothrow ones give NULL */
extern bool replaced_was_bad; /* a delete got a block without its header */

#endif
