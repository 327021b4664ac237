"""Choices made from outside: attributes of a module that passes obey instead of their cost model.

    module attributes {npu.winograd = {k6c1d = 4 : i64}, npu.schedules = {k0f57 = {tile = ...}}}

A choice is looked up by a key of what it is for: all that it may depend on but the target, as text.
The pass that obeys an attribute removes it, so that later stages depend on what was chosen only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from mlir_npu.dialect.bindings import ir

WINOGRAD = "npu.winograd"
SCHEDULES = "npu.schedules"
_NAME = "kernel"


def key_of(text: str) -> str:
    return f"k{hashlib.sha256(text.encode()).hexdigest()[:24]}"


def kernel_text(kernel: ir.Operation) -> str:
    """A kernel without its name, locations and schedule."""
    copy = kernel.operation.clone(False)
    copy.attributes["sym_name"] = ir.StringAttr.get(_NAME)
    if "npu.schedule" in copy.attributes:
        del copy.attributes["npu.schedule"]
    return copy.get_asm(enable_debug_info=False, use_local_scope=True)


def take_choices(module: ir.Operation, name: str) -> dict[str, ir.Attribute]:
    """The choices of one attribute, which the module then has no more."""
    if name not in module.attributes:
        return {}
    found = {entry.name: entry.attr for entry in ir.DictAttr(module.attributes[name])}
    del module.attributes[name]
    return found


def set_choices(module: ir.Operation, name: str, choices: Mapping[str, str]) -> None:
    """choices: attributes as text, by key."""
    parsed = {key: ir.Attribute.parse(text) for key, text in choices.items()}
    module.attributes[name] = ir.DictAttr.get(parsed)
