"""Python's cyclic garbage collector, less eager while something is compiled.

Tracing makes hundreds of thousands of objects that stay, and the collector would go through them,
and through all that the program holds, again and again.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

OBJECTS = 50_000  # more than before, for the next collection; Python has hundreds

_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """May be nested, and used by several threads at once: the last to leave restores."""
    _enter()
    try:
        yield
    finally:
        _leave()


def _enter() -> None:
    global _users, _before
    with _lock:
        _users += 1
        if _users == 1:
            _before = gc.get_threshold()
            if 0 < _before[0] < OBJECTS:  # 0: never
                gc.set_threshold(OBJECTS, *_before[1:])


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if _users == 0:
            gc.set_threshold(*_before)
