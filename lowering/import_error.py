"""The error of the importer: which operators of the user's program it is about, and where."""

from __future__ import annotations

from typing import Any


class RegionImportError(RuntimeError):
    """A region cannot become linalg. `reason` is one sentence, `operators` ATen names, `location`
    "file:line"."""

    def __init__(
        self, reason: str, *, operators: tuple[str, ...] = (), location: str | None = None
    ) -> None:
        super().__init__(f"{location}: {reason}" if location else reason)
        self.reason = reason
        self.operators = operators
        self.location = location

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.reason, self.operators, self.location)


def _rebuild(reason: str, operators: tuple[str, ...], location: str | None) -> RegionImportError:
    return RegionImportError(reason, operators=operators, location=location)
