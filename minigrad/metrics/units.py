"""Scores as people read them: whatever is a share of something is written in per cent."""

from __future__ import annotations

__all__ = ["SHARES", "spelled"]

SHARES = ("accuracy", "exact")  # means of what is right, from 0 to 1
PERCENTAGES = ("bleu", "chrf", "exact_match", "teacher_forced_accuracy", "free_running_accuracy")  # from 0 to 100


def spelled(name: str, value: float) -> str:
    """The value of a score with its unit.

    >>> spelled("accuracy", 0.9835), spelled("exact_match", 0.53), spelled("loss", 0.13304)
    ('98.35 %', '0.53 %', '0.1330')
    """
    if name.removeprefix("valid_") in SHARES:
        return f"{100 * value:.2f} %"
    if name.endswith(PERCENTAGES):
        return f"{value:.2f} %"
    return f"{value:.4f}" if 1e-3 <= abs(value) < 1e4 or not value else f"{value:.4g}"
