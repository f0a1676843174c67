# SPDX-License-Identifier: MIT
"""Objects of many sizes, threads, processes, compression; prints checksums."""

import collections
import concurrent.futures
import hashlib
import json
import multiprocessing
import random
import re
import sqlite3
import zlib


def digest(value):
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]


def churn(seed):
    source = random.Random(seed)
    slots = [b""] * 256
    total = 0
    for step in range(30_000):
        slot = source.randrange(256)
        size = source.choice((16, 40, 100, 700, 3000, 20_000, 150_000))
        total += len(slots[slot])
        slots[slot] = bytes([step & 255]) * source.randrange(size)
    return total, digest(slots)


def main():
    print("churn", churn(1))
    tree = {}
    for number in range(60_000):
        tree.setdefault(number % 997, {}).setdefault(str(number % 31), []).append(number)
    text = json.dumps(tree)
    print("json", len(text), digest(json.loads(text)))
    print("words", collections.Counter(re.findall(r"\d+", text)).most_common(3))
    print("zlib", [len(zlib.compress(text.encode(), level)) > 1000 for level in (1, 6, 9)])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print("threads", list(pool.map(churn, range(4))))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print("processes", pool.map(churn, range(4)))
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a integer, b text)")
    base.executemany("insert into t values (?, ?)", ((n, str(n) * (n % 50)) for n in range(20_000)))
    print(
        "sqlite", base.execute("select sum(a), sum(length(b)), count(distinct b) from t").fetchall()
    )
    big = [0] * 3_000_000
    big += big
    print("list", len(big), (1 << 2_000_00) % 1_000_003)


if __name__ == "__main__":
    main()
