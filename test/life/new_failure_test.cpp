/* SPDX-License-Identifier: MIT
 *
 * operator new that cannot succeed, in a program with its own copy of the C++ runtime (fully
 * static): is std::bad_alloc thrown, and the new_handler called, as with a shared runtime?
 */
#include <new>

#include "api/expect.h"

static volatile std::size_t impossible_bytes = static_cast<std::size_t>(1) << 62;

static void new_of_too_much_throws_bad_alloc() {
    bool is_caught = false;
    try {
        char *volatile block = new char[impossible_bytes];
        delete[] block;
    } catch (const std::bad_alloc &) {
        is_caught = true;
    }
    EXPECT(is_caught);
}

static void new_nothrow_of_too_much_is_null() {
    char *volatile block = new (std::nothrow) char[impossible_bytes];
    EXPECT(block == nullptr);
}

static int handler_calls;

static void count_then_give_up() {
    if (++handler_calls == 3) {
        std::set_new_handler(nullptr);
    }
}

static void new_of_too_much_asks_the_new_handler() {
    std::set_new_handler(count_then_give_up);
    new_of_too_much_throws_bad_alloc();
    EXPECT_EQ(handler_calls, 3);
}

int main() {
    expect_watchdog();
    RUN(new_of_too_much_throws_bad_alloc);
    RUN(new_nothrow_of_too_much_is_null);
    RUN(new_of_too_much_asks_the_new_handler);
    return expect_status();
}
