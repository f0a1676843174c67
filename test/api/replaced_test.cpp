// SPDX-License-Identifier: MIT
//
// A program that replaces some forms of operator new and delete: do the others, which stay ours,
// call them where [new.delete] says so? replaced.cpp, with them, is in this program or in a
// library; that REPLACED_SET is empty here alone says that the library is another allocator, which
// ours takes the place of.
#include "replaced.h"

#include <cstdint>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "expect.h"

// Declared by <new> only where the compiler emits sized deallocation by default.
void operator delete(void *, std::size_t) noexcept;
void operator delete[](void *, std::size_t) noexcept;
void operator delete(void *, std::size_t, std::align_val_t) noexcept;
void operator delete[](void *, std::size_t, std::align_val_t) noexcept;

namespace {

enum { NOBODY = -1, ALIGNMENT = 128 };

// [new.delete.single], [new.delete.array]: what the default of each form calls.
constexpr int called_form[FORM_ALIGNED] = {
    NOBODY,      FORM_NEW,    FORM_NEW,    FORM_NEW_ARRAY,    NOBODY,
    FORM_DELETE, FORM_DELETE, FORM_DELETE, FORM_DELETE_ARRAY, FORM_DELETE_ARRAY,
};

bool is_replaced(int form) {
    return ((REPLACED_SET >> form) & 1) != 0;
}

// The form of the program that a call of `form` ends in.
int served_by(int form) {
    int kind = form / FORM_ALIGNED * FORM_ALIGNED;
    while (!is_replaced(form)) {
        int next = called_form[form - kind];
        if (next == NOBODY) {
            return NOBODY;
        }
        form = kind + next;
    }
    return form;
}

// Volatile: a compiler may leave out calls of what it knows to be replaceable.
void *call_new(int form, std::size_t size) {
    std::align_val_t align{ALIGNMENT};
    switch (form) {
    case FORM_NEW:
        return ::operator new(size);
    case FORM_NEW_NOTHROW:
        return ::operator new(size, std::nothrow);
    case FORM_NEW_ARRAY:
        return ::operator new[](size);
    case FORM_NEW_ARRAY_NOTHROW:
        return ::operator new[](size, std::nothrow);
    case FORM_ALIGNED + FORM_NEW:
        return ::operator new(size, align);
    case FORM_ALIGNED + FORM_NEW_NOTHROW:
        return ::operator new(size, align, std::nothrow);
    case FORM_ALIGNED + FORM_NEW_ARRAY:
        return ::operator new[](size, align);
    default:
        return ::operator new[](size, align, std::nothrow);
    }
}

void call_delete_aligned(int form, void *block, std::size_t size) {
    std::align_val_t align{ALIGNMENT};
    switch (form) {
    case FORM_DELETE:
        ::operator delete(block, align);
        break;
    case FORM_DELETE_NOTHROW:
        ::operator delete(block, align, std::nothrow);
        break;
    case FORM_DELETE_SIZED:
        ::operator delete(block, size, align);
        break;
    case FORM_DELETE_ARRAY:
        ::operator delete[](block, align);
        break;
    case FORM_DELETE_ARRAY_NOTHROW:
        ::operator delete[](block, align, std::nothrow);
        break;
    default:
        ::operator delete[](block, size, align);
        break;
    }
}

void call_delete(int form, void *block, std::size_t size) {
    switch (form) {
    case FORM_DELETE:
        ::operator delete(block);
        break;
    case FORM_DELETE_NOTHROW:
        ::operator delete(block, std::nothrow);
        break;
    case FORM_DELETE_SIZED:
        ::operator delete(block, size);
        break;
    case FORM_DELETE_ARRAY:
        ::operator delete[](block);
        break;
    case FORM_DELETE_ARRAY_NOTHROW:
        ::operator delete[](block, std::nothrow);
        break;
    case FORM_DELETE_ARRAY_SIZED:
        ::operator delete[](block, size);
        break;
    default:
        call_delete_aligned(form - FORM_ALIGNED, block, size);
        break;
    }
}

unsigned calls_before[FORM_COUNT];

void note_calls() {
    memcpy(calls_before, replaced_calls, sizeof calls_before);
}

// Since then the form that serves `form` was called once and no other.
void expect_calls(int form) {
    int server = served_by(form);
    for (int i = 0; i < FORM_COUNT; ++i) {
        unsigned calls = replaced_calls[i] - calls_before[i];
        if (calls != (i == server ? 1 : 0)) {
            expect_say("form %d, served by %d: form %d was called %u times\n", form, server, i,
                       calls);
        }
        EXPECT(calls == (i == server ? 1 : 0));
    }
    EXPECT(!replaced_was_bad);
}

void make_and_drop(int new_form, int delete_form, std::size_t size) {
    note_calls();
    void *block = call_new(new_form, size);
    EXPECT(block != nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % (new_form < FORM_ALIGNED ? 16 : ALIGNMENT), 0);
    expect_calls(new_form);
    memset(block, 0x5a, size);
    note_calls();
    call_delete(delete_form, block, size);
    expect_calls(delete_form);
}

void replaced_forms_serve_all_default_forms() {
    static const std::size_t sizes[] = {0, 1, 24, 500, 2048, 2049, 70000, 5 << 20};
    for (std::size_t size : sizes) {
        for (int aligned = 0; aligned <= FORM_ALIGNED; aligned += FORM_ALIGNED) {
            for (int i = 0; i < 12; ++i) {
                int new_form = aligned + FORM_NEW + (i / 6) * 2 + (i / 3) % 2;
                int delete_form = aligned + FORM_DELETE + (i / 6) * 3 + i % 3;
                make_and_drop(new_form, delete_form, size);
            }
        }
    }
}

void default_deletes_of_null_call_the_replaced_ones() {
    for (int form = 0; form < FORM_COUNT; ++form) {
        if (form % FORM_ALIGNED >= FORM_DELETE) {
            note_calls();
            call_delete(form, nullptr, 8);
            expect_calls(form);
        }
    }
}

void default_nothrow_forms_give_null_when_the_replaced_one_throws() {
    for (int form = 0; form < FORM_COUNT; ++form) {
        if (form % FORM_ALIGNED >= FORM_DELETE || served_by(form) == NOBODY) {
            continue;
        }
        bool is_nothrow = form % 2 == 1;
        bool is_thrown = false;
        void *block = nullptr;
        replaced_fails = true;
        try {
            block = call_new(form, 100);
        } catch (const std::bad_alloc &) {
            is_thrown = true;
        }
        replaced_fails = false;
        EXPECT(block == nullptr && is_thrown == !is_nothrow);
    }
}

struct alignas(256) wide {
    char bytes[300];
    ~wide() {
        memset(bytes, 1, sizeof bytes);
    }
};

void replaced_forms_serve_expressions_and_containers() {
    for (int i = 0; i < 1000; ++i) {
        std::map<std::string, std::vector<wide>> words;
        for (int word = 0; word < 5; ++word) {
            words[std::string(static_cast<std::size_t>(word) * 20, 'x')].resize(3);
        }
        std::string *volatile text = new std::string(200, 'y');
        delete text;
        std::string *volatile texts = new (std::nothrow) std::string[10];
        delete[] texts;
    }
    EXPECT(!replaced_was_bad);
}

// Before any constructor of the program, and of our archive.
bool is_early_right;

#ifndef REPLACED_IN_LIBRARY
void use_early() {
    note_calls();
    void *block = call_new(FORM_NEW_ARRAY, 40);
    unsigned server = static_cast<unsigned>(served_by(FORM_NEW_ARRAY));
    bool is_new_right = server >= FORM_COUNT || replaced_calls[server] == calls_before[server] + 1;
    call_delete(FORM_DELETE_ARRAY_SIZED, block, 40);
    server = static_cast<unsigned>(served_by(FORM_DELETE_ARRAY_SIZED));
    is_early_right = is_new_right && !replaced_was_bad &&
                     (server >= FORM_COUNT || replaced_calls[server] == calls_before[server] + 1);
}

__attribute__((section(".preinit_array"), used)) void (*const early)() = use_early;
#else
extern "C" bool replaced_early();
#endif

void default_forms_before_any_constructor_call_the_replaced_ones() {
#ifdef REPLACED_IN_LIBRARY
    is_early_right = replaced_early() == is_replaced(FORM_NEW);
#endif
    EXPECT(is_early_right);
}

} // namespace

int main() {
    RUN(replaced_forms_serve_all_default_forms);
    RUN(default_deletes_of_null_call_the_replaced_ones);
    RUN(default_nothrow_forms_give_null_when_the_replaced_one_throws);
    RUN(replaced_forms_serve_expressions_and_containers);
    RUN(default_forms_before_any_constructor_call_the_replaced_ones);
    return expect_status();
}
