# SPDX-License-Identifier: MIT
"""Statistics on synthetic data whose answers are known."""
import math

import numpy as np
import pytest
from hakmem_lab import stats


def pair(seed, ratio=1.0, noise=0.01, rounds=10, drift=0.0):
    """Two arms with true ratio a / b, lognormal noise, and a drift that both share."""
    rng = np.random.default_rng(seed)
    base = 100 * np.exp(drift * np.arange(rounds))
    a = base * ratio * np.exp(rng.normal(0, noise, rounds))
    b = base * np.exp(rng.normal(0, noise, rounds))
    return dict(enumerate(a)), dict(enumerate(b))


def words(count, **kind):
    return [stats.compare(*pair(seed, **kind)).word for seed in range(count)]


def test_median_and_spread():
    assert stats.median([3, 1, 2]) == 2
    assert stats.median([4, 1, 2, 3]) == 2.5
    assert stats.spread([1, 2, 3, 4, 5]) == pytest.approx(2 / 3)


def test_interval_holds_the_true_median():
    hits = 0
    for seed in range(100):
        values = np.exp(np.random.default_rng(seed).normal(0, 0.05, 20))
        low, high = stats.interval(values)
        hits += low <= 1 <= high
    assert hits >= 96


def test_interval_of_equal_values_is_a_point():
    assert stats.interval([7.0] * 10) == (7.0, 7.0)


def test_interval_of_few_values_is_wide():
    low, high = stats.interval([1.0, 1.02, 1.04])
    assert low < 0.95 and high > 1.09


def test_interval_of_one_value_is_unknown():
    assert all(math.isnan(end) for end in stats.interval([1.0]))


def test_interval_is_the_same_every_time():
    values = [1.0, 1.1, 0.9, 1.05, 1.2, 1.15, 0.95]
    assert stats.interval(values) == stats.interval(values)


def test_aa_pairs_show_no_difference():
    assert words(200, noise=0.01).count("no difference") >= 194
    assert words(200, noise=0.02).count("no difference") >= 190


def test_shared_drift_does_not_matter():
    assert words(50, noise=0.002, drift=0.05).count("no difference") == 50


def test_three_percent_are_found():
    assert words(50, ratio=1.03, noise=0.005) == ["worse"] * 50
    assert words(50, ratio=0.97, noise=0.005) == ["better"] * 50


def test_half_a_percent_is_below_the_threshold():
    assert words(50, ratio=1.005, noise=0.001) == ["no difference"] * 50


def test_large_but_uncertain_is_no_difference():
    verdict = stats.compare({0: 1.2, 1: 0.8, 2: 1.3}, {0: 1.0, 1: 1.0, 2: 1.0})
    assert verdict.word == "no difference"
    assert verdict.ratio == pytest.approx(1.2)


def test_only_common_rounds_are_compared():
    verdict = stats.compare({0: 2.0, 1: 2.0, 5: 9.0}, {0: 1.0, 1: 1.0, 7: 9.0})
    assert (verdict.rounds, verdict.ratio, verdict.word) == (2, 2.0, "worse")


def test_one_round_is_not_measured():
    assert stats.compare({0: 1.0}, {0: 1.0}).word == "not measured"


def test_geometric_mean():
    assert stats.geometric_mean([1, 4]) == pytest.approx(2)
    assert stats.geometric_mean([2, math.nan]) == pytest.approx(2)
    assert math.isnan(stats.geometric_mean([]))


def test_noise():
    assert stats.noise([0.99, 1.0, 1.03]) == pytest.approx(0.03)
    assert stats.noise([0.999, 1.001] * 5) <= 0.001 + 1e-9
    assert math.isnan(stats.noise([]))
