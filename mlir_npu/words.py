"""Words for people."""

from __future__ import annotations


def count(number: int, noun: str) -> str:
    """ "1 node", "2,000 nodes"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
