# SPDX-License-Identifier: MIT
"""Deterministic inputs: the same bytes on every machine and in both passes."""

import functools
import os
import random
import string

SYLLABLES = (
    "ba be bi bo da de di do fa fe ka ke ki ko la le li lo ma me mi mo "
    "na ne ni no pa ra re ri ro sa se ta te ti to"
).split()

C_FUNCTION = string.Template("""
typedef struct record_$i { uint32_t key; const char *name; double weight[$weights]; } record_${i}_t;
static const uint8_t table_$i[16] = {$table};
static uint32_t step_$i(uint32_t x)
{
    record_${i}_t r = {x, "entry $i", {0}};
    for (int i = 0; i < 16; i++) {
        r.key = (r.key >> $shift) ^ (r.key * ${factor}u) ^ table_$i[(r.key + (uint32_t)i) & 15];
        r.weight[i % $weights] += r.key % 1000;
    }
    switch (r.key % 5) {
    case 0: return r.key + $i;
    case 1: return r.key ^ (uint32_t)strlen(r.name);
    case 2: return ~r.key;
    case 3: return r.key << 1;
    default: return (uint32_t)r.weight[0] + r.key;
    }
}
""")


def many(full, brief):
    """How many: `full` of them with HAKMEM_FULL=1."""
    return full if os.environ.get("HAKMEM_FULL") else brief


@functools.cache
def words(count, seed=1):
    source = random.Random(seed)
    return tuple("".join(source.choices(SYLLABLES, k=source.randint(1, 4))) for _ in range(count))


@functools.cache
def text(size_bytes, seed=1):
    """Prose-like text of exactly this size."""
    source = random.Random(seed)
    vocabulary = words(4000)
    lines, length = [], 0
    while length < size_bytes:
        line = " ".join(source.choices(vocabulary, k=source.randint(4, 14)))
        lines.append(line)
        length += len(line) + 1
    return ("\n".join(lines) + "\n").encode()[:size_bytes]


def noise(size_bytes, seed=1):
    return random.Random(seed).randbytes(size_bytes)


@functools.cache
def mixture(size_bytes, seed=1):
    """Text and noise in turns: compresses neither well nor not at all."""
    source = random.Random(seed)
    parts, length = [], 0
    while length < size_bytes:
        size = source.randint(1, 1 << 16)
        parts.append(noise(size, length) if source.random() < 0.3 else text(size, length % 97))
        length += size
    return b"".join(parts)[:size_bytes]


def c_source(functions, seed=1, function="main"):
    """A C file with many functions, structures and tables; `function` returns one checksum, or
    prints it if it is main."""
    source = random.Random(seed)
    parts = ["#include <stdint.h>\n#include <stdio.h>\n#include <string.h>"]
    for index in range(functions):
        table = ", ".join(str(source.randint(0, 255)) for _ in range(16))
        parts.append(C_FUNCTION.substitute(
            i=index, shift=source.randint(1, 30), factor=source.randint(3, 1 << 20) | 1,
            weights=index % 7 + 1, table=table))
    kind = "int" if function == "main" else "unsigned"
    parts.append(f"{kind} {function}(void)\n{{\n    uint32_t x = 1;")
    parts += [f"    x = step_{index}(x);" for index in range(functions)]
    end = '    printf("%u\\n", x);\n    return 0;' if function == "main" else "    return x;"
    return "\n".join([*parts, end, "}", ""]).encode()
