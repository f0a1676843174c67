#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that clang (22 or newer) compiles with -fsanitize=alloc-token run on the library:
# each function it may call is there, and serves.
# Usage: token_test.sh LIBRARY
set -eu
library=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
compiler=
for name in clang++ clang++-22 clang++-23 clang++-24; do
    if command -v "$name" >/dev/null && echo 'int main() {}' |
        "$name" -x c++ -fsanitize=alloc-token -c -o "$work/none" - 2>/dev/null; then
        compiler=$name
    fi
done
[ -n "$compiler" ] || {
    echo "no clang knows -fsanitize=alloc-token"
    exit 77
}

cat >"$work/program.cpp" <<'C'
#include <cstdio>
#include <cstdlib>
#include <malloc.h>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct Node {
    Node *next;
    long value;
};
struct Plain {
    long values[4];
};
struct alignas(64) Line {
    char bytes[64];
};
void *volatile sink;

static void keep(void *block) {
    sink = block;
    free(block);
}

int main() {
    std::vector<std::string> words(100, std::string(100, 'x'));
    auto node = std::make_unique<Node>();
    delete new Plain;
    delete[] new Plain[3];
    delete new (std::nothrow) Plain;
    delete[] new (std::nothrow) Node[3];
    delete new Line;
    delete[] new Line[2];
    delete new (std::nothrow) Line;
    delete[] new (std::nothrow) Line[2];
    keep(malloc(sizeof(Node)));
    keep(calloc(3, sizeof(Plain)));
    keep(realloc(malloc(10), 1000));
    keep(reallocarray(nullptr, 3, sizeof(Node)));
    keep(aligned_alloc(64, 128));
    keep(memalign(64, 64));
    void *block = nullptr;
    if (posix_memalign(&block, 64, 100) == 0) {
        keep(block);
    }
    keep(valloc(3));
    keep(pvalloc(3));
    printf("%zu %ld\n", words.size(), node->value);
    return 0;
}
C
for options in "" "-falloc-token-max=512"; do
    for level in -O0 -O2; do
        # shellcheck disable=SC2086
        "$compiler" $level -fsanitize=alloc-token $options "$work/program.cpp" "$library" \
            -Wl,-rpath,"$(dirname "$library")" -o "$work/program"
        "${NM:-nm}" -D "$work/program" | grep -q ' U __alloc_token_' || {
            echo "$compiler $level $options: calls nothing with a token"
            exit 1
        }
        said=$("$work/program")
        [ "$said" = "100 0" ] || {
            echo "$compiler $level $options: said '$said'"
            exit 1
        }
    done
done

# In the hardened library no place of a type without pointers becomes one of another type: main
# thread, other threads, child of a fork.
cat >"$work/types.cpp" <<'C'
#include <cstdio>
#include <set>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

struct Node {
    Node *next;
    long values[5];
};
struct Plain {
    long values[6];
};

static unsigned shared_places() {
    enum { COUNT = 50, ROUNDS = 100 };
    std::set<void *> seen;
    unsigned shared = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        Plain *plain[COUNT];
        Node *node[COUNT];
        for (auto &one : plain) {
            one = new Plain;
            seen.insert(one);
        }
        for (auto *one : plain) {
            delete one;
        }
        for (auto &one : node) {
            one = new Node;
            shared += seen.count(one);
        }
        for (auto *one : node) {
            delete one;
        }
    }
    return shared;
}

int main() {
    unsigned shared = shared_places(), other = 0;
    std::thread([&] { other = shared_places(); }).join();
    if (fork() == 0) {
        _exit(shared_places() == 0 ? 0 : 1);
    }
    int status = 1;
    wait(&status);
    puts(shared + other == 0 && status == 0 ? "apart" : "shared");
    return 0;
}
C
expected=shared fast=""
if [ "${HAKMEM_FLAVOUR:-}" = hardened ]; then
    expected=apart fast="-falloc-token-max=2 -fsanitize-alloc-token-fast-abi"
fi
for options in "" "$fast"; do
    # shellcheck disable=SC2086
    "$compiler" -O1 -pthread -fsanitize=alloc-token $options "$work/types.cpp" "$library" \
        -Wl,-rpath,"$(dirname "$library")" -o "$work/types"
    said=$("$work/types")
    [ "$said" = "$expected" ] || {
        echo "$compiler $options: types are $said, not $expected"
        exit 1
    }
done
echo "$compiler: programs with tokens run"
