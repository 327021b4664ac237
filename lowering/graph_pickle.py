"""Pickles for later runs, which do not import what this program has imported.

`pickle` looks for a memory format in all modules, in the order in which they were imported, and
writes down the first that has a global `torch`: that may be a script of the user.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections import ChainMap
from collections.abc import Callable
from typing import Any

import torch


def _memory_format(name: str) -> torch.memory_format:
    return getattr(torch, name)


def _reduce(value: torch.memory_format) -> tuple[Callable, tuple[str]]:
    return _memory_format, (str(value).removeprefix("torch."),)


_TABLE = ChainMap({torch.memory_format: _reduce}, copyreg.dispatch_table)


class _Pickler(pickle.Pickler):
    dispatch_table = _TABLE


def dumps(value: Any) -> bytes:
    """For `pickle.loads`."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()
