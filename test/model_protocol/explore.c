/* SPDX-License-Identifier: MIT
 *
 * The explorer. A thread is a coroutine; it stops before each step (an operation on a shared word),
 * and who goes on is a choice, as is which store a load reads. Executions are run again and again
 * from the start, depth first, until no choice is left untried.
 *
 * Memory: the stores to a word are numbered as they happen. A thread has, for each word, the oldest
 * store it may still read: nothing older than what it read or wrote, or than what those knew whom
 * it acquired from. A load may read any store from there on, a read-modify-write the newest one; a
 * compare-and-swap may fail on an older one that differs. A release hands on what the thread knows,
 * and a read-modify-write also what the store it replaces handed on. This is C11 without
 * sequentially consistent accesses and without loads that read from stores later in program order;
 * stores to one word are in the order in which they happen here.
 *
 * A plain access that another one by a different thread does not happen before is a race, and
 * fails.
 *
 * Two executions are in the same state when every thread has read the same stores so far and every
 * word has the same stores in the same order: all else follows, as threads do nothing at random. A
 * state that was met before is not gone on from.
 *
 * A scenario may bound how often a thread that could go on does not: most errors of order need two
 * or three such preemptions. Which stores loads read stays free. */
#include "explore.h"

#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

machine_t m;
_Alignas(64) unsigned char model_stacks[COROUTINES][STACK_BYTES];

void model_fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED: ");
    vprintf(format, arguments);
    va_end(arguments);
    printf("\nexecution %llu, thread %u; steps:\n", (unsigned long long)m.executions, m.now + 1);
    for (unsigned i = 0; i < m.trace_count; i++) {
        printf("  %u  %s: %s = %#llx\n", m.trace[i].thread + 1, m.trace[i].site.function,
               m.trace[i].site.text, (unsigned long long)m.trace[i].value);
    }
    fflush(stdout);
    exit(1);
}

void model_reach(unsigned mark) {
    m.reached |= 1u << mark;
}

uint64_t model_mix(uint64_t a, uint64_t b) {
    uint64_t h = (a ^ (b + 0x9e3779b97f4a7c15u)) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 32) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 29;
}

/* --- choices ---------------------------------------------------------------------------------- */

unsigned model_choose(uint32_t options) {
    if (m.position == m.choice_count) {
        if (m.choice_count == CHOICES) {
            model_fail("too many choices: a loop without an end?");
        }
        m.choice[m.choice_count++] =
            (choice_t){.left = options & (options - 1), .now = (uint8_t)__builtin_ctz(options)};
    }
    return m.choice[m.position++].now;
}

static bool choose_next(void) {
    while (m.choice_count != 0) {
        choice_t *last = &m.choice[m.choice_count - 1];
        if (last->left != 0) {
            last->now = (uint8_t)__builtin_ctz(last->left);
            last->left &= last->left - 1;
            return true;
        }
        m.choice_count--;
    }
    return false;
}

static bool met_add(uint64_t *table, size_t size, uint64_t id) {
    size_t i = id & (size - 1);
    for (; table[i] != 0; i = (i + 1) & (size - 1)) {
        if (table[i] == id) {
            return false;
        }
    }
    table[i] = id;
    return true;
}

/* `more` is what else decides how it goes on. */
static bool state_is_new(uint64_t more) {
    uint64_t id = more + 1;
    for (unsigned t = 0; t < MODEL_THREADS; t++) {
        id += model_mix(m.thread[t].id, t);
    }
    for (unsigned w = 0; w < m.word_count; w++) {
        id += model_mix(m.word[w].order_id, w + 100);
    }
    if (m.met_count * 2 >= m.met_size) {
        size_t size = m.met_size != 0 ? m.met_size * 2 : 1 << 16;
        uint64_t *table = calloc(size, sizeof *table);
        for (size_t i = 0; i < m.met_size; i++) {
            if (m.met[i] != 0) {
                met_add(table, size, m.met[i]);
            }
        }
        free(m.met);
        m.met = table;
        m.met_size = size;
    }
    bool is_new = met_add(m.met, m.met_size, id | 1);
    m.met_count += is_new;
    return is_new;
}

/* --- coroutines ------------------------------------------------------------------------------- */

static void own_copy(unsigned thread, bool is_in) {
    for (unsigned i = 0; i < m.own_count; i++) {
        unsigned char *there = m.thread[thread].own[i];
        memcpy(is_in ? m.own[i].address : there, is_in ? there : m.own[i].address, m.own[i].bytes);
    }
}

static void body(void) {
    m.thread[m.now].body();
    m.thread[m.now].is_done = 1;
    m.thread[m.now].id = model_mix(m.thread[m.now].id, 2);
    _longjmp(m.scheduler, 1);
}

/* Runs a coroutine until it stops. */
static void resume(unsigned thread) {
    thread_t *t = &m.thread[thread];
    m.now = thread;
    own_copy(thread, true);
    if (_setjmp(m.scheduler) == 0) {
        if (t->is_started) {
            _longjmp(t->state, 1);
        }
        t->is_started = 1;
        getcontext(&t->context);
        t->context.uc_stack.ss_sp = model_stacks[thread];
        t->context.uc_stack.ss_size = STACK_BYTES;
        t->context.uc_link = &m.main;
        makecontext(&t->context, body, 0);
        setcontext(&t->context);
    }
    own_copy(thread, false);
}

void model_step(void) {
    if (_setjmp(m.thread[m.now].state) == 0) {
        _longjmp(m.scheduler, 1);
    }
}

void model_stop_others(void) {
    model_step();
    m.is_alone = m.is_stopped = true;
}

void model_thread_state(model_word_t word) {
    m.own[m.own_count++] = word;
    memset(word.address, 0, word.bytes); /* it may be that of an execution that was left */
}

/* --- executions ------------------------------------------------------------------------------- */

/* The threads that can go on, a bit each; 0: all are done. Who naps goes on when there is something
 * new, or when nobody else can. */
static uint32_t threads_enabled(void) {
    uint32_t enabled = 0, waiting = 0, napping = 0;
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        const thread_t *t = &m.thread[i];
        bool can_go = !t->is_done && t->sleeps_at == NULL && (!t->naps || model_has_news(t));
        enabled |= (uint32_t)can_go << i;
        napping |= (uint32_t)(t->naps && !can_go) << i;
        waiting |= (uint32_t)(!can_go && !t->is_done) << i;
    }
    if (enabled == 0 && napping != 0) {
        return napping;
    }
    if (enabled == 0 && waiting != 0) {
        model_fail("deadlock: all that are left sleep");
    }
    return enabled;
}

static void run_alone(void (*body_alone)(void)) {
    m.is_alone = true;
    m.thread[BEFORE_AND_AFTER].body = body_alone;
    m.thread[BEFORE_AND_AFTER].is_started = 0;
    resume(BEFORE_AND_AFTER);
}

/* Lets the threads go. false: a state was met that was met before. */
static bool run_threads(const model_scenario_t *scenario) {
    m.is_alone = false;
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        thread_t *t = &m.thread[i];
        t->body = scenario->thread[i];
        t->is_done = t->body == NULL;
        t->view.time[i] = 1;
        if (!t->is_done) {
            resume(i); /* to its first step */
        }
    }
    bool is_bounded = scenario->preemptions != 0;
    unsigned left = scenario->preemptions;
    uint32_t enabled, last = 0;
    while (!m.is_stopped && (enabled = threads_enabled()) != 0) {
        bool preempts = is_bounded && (enabled & last) != 0; /* who takes another thread */
        enabled = preempts && left == 0 ? last : enabled;
        if (m.position == m.choice_count && !state_is_new(is_bounded ? model_mix(last, left) : 0)) {
            return false;
        }
        unsigned now = model_choose(enabled);
        left -= preempts && last != 1u << now;
        last = 1u << now;
        resume(now);
    }
    return true;
}

static void run_once(const model_scenario_t *scenario) {
    m.word_count = m.own_count = m.position = m.trace_count = 0;
    m.is_stopped = false;
    memset(m.thread, 0, sizeof m.thread);
    m.executions++;
    run_alone(scenario->before);
    model_words_start();
    if (run_threads(scenario)) {
        run_alone(scenario->after);
    }
    while (m.write_count != 0) {
        m.write_count--;
        memcpy(m.write[m.write_count].address, m.write[m.write_count].was,
               m.write[m.write_count].bytes);
    }
}

uint64_t model_explore(const model_scenario_t *scenario) {
    do {
        run_once(scenario);
    } while (choose_next());
    m.trace_count = 0;
    if ((m.reached & scenario->marks) != scenario->marks) {
        model_fail("never reached: marks %#x of %#x", scenario->marks & ~m.reached,
                   scenario->marks);
    }
    return m.executions;
}
