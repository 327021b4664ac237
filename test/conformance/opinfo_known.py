"""The list of what PyTorch itself gets wrong, and how it is held against a run (known.toml)."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

FILE = Path(__file__).with_name("known.toml")


@functools.cache
def _content() -> dict:
    return tomllib.loads(FILE.read_text())


def undefined_values() -> frozenset[str]:
    """Operators whose results hold memory that nobody wrote, or that eager computes at random."""
    return frozenset(_content()["undefined_values"])


def listed(suite: str) -> dict[str, str]:
    """Reason by operator, of the samples that aot_eager gets wrong in a suite."""
    return dict(_content()["suite"].get(suite, {}))


def problems(suite: str, results: Mapping[str, dict], complete: bool = True) -> list[str]:
    """What keeps a run from being right, one line each: failures, upstream faults that are not
    listed, and (of a complete run of these operators) listed ones that no longer happen."""
    known, found = listed(suite), []
    for name, result in results.items():
        found += [f"{suite} {name} [{i}]: {text}" for i, text in result["failed"].items()]
        if result["upstream"] and name not in known:
            index, text = next(iter(result["upstream"].items()))
            found.append(f"{suite} {name} [{index}]: aot_eager fails too, not listed: {text}")
        if complete and name in known and not result["upstream"]:
            found.append(f"{suite} {name}: listed as an upstream fault, but all samples work now")
    return found
