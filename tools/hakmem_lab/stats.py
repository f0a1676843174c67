# SPDX-License-Identifier: MIT
"""Statistics of a comparison: medians, bootstrap intervals, verdicts.

Samples are paired by round: in one round all arms run one after the other, so what slows the machine for a while
slows them together, and the ratio within the round stays. A verdict needs both: the median ratio is at least the
threshold away from 1, and the interval does not contain 1. The nominal level is 99 %: of ten rounds that is the
second smallest to the second largest ratio, which hold the true median 98 times in 100. Simulated A/A pairs with 1 %
and 2 % of noise then differ in 1 to 2 of 100 rows.
"""
from __future__ import annotations

import dataclasses
import math
from typing import Optional, Sequence

import numpy as np

from .model import Verdict

THRESHOLD = 0.01
LEVEL = 0.99
RESAMPLES = 4000
MEDIAN_ERROR = math.sqrt(math.pi / 2)  # the standard error of a median, in those of a mean
FEW = 6  # below that many values resampling knows nothing: Student's t on the logarithms instead
SEED = 20120229
WIDE = 1.5  # high end of an interval / low end: beyond it the rounds did not measure one thing
STEP = 1.2  # between two modes, at least


def median(values: Sequence[float]) -> float:
    return float(np.median(np.asarray(values, dtype=float)))


def spread(values: Sequence[float]) -> float:
    """Interquartile range over median."""
    low, high = np.percentile(np.asarray(values, dtype=float), [25, 75])
    middle = median(values)
    return float((high - low) / middle) if middle else 0.0


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Confidence interval of the median of positive values."""
    data = np.asarray(values, dtype=float)
    if len(data) == 0:
        return math.nan, math.nan
    if len(data) == 1 or np.all(data == data[0]):
        return (math.nan, math.nan) if len(data) == 1 else (float(data[0]), float(data[0]))
    if len(data) < FEW:
        if np.any(data <= 0):
            return float(data.min()), float(data.max())
        from scipy.special import stdtrit
        logs = np.log(data)
        error = MEDIAN_ERROR * logs.std(ddof=1) / math.sqrt(len(data))
        half = stdtrit(len(data) - 1, (1 + level) / 2) * error
        middle = np.median(logs)
        return float(np.exp(middle - half)), float(np.exp(middle + half))
    from scipy import stats as scipy_stats  # takes longer to load than most commands take
    result = scipy_stats.bootstrap((data,), np.median, confidence_level=level, n_resamples=RESAMPLES,
                                   method="percentile", vectorized=True, rng=np.random.default_rng(SEED))
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def _is_wide(values: Sequence[float]) -> bool:
    """By the interval; of few values by their range, as their interval is wide anyway."""
    low, high = interval(values) if len(values) >= FEW else (min(values), max(values))
    return high > WIDE * low


def modes(values: Sequence[float]) -> Optional[tuple[float, float]]:
    """The low and the high mode of an arm's rounds; None where they have one. The sorted values are cut at their
    widest step; the modes are the medians of both sides. There are two if the values are wide, or if the step is at
    least STEP and wider than each side, and each side has two values: one slow round is no mode."""
    ordered = sorted(value for value in values if value > 0)
    if len(ordered) < 2:
        return None
    step, at = max((high / low, at) for at, (low, high) in enumerate(zip(ordered, ordered[1:]), 1))
    sides = ordered[:at], ordered[at:]
    apart = step >= STEP and all(len(side) > 1 and step > side[-1] / side[0] for side in sides)
    return (median(sides[0]), median(sides[1])) if apart or _is_wide(ordered) else None


def in_all_modes(found: Verdict, a: tuple[float, float], b: tuple[float, float],
                 threshold: float = THRESHOLD) -> Verdict:
    """The verdict on A against B if it holds whichever mode each of them meets, else "noisy". a, b: the lowest and the
    highest mode of each."""
    holds = {"better": a[1] / b[0] <= 1 - threshold, "worse": a[0] / b[1] >= 1 + threshold}
    return found if holds.get(found.word, True) else dataclasses.replace(found, word="noisy")


def paired(a: dict[int, float], b: dict[int, float]) -> list[float]:
    """Ratios a / b of the rounds that both have."""
    return [a[turn] / b[turn] for turn in sorted(a.keys() & b.keys()) if b[turn] > 0 and a[turn] > 0]


def compare(a: dict[int, float], b: dict[int, float], threshold: float = THRESHOLD) -> Verdict:
    """The verdict on arm A against arm B; both map rounds to values of which less is better."""
    ratios = paired(a, b)
    if len(ratios) < 2:
        return Verdict("not measured", rounds=len(ratios))
    ratio = median(ratios)
    low, high = interval(ratios)
    if ratio <= 1 - threshold and high < 1:
        word = "better"
    elif ratio >= 1 + threshold and low > 1:
        word = "worse"
    else:
        word = "no difference"
    return Verdict(word, ratio, low, high, len(ratios))


def noise(ratios: Sequence[float]) -> float:
    """How far an A/A pair strays from 1: its interval, or for few rounds its worst round."""
    if not ratios:
        return math.nan
    ends = interval(ratios) if len(ratios) >= FEW else (min(ratios), max(ratios))
    return max(abs(1 - end) for end in ends)


def half_width(verdict: Verdict) -> float:
    """How far a verdict's interval reaches from 1."""
    if math.isnan(verdict.low):
        return math.nan
    return max(abs(1 - verdict.low), abs(verdict.high - 1))


def geometric_mean(values: Sequence[float]) -> float:
    data = [value for value in values if value and value > 0 and not math.isnan(value)]
    return float(np.exp(np.mean(np.log(data)))) if data else math.nan


LEDGER = {"better": "GO", "no difference": "NEUTRAL", "noisy": "NEUTRAL", "worse": "NO-GO", "not measured": "–"}


def ledger_word(verdict: Verdict) -> str:
    """The words of docs/experiments: of arm A (the idea) against arm B (what is there)."""
    return LEDGER[verdict.word]
