"""The call of a region as Python without loops: what it does for each tensor is written out.

    def call(prepared, t0, t1):
        try:
            block = blocks.pop()
        except IndexError:
            block = new_block()
        if block.tag != prepared.serial:
            fill(block, prepared)
        values = block.values
        p0 = t0 if t0.stride() == strides0 and not t0.is_neg() else conform0(t0)
        values[0] = p0.data_ptr()
        r0 = empty_strided(*result0)
        values[2] = r0.data_ptr()
        run(block.address)
        blocks.append(block)
        return (r0,)

For small tensors a kernel takes a tenth of a microsecond, and a call is what stands here.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch._C._dynamo.guards import _empty_strided_cpu as empty_strided

from mlir_npu.runtime.results import LARGE, RESULTS


@dataclass(frozen=True)
class InputSlot:
    """Input `index` of the region in slot `slot`; conform: packs it if it has other strides."""

    slot: int
    index: int
    strides: tuple[int, ...]
    conform: Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class ResultSlot:
    """size: in bytes."""

    slot: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    size: int


@dataclass(frozen=True)
class CallPlan:
    """count: of tensors that the region takes, of which it looks at `inputs`; prepares: whether a
    block has slots of prepared values too; memory: where temporary memory is, if the kernel needs
    any; arranges: whether outputs are not just the results."""

    count: int
    inputs: tuple[InputSlot, ...]
    results: tuple[ResultSlot, ...]
    prepares: bool
    memory: Literal["none", "block", "pool"]
    arranges: bool


def region_call(
    plan: CallPlan, names: Mapping[str, Any], packed: Collection[int] = ()
) -> Callable[..., tuple]:
    """A function of prepared values and the region's tensors.

    packed: inputs that lie in memory as compiled code reads them. names: `blocks` that no call
    uses, `new_block`, `fill` a block with prepared values, `equip` it with memory, `run` one (its
    address, if it has all memory), and `arrange`, which gives the outputs from inputs and results.
    """
    known = dict(
        names, empty_strided=empty_strided, take=RESULTS.take, threads=torch.get_num_threads
    )
    for given in plan.inputs:
        known[f"strides{given.index}"] = given.strides
        known[f"conform{given.index}"] = given.conform
    for number, result in enumerate(plan.results):
        known[f"result{number}"] = (result.shape, result.strides, result.dtype)
    # atomic, and tried without looking: other threads pop too
    lines = ["try:", "    block = blocks.pop()", "except IndexError:", "    block = new_block()"]
    if plan.prepares:
        lines += ["if block.tag != prepared.serial:", "    fill(block, prepared)"]
    if plan.memory == "block":
        lines += ["if block.threads != threads():", "    equip(block)"]
    lines.append("values = block.values")
    for given in plan.inputs:
        lines += _input_lines(given, given.index in packed)
    for number, result in enumerate(plan.results):
        lines += _result_lines(number, result)
    lines.append("run(block)" if plan.memory == "pool" else "run(block.address)")
    lines.append("blocks.append(block)")
    tensors = "".join(f"t{i}, " for i in range(plan.count))
    results = f"({''.join(f'r{i}, ' for i in range(len(plan.results)))})"
    lines.append(
        f"return arrange(({tensors}), {results})" if plan.arranges else f"return {results}"
    )
    text = "\n    ".join([f"def call(prepared, {tensors}):", *lines])
    return types.FunctionType(_code(text), known)


@functools.lru_cache(maxsize=256)
def _code(text: str) -> types.CodeType:
    namespace: dict[str, Any] = {}
    exec(compile(text, "<call of a region>", "exec"), namespace)
    return namespace["call"].__code__


def _input_lines(given: InputSlot, packed: bool) -> list[str]:
    name, index = f"t{given.index}", given.index
    if packed:
        return [f"values[{given.slot}] = {name}.data_ptr()"]
    fits = f"{name}.stride() == strides{index} and not {name}.is_neg()"
    return [
        f"p{index} = {name} if {fits} else conform{index}({name})",  # lives until the call returns
        f"values[{given.slot}] = p{index}.data_ptr()",
    ]


def _result_lines(number: int, result: ResultSlot) -> list[str]:
    made = f"empty_strided(*result{number})"
    if result.size >= LARGE:
        made = f"take({result.size}, result{number})"
    return [f"r{number} = {made}", f"values[{result.slot}] = r{number}.data_ptr()"]
