# SPDX-License-Identifier: MIT
"""Locks counted, and what is predicted from them: known answers of queueing theory."""
from __future__ import annotations

import pytest

from hakmem_lab import contention, micro, scaling
from hakmem_lab.scaling import Demand, predict

TEXT = """hakmem: lock START 0: taken 1, refused 0, held 37337 ns, waited 0 ns
hakmem: lock SPAN 0: taken 834, refused 3, held 65634 ns, waited 12 ns
something else
hakmem: lock OWNER 0: taken 10, refused 1, held 100 ns, waited 5 ns
hakmem: lock OWNER 1: taken 20, refused 2, held 200 ns, waited 6 ns
"""


def test_lines_are_read_and_owners_are_added():
    locks = contention.parse(TEXT)
    assert locks == {"SPAN": contention.Lock(834, 3, 65634, 12), "OWNER": contention.Lock(30, 3, 300, 11)}
    one = contention.Count(1000, 50000, locks)
    assert one.shared() == ("SPAN", locks["SPAN"]) and one.op_ns == 50
    assert {demand.name: demand.shards for demand in one.demands()} == {"SPAN": 1, "OWNER": 0}


OWNER = Demand("OWNER", 1, 10, 0)  # one for each CPU


def test_speed_up_is_bounded_by_shared_locks_only(monkeypatch):
    assert predict(50, [], 64).speedup == pytest.approx(64)
    assert predict(50, [], 64).busiest == ("none", 0.0)
    told = predict(50, [Demand("SPAN", 0.1, 5), OWNER], 1)  # one CPU does what was measured
    assert told.speedup == pytest.approx(1) and told.utilisation["SPAN"] == pytest.approx(0.1)
    shared = Demand("SPAN", 0.01, 5)
    told = predict(50, [shared], 256)
    assert told.speedup == pytest.approx(50 / shared.service_ns(256), rel=0.01)
    assert told.utilisation["SPAN"] == pytest.approx(1, rel=0.01)
    assert predict(50, [OWNER], 256).speedup > 200
    monkeypatch.setattr(scaling, "TRANSFER_NS", 0.0)
    shards = Demand("SPAN", 1, 5, 8)
    assert predict(50, [shards], 256).speedup == pytest.approx(80, rel=0.05)
    # By the textbook, think 1, serve 1: R(1) = 1, X(1) = Q(1) = 1/2; R(2) = 1.5, X(2) = 2 / 2.5
    assert predict(2, [Demand("SPAN", 1, 1)], 2).speedup == pytest.approx(2 * 0.8)


def test_busy_locks_are_named_but_for_owners():
    told = scaling.Prediction(256, 100, {"META": 0.06, "SPAN": 1.0, "HUGE": 0.05, "OWNER": 0.5})
    assert contention.named(told) == "SPAN 100%, META 6%"
    assert contention.named(scaling.Prediction(256, 100, {"HUGE": 0.01})) == "none"


def test_the_library_that_counts_prints_what_is_read():
    row = next(row for row in micro.catalogue() if row.id == "larson/t4")
    micro.build()
    one = contention.count(row, contention.build(print), 0.01)
    assert one.ops > 0 and {"SPAN", "OWNER"} <= one.locks.keys()
    assert all(lock.taken > 0 for name, lock in one.locks.items() if name != contention.OWNER)
    assert len(contention.table({row.id: one}).rows) == 1
