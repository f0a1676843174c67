// SPDX-License-Identifier: MIT
//
// The plugin of the stress test: its constructor, its destructor and the destructors of its
// thread-local objects allocate and free, and so do those that an exception ends on its way,
// through the table of the program that loads it, so the same plugin serves the hak_ names.
#include <new>

#include "api/family.h"

namespace {

enum { BLOCK_COUNT = 40 };

struct blocks {
    unsigned char *at[BLOCK_COUNT];

    explicit blocks(unsigned seed) {
        for (unsigned i = 0; i < BLOCK_COUNT; ++i) {
            size_t size = 1 + (seed * 37 + i * 61) % 3000;
            at[i] = static_cast<unsigned char *>(family.malloc(size));
            EXPECT(at[i] != nullptr);
            at[i][0] = static_cast<unsigned char>(seed + i);
        }
    }

    void check(unsigned seed) const {
        for (unsigned i = 0; i < BLOCK_COUNT; ++i) {
            EXPECT_EQ(at[i][0], static_cast<unsigned char>(seed + i));
        }
    }

    ~blocks() {
        for (unsigned char *block : at) {
            family.free(block);
        }
    }

    blocks(const blocks &) = delete;
    blocks &operator=(const blocks &) = delete;
};

struct of_thread {
    blocks held{3};

    ~of_thread() {
        held.check(3);
        blocks last(4); // allocates while the thread ends
        last.check(4);
    }
};

[[gnu::noinline]] void throw_through(unsigned depth, unsigned seed) {
    struct holder {
        blocks held;
        unsigned seed;
        ~holder() {
            held.check(seed);
            blocks more(seed + 1); // allocates while the stack is unwound
            more.check(seed + 1);
        }
    } const one{blocks(seed), seed};
    if (depth == 0) {
        throw seed;
    }
    throw_through(depth - 1, seed);
}

blocks *of_plugin;

__attribute__((constructor)) void plugin_open() {
    of_plugin = new (family.malloc(sizeof(blocks))) blocks(1);
}

__attribute__((destructor)) void plugin_close() {
    of_plugin->check(1);
    of_plugin->~blocks();
    family.free(of_plugin);
    blocks last(2);
    last.check(2);
}

} // namespace

extern "C" unsigned stress_plugin_work(unsigned seed) {
    static thread_local of_thread mine;
    mine.held.check(3);
    blocks(seed).check(seed);
    try {
        throw_through(5, seed);
    } catch (unsigned thrown) {
        return thrown;
    }
    return seed + 1;
}
