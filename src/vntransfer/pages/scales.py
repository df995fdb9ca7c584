"""Scales: from numbers to places, with ticks at round numbers."""

import math
from collections.abc import Callable
from dataclasses import dataclass

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Format a number for charts and their tables: four digits, no trailing zeros."""
    if value is None or math.isnan(value):
        return ""
    if 1e3 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.4g}"


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers between two ends."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return [low]
    rough = span / max(1, n)
    unit = 10.0 ** math.floor(math.log10(rough))
    step = min((unit * k for k in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough)))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def log_ticks(low: float, high: float, n: int = 5) -> list[float]:
    """Powers of ten between two ends, every second or third where there are many.

    A span of less than a decade gets 1, 2 and 5 as well.
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if math.log10(high / low) < 1.7 else (1,)
    every = max(1, -(-(last - first) // n))
    found = [f * 10.0**e for e in range(first, last + 1, every) for f in factors]
    kept = [value for value in found if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]
    return kept if len(kept) > 1 else [low, high]


def tick_text(value: float, *, log: bool = False) -> str:
    """Label of a tick."""
    if log and (value >= 1e4 or value < 1e-2):
        power = math.log10(value)
        if abs(power - round(power)) < 1e-9:
            return "10" + str(round(power)).translate(_SUPERSCRIPTS)
    said = f"{value:,.0f}" if 1e4 <= abs(value) < 1e6 else number(value)
    return said.replace("-", "−")


@dataclass(frozen=True)
class Scale:
    """Places of numbers between two ends."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Place of a number; it may lie outside."""
        turn: Callable[[float], float] = math.log10 if self.log else float
        share = (turn(value) - turn(self.low)) / (turn(self.high) - turn(self.low))
        return self.start + share * (self.end - self.start)

    def within(self, value: float) -> float:
        """Place of a number, or the nearer end if it lies outside."""
        return self(min(max(value, self.low), self.high))

    def shows(self, value: float | None) -> bool:
        """Whether a number has a place between the ends."""
        if value is None or not math.isfinite(value) or (self.log and value <= 0):
            return False
        slack = 1e-9 * (abs(self.high) + abs(self.low))
        return self.low - slack <= value <= self.high + slack

    def ticks(self, n: int = 5) -> list[float]:
        """Round numbers between the ends."""
        return (log_ticks if self.log else ticks)(self.low, self.high, n)


def padded(
    low: float, high: float, *, log: bool = False, share: float = 0.05
) -> tuple[float, float]:
    """Widen two ends a little, never to equal ones; zero stays where it is an end."""
    if log:
        factor = (high / low) ** share if high > low else 2.0
        return low / factor, high * factor
    if high <= low:
        return low - 0.5, high + 0.5
    gap = share * (high - low)
    return (low if low == 0 else low - gap), (high if high == 0 else high + gap)
