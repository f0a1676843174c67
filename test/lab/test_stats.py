# SPDX-License-Identifier: MIT
"""Statistics on synthetic data whose answers are known."""
import math
import random

import numpy as np
import pytest
from hakmem_lab import stats

TWO = [115, 275, 117, 271, 114, 116, 280, 113, 274, 115]  # as on the row survivors


def words(count, ratio=1.0, noise=0.01, rounds=10, drift=0.0):
    """Of pairs with true ratio a / b, lognormal noise, and a drift that both share."""
    found = []
    for seed in range(count):
        rng = np.random.default_rng(seed)
        base = 100 * np.exp(drift * np.arange(rounds))
        a = base * ratio * np.exp(rng.normal(0, noise, rounds))
        b = base * np.exp(rng.normal(0, noise, rounds))
        found.append(stats.compare(dict(enumerate(a)), dict(enumerate(b))).word)
    return found


def test_median_spread_and_geometric_mean():
    assert stats.median([3, 1, 2]) == 2 and stats.median([4, 1, 2, 3]) == 2.5
    assert stats.spread([1, 2, 3, 4, 5]) == pytest.approx(2 / 3)
    assert stats.geometric_mean([1, 4]) == stats.geometric_mean([2, math.nan]) == pytest.approx(2)
    assert math.isnan(stats.geometric_mean([]))


def test_interval_holds_the_true_median():
    hits = 0
    for seed in range(100):
        values = np.exp(np.random.default_rng(seed).normal(0, 0.05, 20))
        low, high = stats.interval(values)
        hits += low <= 1 <= high
    assert hits >= 96 and stats.interval(values) == (low, high)  # the same every time


def test_interval_of_few_values_is_wide_and_of_equal_ones_a_point():
    low, high = stats.interval([1.0, 1.02, 1.04])
    assert low < 0.95 and high > 1.09
    assert stats.interval([7.0] * 10) == (7.0, 7.0)
    assert all(math.isnan(end) for end in stats.interval([1.0]))


@pytest.mark.parametrize("count, least, word, pair", [
    (200, 194, "no difference", {}), (200, 190, "no difference", {"noise": 0.02}),
    (50, 50, "no difference", {"noise": 0.002, "drift": 0.05}),
    (50, 50, "no difference", {"ratio": 1.005, "noise": 0.001}),  # below the threshold
    (50, 50, "worse", {"ratio": 1.03, "noise": 0.005}),
    (50, 50, "better", {"ratio": 0.97, "noise": 0.005})])
def test_differences_are_found_where_they_are(count, least, word, pair):
    assert words(count, **pair).count(word) >= least


@pytest.mark.parametrize("a, b, word, ratio, rounds", [
    ({0: 1.2, 1: 0.8, 2: 1.3}, {0: 1.0, 1: 1.0, 2: 1.0}, "no difference", 1.2, 3),
    # large, uncertain
    ({0: 2.0, 1: 2.0, 5: 9.0}, {0: 1.0, 1: 1.0, 7: 9.0}, "worse", 2.0, 2),  # common rounds only
    ({0: 1.0}, {0: 1.0}, "not measured", math.nan, 1)])
def test_few_rounds_are_compared(a, b, word, ratio, rounds):
    found = stats.compare(a, b)
    assert (found.word, found.rounds, found.ratio) == (word, rounds,
                                                       pytest.approx(ratio, nan_ok=True))


def test_noise():
    assert stats.noise([0.99, 1.0, 1.03]) == pytest.approx(0.03)
    assert stats.noise([1.0, 1.2, 0.9]) == pytest.approx(0.2)
    assert stats.noise([0.999, 1.001] * 5) <= 0.001 + 1e-9
    assert math.isnan(stats.noise([]))


@pytest.mark.parametrize("values, found", [
    (TWO, (115, 274.5)),
    ([100, 101, 102, 99, 130, 131], (100.5, 130.5)),  # a step of 1.27 between sides that are close
    ([10.0, 10.1, 9.9, 10.2, 10, 10.1, 9.8, 10, 10.1, 25], None),  # one slow round is no mode
    ([100, 101, 102, 99, 115, 116], None),  # a step of 1.13
    ([1.0, 1.0, 1.0, 1.6], (1.0, 1.6)), ([1.0, 1.2, 1.4], None),  # of few rounds by their range
    ([7.0] * 10, None), ([5.0], None), ([], None), ([0.0, 0.0], None)])
def test_modes(values, found):
    assert stats.modes(values) == (found if found is None else pytest.approx(found))


def test_noise_of_one_mode_is_no_second_one():
    draw = random.Random(3)
    for sigma, most in ((0.02, 0), (0.05, 0), (0.1, 2)):
        many = [stats.modes([math.exp(draw.gauss(0, sigma)) for _ in range(10)])
                for _ in range(100)]
        assert sum(found is not None for found in many) <= most
