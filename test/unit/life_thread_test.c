/* SPDX-License-Identifier: MIT
 *
 * The tcaches of threads whose destructors go on using the allocator: is each given back, whichever
 * round of destructors is the first or the last to allocate or free? */
#include "double/audit.h"
#include "front/tcache.h"
#include "hakmem/hakmem.h"
#include "unit/lock_waiter.h"

#include <limits.h>
#include <sched.h>
#include <signal.h>

enum { BATCH = 8, BLOCKS = 200, MOST_BYTES = 2000, WAVES = 40, STACK_BYTES = 256 << 10 };

/* What a thread does, and in which rounds of its destructors; round 0 is before them. */
typedef struct life {
    pthread_key_t key;
    unsigned first, last, round;
    bool is_freeing; /* what the main thread allocated, without an allocation of its own */
    void *given[BLOCKS];
} life_t;

/* One with a slot in front of that of the exit hook's key, one behind it. */
static pthread_key_t early_key, late_key;
static life_t lives[BATCH];

static void use(life_t *life) {
    static const unsigned step = 97;
    if (life->is_freeing) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            hak_free(life->given[i]);
            life->given[i] = NULL;
        }
        return;
    }
    void *block[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++) {
        block[i] = hak_malloc(i * step % MOST_BYTES);
        assert_non_null(block[i]);
    }
    UNIT_FREE_ALL(block, BLOCKS);
}

static void go_on(life_t *life) {
    if (life->round >= life->first && life->round <= life->last) {
        use(life);
    }
    if (life->round < PTHREAD_DESTRUCTOR_ITERATIONS) {
        assert_int_equal(pthread_setspecific(life->key, life), 0);
    }
}

static void destroy(void *context) {
    life_t *life = context;
    life->round++;
    go_on(life);
}

static void *live(void *context) {
    go_on(context);
    return NULL;
}

typedef struct tcaches {
    unsigned all, attached;
} tcaches_t;

static bool count(hak_tcache_t *tcache, void *context) {
    tcaches_t *tcaches = context;
    if (tcache != &hak_tcache_fallback) {
        tcaches->all++;
        tcaches->attached += tcache->is_attached;
    }
    return true;
}

static tcaches_t count_tcaches(void) {
    tcaches_t tcaches = {0};
    hak_tcache_visit(count, &tcaches);
    return tcaches;
}

/* On a stack of the test's: the C library puts thread-local storage there, so each thread's has the
 * place of the one before it. Stacks of the C library's own may lie anywhere. */
static void start(pthread_t *thread, unsigned i) {
    static _Alignas(65536) char stacks[BATCH][STACK_BYTES];
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, stacks[i], STACK_BYTES), 0);
    assert_int_equal(pthread_create(thread, &attributes, live, &lives[i]), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
}

/* `plan` as it is, `at_once` threads at a time. */
static void run_threads(const life_t *plan, unsigned at_once) {
    const unsigned waves = unit_rounds(WAVES);
    pthread_t thread[BATCH];
    for (unsigned wave = 0; wave < waves; wave++) {
        for (unsigned i = 0; i < at_once; i++) {
            lives[i] = *plan;
            for (unsigned j = 0; plan->is_freeing && j < BLOCKS; j++) {
                lives[i].given[j] = hak_malloc(j * 31 % MOST_BYTES);
                assert_non_null(lives[i].given[j]);
            }
            start(&thread[i], i);
        }
        for (unsigned i = 0; i < at_once; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            assert_int_equal(lives[i].round, PTHREAD_DESTRUCTOR_ITERATIONS);
        }
    }
}

/* The plan with each of the keys: how many tcaches there are then. */
static void expect_tcaches(life_t plan, unsigned attached_most, unsigned all_most) {
    for (unsigned i = 0; i < 2; i++) {
        plan.key = i == 0 ? early_key : late_key;
        run_threads(&plan, BATCH);
        tcaches_t tcaches = count_tcaches();
        UNIT_EXPECT(tcaches.attached <= attached_most && tcaches.all <= all_most,
                    "rounds %u to %u, key %u: %u tcaches, %u attached", plan.first, plan.last, i,
                    tcaches.all, tcaches.attached);
    }
}

UNIT_TEST(thread_exit_with_destructors_that_go_on_gives_the_tcache_back) {
    for (unsigned last = 1; last <= PTHREAD_DESTRUCTOR_ITERATIONS; last++) {
        expect_tcaches((life_t){.first = 0, .last = last}, 1, 1 + BATCH);
    }
}

/* But for the last round, after which no hook runs. */
UNIT_TEST(thread_exit_with_a_first_use_in_a_destructor_gives_the_tcache_back) {
    for (unsigned round = 1; round < PTHREAD_DESTRUCTOR_ITERATIONS; round++) {
        for (unsigned i = 0; i < 2; i++) {
            expect_tcaches((life_t){.first = round, .last = round, .is_freeing = i == 1}, 1,
                           1 + BATCH);
        }
    }
}

/* No hook runs after the last round: the tcache goes to the next thread with the same TLS. Without
 * that each of these threads left one behind. */
UNIT_TEST(thread_exit_with_a_first_use_in_the_last_round_loses_few_tcaches) {
    for (unsigned i = 0; i < 2; i++) {
        life_t plan = {.key = late_key,
                       .first = PTHREAD_DESTRUCTOR_ITERATIONS,
                       .last = PTHREAD_DESTRUCTOR_ITERATIONS,
                       .is_freeing = i == 1};
        run_threads(&plan, 1);
        expect_tcaches(plan, 4 * BATCH, 4 * BATCH);
    }
    hak_audit_t audit;
    UNIT_EXPECT(hak_audit_walk(&audit), "%s", audit.broken);
}

static unsigned exit_signals, exit_inside;

static void exit_signalled(int signal) {
    (void)signal;
    exit_signals++;
    exit_inside += !hak_lock_holds_none();
}

static pthread_barrier_t exit_barrier;

static void *exit_alone(void *unused) {
    hak_free(hak_malloc(1));
    pthread_barrier_wait(&exit_barrier);
    pthread_barrier_wait(&exit_barrier);
    return unused;
}

/* A handler that allocates while the end waits for a lock would wait for its own thread. */
UNIT_TEST(thread_exit_is_interrupted_by_no_signal) {
    struct sigaction action = {.sa_handler = exit_signalled}, before;
    pthread_t thread;
    sigaction(SIGUSR1, &action, &before);
    pthread_barrier_init(&exit_barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, exit_alone, NULL), 0);
    pthread_barrier_wait(&exit_barrier);
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    pthread_barrier_wait(&exit_barrier);
    unit_signal_waiter(HAK_LOCK_REGISTRY, thread, SIGUSR1);
    sigaction(SIGUSR1, &before, NULL);
    assert_int_equal(exit_signals, 1);
    assert_int_equal(exit_inside, 0);
}

UNIT_AROUND(make_keys) {
    int error = pthread_key_create(&early_key, destroy);
    hak_free(hak_malloc(1)); /* makes that of the exit hook */
    return error != 0 ? error : pthread_key_create(&late_key, destroy);
}

UNIT_GROUP(make_keys)
