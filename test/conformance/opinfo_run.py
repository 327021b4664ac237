"""One sample through the backend, and the verdict.

A sample is compiled through AOTAutograd alone, which is several times faster than through Dynamo.
The first forward of each operator, and each sample that this does not get right, goes through
torch.compile, whose verdict counts. What is wrong then is run through backend="aot_eager": if that
is wrong too, the fault is not ours. Nor is it where PyTorch's tracing promises other strides than
its kernel gives: code that is compiled keeps the promise.
"""

from __future__ import annotations

import collections
import functools
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from opinfo_cases import Sample, Suite, dtype_of, samples_of
from opinfo_compare import Run, as_exact, difference, has_layout_of
from torch._functorch.aot_autograd import aot_function
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from mlir_npu.lowering.compile_graph import compile_graph
from mlir_npu.lowering.partition import partition
from mlir_npu.lowering.report import GraphReport, collect
from mlir_npu.options import Options


@dataclass
class OpResult:
    """Verdicts on the samples of one operator. total: samples there are; uncaptured: passed, but
    Dynamo makes no graph of them; upstream: what aot_eager gets wrong too; engines: compiled parts
    by engine."""

    total: int = 0
    passed: int = 0
    uncaptured: int = 0
    left_out: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    upstream: dict[int, str] = field(default_factory=dict)
    engines: dict[str, int] = field(default_factory=lambda: collections.defaultdict(int))


class NoRegion(Exception):
    """The graph has no node for the NPU."""


def run_op(
    op: Any,
    suite: Suite,
    *,
    values: bool = True,
    limit: int | None = None,
    skip: frozenset[int] = frozenset(),
    on_sample: Callable[[int], None] = lambda index: None,
) -> OpResult:
    """Run the samples of an operator, or `limit` of them spread over all, but those in `skip`;
    `on_sample` is told the number of each before."""
    result = OpResult()
    dtype = dtype_of(op, suite)
    if dtype is None:
        return result
    runner = _Runner(op, suite, values, result)
    samples = list(samples_of(op, dtype, suite))
    result.total = len(samples)
    step = max(1, len(samples) / limit) if limit else 1
    for index in sorted({int(i * step) for i in range(int(len(samples) / step))} - skip):
        on_sample(index)
        runner.run(index, samples[index])
    return result


class _Runner:
    def __init__(self, op: Any, suite: Suite, values: bool, result: OpResult) -> None:
        self._function = op.get_inplace() if suite.direction == "inplace" else op.op
        self._suite, self._values, self._result = suite, values, result
        self._compiled: dict[object, Callable] = {}
        self._quickly = suite.direction != "forward" or suite.npu_only
        self._graphs = 0
        self._last: Run | None = None

    def run(self, index: int, sample: Sample) -> None:
        try:
            expected = self._call(self._eager, sample)
        except Exception:  # not a call that eager can make
            self._result.left_out += 1
            return
        try:
            found = self._verdict(sample, expected)
        except NoRegion:
            self._result.left_out += 1
            return
        if found is None:
            self._result.passed += 1
            return
        if self._is_mistraced(sample, expected):
            theirs = f"PyTorch's tracing promises other strides than its kernel gives: {found}"
        else:
            theirs = self._attempt(_dynamo(self._function, "aot_eager"), sample, expected)
        if theirs is None:
            self._result.failed[index] = found
        else:
            self._result.upstream[index] = theirs

    def _verdict(self, sample: Sample, expected: Run) -> str | None:
        if self._quickly:
            found = self._attempt(self._quick(sample), sample, expected)
            if found is None:
                return None
        self._quickly = True
        options = _options(self._suite)
        found = self._attempt(_dynamo(self._function, "mlir_npu", options), sample, expected)
        self._result.uncaptured += found is None and not self._graphs
        return found

    def _attempt(self, function: Callable, sample: Sample, expected: Run) -> str | None:
        self._last = None
        with collect() as reports:
            try:
                self._last = actual = self._call(function, sample)
                found = difference(actual, expected, self._values)
                if (
                    found
                    and "values differ" in found
                    and self._is_rounding(sample, actual, expected)
                ):
                    found = None
            except NoRegion:
                raise
            except Exception as error:
                found = _describe(error)
        self._graphs = len(reports)
        for part in (part for graph in reports for part in graph.parts):
            self._result.engines[part.engine] += 1
        return found or _internal_error(reports)

    def _is_mistraced(self, sample: Sample, expected: Run) -> bool:
        """Whether all that is wrong are strides, and results traced have others than computed."""
        last = self._last
        if last is None or difference(last, expected, self._values, strides=False) is not None:
            return False
        mode = FakeTensorMode()
        sample = sample.copied().mapped(mode.from_tensor)
        try:
            with mode, torch.no_grad():
                traced = self._eager(sample)
        except Exception:  # it cannot be traced
            return False
        return not has_layout_of(expected, traced)

    def _is_rounding(self, sample: Sample, actual: Run, expected: Run) -> bool:
        if difference(actual, expected, values=False) is not None:
            return False
        try:
            exact = self._call(self._eager, sample.in_double())
        except Exception:  # eager cannot compute it in float64
            return False
        return as_exact(actual, expected, exact)

    def _call(self, function: Callable, sample: Sample) -> Run:
        """One call on copies of the inputs."""
        sample = sample.copied()
        inputs = tuple(sample.leaves[i] for i in sample.tensor_positions)
        torch.default_generator.manual_seed(1)  # torch.manual_seed formats the stack each time
        if self._suite.direction != "backward":
            with torch.no_grad():
                return Run(function(sample), inputs)
        result = function(sample)
        wanted = [tensor for tensor in inputs if tensor.requires_grad]
        return Run(result, inputs, _gradients(sample.process(result), wanted))

    def _eager(self, sample: Sample) -> Any:
        first, rest, named = sample.arguments()
        return self._function(first, *rest, **named)

    def _quick(self, sample: Sample) -> Callable:
        """Callable for samples like this one."""
        key = sample.key()
        if key not in self._compiled:
            self._compiled[key] = _aot(self._function, self._suite, sample)
        return self._compiled[key]


def _gradients(result: Any, inputs: list[torch.Tensor]) -> tuple[torch.Tensor | None, ...]:
    """Gradients of a sum in which every element of the result has another weight."""
    outputs = [
        leaf
        for leaf in pytree.tree_leaves(result)
        if isinstance(leaf, torch.Tensor) and leaf.requires_grad
    ]
    if not outputs or not inputs:
        return ()
    weights = [torch.randn(output.shape, dtype=output.dtype) for output in outputs]
    return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def _options(suite: Suite) -> dict[str, Any]:
    """Nothing from the disk cache: code that an earlier run made is not what is tested."""
    return {"cache": False, **dict(suite.options)}


def _dynamo(
    function: Callable, backend: str, options: Mapping[str, Any] | None = None
) -> Callable[[Sample], Any]:
    def call(first: Any, rest: tuple, named: dict) -> Any:
        return function(first, *rest, **named)

    torch._dynamo.reset()
    compiled = torch.compile(call, backend=backend, options=options, dynamic=False)
    return lambda sample: compiled(*sample.arguments())


def _aot(function: Callable, suite: Suite, like: Sample) -> Callable[[Sample], Any]:
    def call(*tensors: torch.Tensor) -> Any:
        leaves = list(like.leaves)
        for position, tensor in zip(like.tensor_positions, tensors, strict=True):
            leaves[position] = tensor
        first, rest, named = pytree.tree_unflatten(leaves, like.spec)
        return function(first, *rest, **named)

    options = Options.parse(_options(suite))
    regions = 0

    def compile_(graph: torch.fx.GraphModule, _: Any, *, kind: str) -> Callable:
        nonlocal regions
        if suite.npu_only:
            regions += len(partition(graph, options).npu_parts)
            if not regions and kind != "forward":
                raise NoRegion
        return compile_graph(graph, kind=kind, options=options, roles={})

    compiled = aot_function(
        call,
        fw_compiler=functools.partial(compile_, kind="forward"),
        bw_compiler=functools.partial(compile_, kind="backward"),
        inference_compiler=functools.partial(compile_, kind="inference"),
        decompositions={},
    )
    return lambda sample: compiled(*(sample.leaves[i] for i in sample.tensor_positions))


def _internal_error(reports: list[GraphReport]) -> str | None:
    for part in (part for graph in reports for part in graph.parts if part.reason):
        if part.place == "npu" or part.reason.startswith("internal error"):
            return f"{part.name} does not compile: {part.reason}"
    return None


def _describe(error: Exception) -> str:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:400]
    return f"{type(error).__name__}: {text} ({frame.filename.rpartition('/')[2]}:{frame.lineno})"
