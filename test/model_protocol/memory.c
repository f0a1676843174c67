/* SPDX-License-Identifier: MIT
 *
 * Memory of the explorer: words and what threads know of them; see explore.c. */
#include "machine.h"

#include <string.h>

static uint64_t value_read(model_word_t word) {
    uint64_t value = 0;
    memcpy(&value, word.address, word.bytes);
    return value;
}

void model_write_log(void *address, unsigned bytes) {
    if (m.write_count == WRITES) {
        model_fail("too many writes");
    }
    m.write[m.write_count].address = address;
    m.write[m.write_count].bytes = bytes;
    memcpy(m.write[m.write_count++].was, address, bytes);
}

static void value_write(model_word_t word, uint64_t value) {
    model_write_log(word.address, word.bytes);
    memcpy(word.address, &value, word.bytes);
}

static word_t *word_find(model_word_t at) {
    for (unsigned w = 0; !m.is_alone && w < m.word_count; w++) {
        if (m.word[w].at.address == at.address) {
            return &m.word[w];
        }
    }
    return NULL;
}

void model_share(model_word_t at) {
    if (m.word_count == WORDS) {
        model_fail("too many words");
    }
    m.word[m.word_count++].at = at;
}

static void view_join(view_t *view, const view_t *other) {
    for (unsigned t = 0; t < COROUTINES; t++) {
        view->time[t] = view->time[t] > other->time[t] ? view->time[t] : other->time[t];
    }
    for (unsigned w = 0; w < m.word_count; w++) {
        view->oldest[w] = view->oldest[w] > other->oldest[w] ? view->oldest[w] : other->oldest[w];
    }
}

static void trace_add(model_site_t site, uint64_t value) {
    if (m.trace_count < TRACE) {
        m.trace[m.trace_count].thread = (uint8_t)m.now;
        m.trace[m.trace_count].site = site;
        m.trace[m.trace_count++].value = value;
    }
}

/* A new step of the running thread on the word. */
static thread_t *word_step(const word_t *word) {
    model_step();
    thread_t *t = &m.thread[m.now];
    t->view.time[m.now]++;
    model_race_check((uintptr_t)word->at.address, false); /* against whoever filled the memory */
    return t;
}

static uint64_t word_read(word_t *word, unsigned index, model_order_t order) {
    thread_t *t = &m.thread[m.now];
    const store_t *store = &word->store[index];
    t->id = model_mix(t->id, store->id);
    t->view.oldest[word - m.word] = (uint8_t)index;
    view_join((order & MODEL_ACQUIRE) != 0 ? &t->view : &t->loaded, &store->handed);
    return store->value;
}

static void word_write(word_t *word, uint64_t value, model_order_t order, bool is_rmw) {
    thread_t *t = &m.thread[m.now];
    if (word->count == STORES) {
        model_fail("too many stores to a word: a loop without an end?");
    }
    store_t *store = &word->store[word->count];
    t->view.oldest[word - m.word] = (uint8_t)word->count;
    t->id = model_mix(t->id, 3);
    memset(&store->handed, 0, sizeof store->handed);
    if (is_rmw) {
        store->handed = word->store[word->count - 1].handed;
    }
    view_join(&store->handed, (order & MODEL_RELEASE) != 0 ? &t->view : &t->fenced);
    t->view.time[m.now]++; /* what follows was not handed on */
    store->value = value;
    store->id = model_mix(t->id, m.now);
    word->order_id = model_mix(word->order_id, store->id);
    word->count++;
    value_write(word->at, value);
}

/* No step of its own: it changes nothing that others see. */
void model_fence(model_order_t order) {
    thread_t *t = &m.thread[m.now];
    if (order == MODEL_RELEASE) {
        t->fenced = t->view;
        t->view.time[m.now]++; /* what follows was not handed on */
    } else {
        view_join(&t->view, &t->loaded);
    }
    t->id = model_mix(t->id, 20 + (uint64_t)order);
}

/* No step of its own: what is read depends on who ran before, so it is part of the state. */
uint64_t model_peek(model_word_t at) {
    uint64_t value = value_read(at);
    m.thread[m.now].id = model_mix(m.thread[m.now].id, value);
    return value;
}

uint64_t model_load(model_word_t at, model_order_t order, model_site_t site) {
    word_t *word = word_find(at);
    if (word == NULL) {
        return model_peek(at);
    }
    const thread_t *t = word_step(word);
    unsigned oldest = t->view.oldest[word - m.word];
    unsigned index = word->count - 1 - model_choose((2u << (word->count - 1 - oldest)) - 1);
    uint64_t value = word_read(word, index, order);
    trace_add(site, value);
    return value;
}

void model_store(model_word_t at, uint64_t value, model_order_t order, model_site_t site) {
    word_t *word = word_find(at);
    if (word == NULL) {
        value_write(at, value);
        return;
    }
    word_step(word);
    word_write(word, value, order, false);
    trace_add(site, value);
}

uint64_t model_rmw(model_word_t at, model_rmw_t kind, uint64_t operand, model_order_t order,
                   model_site_t site) {
    word_t *word = word_find(at);
    if (word != NULL) {
        word_step(word);
    }
    uint64_t was = word != NULL ? word_read(word, word->count - 1, order) : model_peek(at);
    uint64_t value = kind == MODEL_SWAP  ? operand
                     : kind == MODEL_ADD ? was + operand
                     : kind == MODEL_OR  ? was | operand
                     : kind == MODEL_AND ? was & operand
                                         : was - operand;
    if (word == NULL) {
        value_write(at, value);
        return was;
    }
    word_write(word, value, order, true);
    trace_add(site, was);
    return was;
}

/* Options of a compare-and-swap: the newest store, and older ones on which it fails. */
static uint32_t cas_options(const word_t *word, unsigned oldest, uint64_t expected) {
    uint32_t options = 1;
    for (unsigned back = 1; oldest + back < word->count; back++) {
        if (word->store[word->count - 1 - back].value != expected) {
            options |= 1u << back;
        }
    }
    return options;
}

bool model_cas(model_word_t at, void *expected_at, uint64_t desired, model_order_t order,
               model_site_t site) {
    word_t *word = word_find(at);
    uint64_t expected = 0, was = 0;
    unsigned index = 0;
    memcpy(&expected, expected_at, at.bytes);
    if (word == NULL) {
        was = model_peek(at);
    } else {
        const thread_t *t = word_step(word);
        index = word->count - 1 -
                model_choose(cas_options(word, t->view.oldest[word - m.word], expected));
        was = word->store[index].value;
        word_read(word, index, was == expected ? order : MODEL_RELAXED);
        trace_add(site, was);
    }
    if (was != expected) {
        m.thread[m.now].tried |= word != NULL ? 1ull << (word - m.word) : 0;
        memcpy(expected_at, &was, at.bytes);
        return false;
    }
    if (word == NULL) {
        value_write(at, desired);
    } else {
        word_write(word, desired, order, true);
    }
    return true;
}

/* As the kernel does it: the value is compared and the thread falls asleep in one step. */
void model_wait(model_word_t at, uint64_t value) {
    word_t *word = word_find(at);
    if (word == NULL) {
        model_fail("a thread that is alone sleeps");
    }
    thread_t *t = word_step(word);
    if (word_read(word, word->count - 1, MODEL_RELAXED) == value) {
        t->sleeps_at = word;
        t->id = model_mix(t->id, 4);
        model_step();
    }
}

void model_wake_one(model_word_t at) {
    const word_t *word = word_find(at);
    if (word == NULL) {
        return;
    }
    thread_t *t = word_step(word);
    uint32_t sleepers = 0;
    for (unsigned i = 0; i < MODEL_THREADS; i++) {
        sleepers |= (uint32_t)(m.thread[i].sleeps_at == word) << i;
    }
    unsigned chosen = sleepers != 0 ? model_choose(sleepers) : MODEL_THREADS;
    t->id = model_mix(t->id, chosen + 5);
    if (sleepers != 0) {
        m.thread[chosen].sleeps_at = NULL;
        m.thread[chosen].id = model_mix(m.thread[chosen].id, t->id);
    }
}

bool model_has_news(const thread_t *thread) {
    for (unsigned w = 0; w < m.word_count; w++) {
        bool is_tried = (thread->tried >> w & 1) != 0;
        if (is_tried && thread->view.oldest[w] + 1u < m.word[w].count) {
            return true;
        }
    }
    return false;
}

/* What is seen after a nap is what is there, as stores become visible in finite time; what led to
 * it is not seen with it. */
bool model_nap(void) {
    if (m.is_alone) {
        model_fail("a thread that is alone naps");
    }
    thread_t *t = &m.thread[m.now];
    t->naps = 1;
    t->id = model_mix(t->id, 9);
    model_step();
    t->naps = 0;
    bool is_timeout = !model_has_news(t);
    for (unsigned w = 0; w < m.word_count; w++) {
        if ((t->tried >> w & 1) != 0) {
            t->view.oldest[w] = (uint8_t)(m.word[w].count - 1);
            t->id = model_mix(t->id, m.word[w].order_id);
        }
    }
    t->tried = 0;
    return is_timeout;
}

void model_words_start(void) {
    for (unsigned w = 0; w < m.word_count; w++) {
        word_t *word = &m.word[w];
        word->count = 1;
        word->order_id = 0;
        word->store[0] = (store_t){.value = value_read(word->at), .id = w};
    }
}
