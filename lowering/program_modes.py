"""Modes of torch functions are hidden from Dynamo, which would trace into them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import _pop_mode, _push_mode


def without_modes(callback: Callable, enter: Callable[[Any], None]) -> Callable:
    """Dynamo's callback, which compiles frames, with no mode active. enter: called with each frame
    before it is compiled."""

    def compile_frame(frame: Any, *arguments: Any, **keywords: Any) -> Any:
        with _no_modes():
            enter(frame)
            return callback(frame, *arguments, **keywords)

    compile_frame._torchdynamo_orig_backend = callback
    return compile_frame


@contextlib.contextmanager
def _no_modes() -> Iterator[None]:
    modes = []
    while torch._C._len_torch_function_stack():
        modes.append(_pop_mode())
    try:
        yield
    finally:
        for mode in reversed(modes):
            _push_mode(mode)
