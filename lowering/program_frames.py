"""Frames of the user's program that run while a model is called."""

from __future__ import annotations

import itertools
import os
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch.utils import _pytree as pytree

from mlir_npu.lowering.program_origins import Site, Span
from mlir_npu.lowering.source_location import TORCH

_OURS = os.path.dirname(__file__) + os.sep
_CALLS_THE_MODEL = "record_run"
_MODULE_CALL = torch.nn.Module._wrapped_call_impl.__code__
_OF_DYNAMO = ("__compiled_fn_", "__resume_at_")  # what code that it made calls


def user_frame() -> types.FrameType | None:
    """The innermost, of the model or of what calls it."""
    return next(filter(_is_of_user, _frames()), None)


def user_sites(breaks: Mapping[str, set[int]]) -> list[Site]:
    """Of the model's frames, innermost first. breaks: lines of uncompiled calls in functions that
    are compiled but for these, by file."""
    inside = itertools.takewhile(lambda frame: not _calls_the_model(frame), _frames())
    return [_site(frame, breaks) for frame in inside if _is_of_user(frame)]


def given_to_module() -> list[Any] | None:
    """What the model gives to the module of PyTorch's own that makes the call; None if there is no
    such module between."""
    inner = itertools.takewhile(lambda frame: not _is_of_user(frame), _frames())
    calls = [frame.f_locals for frame in inner if frame.f_code is _MODULE_CALL]
    return pytree.tree_leaves((calls[-1]["args"], calls[-1]["kwargs"])) if calls else None


def _frames() -> Iterator[types.FrameType]:
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_of_user(frame: types.FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith((TORCH, _OURS, "<")) or file.startswith("<stdin")


def _calls_the_model(frame: types.FrameType) -> bool:
    code = frame.f_code
    return code.co_name == _CALLS_THE_MODEL and code.co_filename.startswith(_OURS)


def _site(frame: types.FrameType, breaks: Mapping[str, set[int]]) -> Site:
    code = frame.f_code
    is_compiled = any(name.startswith(_OF_DYNAMO) for name in code.co_names)
    uncompiled = breaks.get(code.co_filename, set()) if is_compiled else None
    return Site(code.co_filename, frame.f_lineno, _span(frame), uncompiled)


def _span(frame: types.FrameType) -> Span:
    positions = itertools.islice(frame.f_code.co_positions(), max(frame.f_lasti // 2, 0), None)
    return next(positions, (None, None, None, None))
