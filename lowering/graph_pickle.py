"""Pickles for other processes and later runs, which do not import what this program has imported.

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
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import _graph_pickler


def _memory_format(name: str) -> torch.memory_format:
    return getattr(torch, name)


def _reduce(value: torch.memory_format) -> tuple[Callable, tuple[str]]:
    return _memory_format, (str(value).removeprefix("torch."),)


_TABLE = ChainMap({torch.memory_format: _reduce}, copyreg.dispatch_table)
_NEEDED = ("val", "tensor_meta", "stack_trace")
_GRAPHS = _graph_pickler.Options(ops_filter=None, node_metadata_key_filter=_NEEDED.__contains__)


class _Pickler(pickle.Pickler):
    dispatch_table = _TABLE


class _GraphPickler(_graph_pickler.GraphPickler):
    dispatch_table = _TABLE


def dumps(value: Any) -> bytes:
    """For `pickle.loads`."""
    file = io.BytesIO()
    _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(value)
    return file.getvalue()


def dump_graph(graph_module: fx.GraphModule) -> bytes:
    """With types and lines of the user's program."""
    return _GraphPickler.dumps(graph_module, _GRAPHS)


def load_graph(data: bytes) -> fx.GraphModule:
    return _graph_pickler.GraphPickler.loads(data, FakeTensorMode())
