// SPDX-License-Identifier: MIT
//
// The library plugin_test.c loads and unloads: allocates in its constructor and in C++ statics,
// frees in its destructor, keeps a thread_local, hands blocks to its host, and throws through
// frames whose objects allocate while the stack is unwound.
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

namespace {

std::vector<std::string> words(200, "a static of the plugin, longer than a small string");
std::map<int, std::string> table;
void *block_of_constructor;

struct filler {
    filler() {
        for (int i = 0; i < 100; ++i) {
            table[i] = std::string(static_cast<size_t>(i * 3), 'x');
        }
    }
} filler_instance;

__attribute__((constructor)) void plugin_open() {
    block_of_constructor = std::malloc(3000);
}

__attribute__((destructor)) void plugin_close() {
    std::free(block_of_constructor);
}

[[gnu::noinline]] void throw_through(unsigned depth) {
    struct holder {
        std::string held = std::string(500, 'h');
        ~holder() {
            std::vector<std::string> more(10, held);
        }
    } const one;
    if (depth == 0) {
        throw depth;
    }
    throw_through(depth - 1);
}

} // namespace

extern "C" {

// Grows per-thread and static state; the result depends on all of it.
size_t plugin_work(size_t count) {
    static thread_local std::vector<std::string> own;
    for (size_t i = 0; i < count; ++i) {
        own.push_back(std::string(40 + i, 'y'));
        words[i % words.size()] += "z";
    }
    try {
        throw_through(5);
    } catch (unsigned) {
    }
    return own.size() + table.size() + words.size();
}

void *plugin_make(size_t size) {
    void *block = std::malloc(size);
    if (block != nullptr) {
        std::memset(block, 0x5a, size);
    }
    return block;
}

void plugin_drop(void *block) {
    std::free(block);
}
}
