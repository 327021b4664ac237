"""A key for everything that the code of a part depends on, without compiling it."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Set

import torch
from torch import fx

from mlir_npu.dialect.target import load_target
from mlir_npu.lowering.support.rules import HOLDS_ZEROS
from mlir_npu.options import Options
from mlir_npu.runtime.toolchain import digest

# what becomes of the code, not what it is
_NOT_IN_CODE = (
    *("cache", "code_generator", "dump_dir", "fallback", "host_ops", "min_region_macs", "npu_ops"),
    *("strict", "target"),
)
_PLAIN = (
    *(bool, int, float, complex, str, type(None)),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)


class _NoKey(Exception):
    """Something in the graph has no text that stands for it."""


def region_key(
    graph_module: fx.GraphModule, place: str, parameters: Set[str], options: Options
) -> str | None:
    """None if the graph holds something that cannot be described."""
    chosen = [
        f"{field.name}={getattr(options, field.name)!r}"
        for field in dataclasses.fields(options)
        if field.name not in _NOT_IN_CODE
    ]
    if options.autotune:
        chosen.append(f"tuned for {options.num_threads or torch.get_num_threads()} threads")
    try:
        graph = _describe(graph_module, parameters)
    except _NoKey:
        return None
    return digest(place, *chosen, repr(load_target(options.target)), *graph)


def _describe(graph_module: fx.GraphModule, parameters: Set[str]) -> list[str | bytes]:
    numbers: dict[fx.Node, int] = {}
    lines: list[str | bytes] = []
    for number, node in enumerate(graph_module.graph.nodes):
        numbers[node] = number
        if node.op == "placeholder":
            role = "parameter" if node.name in parameters else "input"
            role += " of zeros" if node.meta.get(HOLDS_ZEROS) else ""
            lines.append(f"{role} {_tensor(node.meta.get('val'))}")
        elif node.op == "get_attr":
            lines += _constant(operator.attrgetter(node.target)(graph_module))
        elif node.op == "output":
            lines.append(f"output {_text(node.args, numbers)}")
        else:
            call = f"{_text(node.args, numbers)} {_text(node.kwargs, numbers)}"
            lines.append(f"{_function(node)} {call}")
    return lines


def _function(node: fx.Node) -> str:
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    if node.op == "call_function" and node.target is operator.getitem:
        return "getitem"
    raise _NoKey


def _tensor(value: object) -> str:
    if not isinstance(value, torch.Tensor):
        raise _NoKey
    sizes = (*value.shape, *value.stride())
    if value.layout is not torch.strided or not all(isinstance(size, int) for size in sizes):
        raise _NoKey
    return f"{value.dtype} {tuple(value.shape)} {value.stride()} {value.device}"


def _constant(value: object) -> list[str | bytes]:
    description = _tensor(value)
    # a tensor of one element is contiguous whatever its strides, but has no view as bytes
    contents = value.detach().resolve_conj().resolve_neg().flatten()
    packed = torch.empty(contents.shape, dtype=contents.dtype).copy_(contents)
    return [f"constant {description}", packed.view(torch.uint8).numpy().tobytes()]


def _text(value: object, numbers: dict[fx.Node, int]) -> str:
    if isinstance(value, fx.Node):
        return f"%{numbers[value]}"
    if isinstance(value, (tuple, list)):
        return f"({', '.join(_text(item, numbers) for item in value)})"
    if isinstance(value, dict):
        items = (f"{key}={_text(value[key], numbers)}" for key in sorted(value))
        return f"{{{', '.join(items)}}}"
    if type(value) not in _PLAIN:
        raise _NoKey
    return f"{type(value).__name__} {value!r}"
