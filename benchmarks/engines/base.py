"""What a case needs of an engine."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn

Call = Callable[[], torch.Tensor]


class Engine:
    """Prepared for one model and input; `packages` have to be importable."""

    packages: tuple[str, ...] = ()

    def __init__(self, threads: int, folder: Path, *, inspect: bool = True) -> None:
        """folder: an empty directory that is deleted afterwards; inspect: notes are to say which
        algorithms run, at the cost of a slower preparation."""
        self.threads, self.folder, self.inspect = threads, folder, inspect

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot run here, None if it can."""
        lacking = [name for name in cls.packages if importlib.util.find_spec(name) is None]
        return f"not installed: {', '.join(lacking)}" if lacking else None

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        """A function that computes model(x); it may keep and change `model`."""
        raise NotImplementedError

    def notes(self) -> dict:
        """What is worth knowing about what was prepared."""
        return {}
