# SPDX-License-Identifier: MIT
"""A closed network of queues: how a load goes on with more CPUs, from what its locks cost (docs/scaling.md).

Every CPU works on one operation at a time: outside locks for a while, then at one lock after the other. Exact mean
value analysis gives the throughput, and the utilisation of each lock.
"""
from __future__ import annotations

import dataclasses

TRANSFER_NS = 100.0  # a lock's cache line, and what it protects, come from another CPU


@dataclasses.dataclass(frozen=True)
class Demand:
    """What one operation needs of a lock."""

    name: str
    visits: float  # times that it takes the lock
    held_ns: float  # all of them together
    shards: int = 1  # locks that share the visits evenly; 0: one for each CPU

    def service_ns(self, cpus: int) -> float:
        """Of one of the locks. An own lock's line stays where it is."""
        if self.shards == 0:
            return self.held_ns / cpus
        away = TRANSFER_NS * self.visits if cpus > 1 else 0.0
        return (self.held_ns + away) / self.shards


@dataclasses.dataclass(frozen=True)
class Prediction:
    cpus: int
    speedup: float  # throughput over that of one CPU
    utilisation: dict[str, float]  # of each lock

    @property
    def busiest(self) -> tuple[str, float]:
        return max(self.utilisation.items(), key=lambda one: one[1], default=("none", 0.0))


def predict(op_ns: float, demands: list[Demand], cpus: int) -> Prediction:
    """`op_ns`: CPU time of an operation on one CPU, with its locks."""
    think = max(op_ns - sum(one.held_ns for one in demands), 0.0)
    service = {one.name: one.service_ns(cpus) for one in demands}
    places = {one.name: cpus if one.shards == 0 else one.shards for one in demands}
    queue = dict.fromkeys(service, 0.0)
    rate = 0.0
    for customers in range(1, cpus + 1):
        response = {name: service[name] * (1 + queue[name]) for name in service}
        rate = customers / (think + sum(response[name] * places[name] for name in response) or 1e-9)
        queue = {name: rate * response[name] for name in response}
    return Prediction(cpus, rate * op_ns, {name: rate * service[name] for name in service})
