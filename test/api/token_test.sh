#!/bin/sh
# SPDX-License-Identifier: MIT
# A program that clang (22 or newer) compiles with -fsanitize=alloc-token runs on the library; token_test.cpp calls each of the
# functions.
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
    "${NM:-nm}" -D "$work/types" | grep -q ' U __alloc_token_' || {
        echo "$compiler $options: calls nothing with a token"
        exit 1
    }
    said=$("$work/types")
    [ "$said" = "$expected" ] || {
        echo "$compiler $options: types are $said, not $expected"
        exit 1
    }
done
echo "$compiler: programs with tokens run"
