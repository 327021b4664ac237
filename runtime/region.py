"""A compiled region: a callable from tensors to a tuple of tensors."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence, Set

import torch

from mlir_npu.runtime.arena import ALIGNMENT, align
from mlir_npu.runtime.interface import Interface, Output
from mlir_npu.runtime.kernel import Kernel, SlotBlock
from mlir_npu.runtime.prepared import PreparedCache
from mlir_npu.runtime.region_call import CallPlan, InputSlot, ResultSlot, region_call
from mlir_npu.runtime.run_block import Runner, fill_prepared
from mlir_npu.runtime.signature import FunctionSignature, Signature, SignatureError
from mlir_npu.runtime.tensor_spec import TensorSpec
from mlir_npu.runtime.tuning import Tuning


class CompiledRegion:
    """Call it with the region's inputs in order; safe from several threads.

    Raises ValueError for inputs of another count, shape or dtype than it was compiled for. Any
    strides are accepted: tensors that are not in the compiled memory order are packed first.
    Outputs have the strides of the traced graph.
    """

    def __init__(
        self,
        name: str,
        kernel: Kernel,
        signature: Signature,
        interface: Interface,
        *,
        num_threads: int = 0,
    ) -> None:
        self.name = name
        self.signature = signature
        self.interface = interface
        self._kernel = kernel
        self._prepare = kernel.sibling("prepare") if signature.prepare else None
        self.num_threads = num_threads
        self.tuning: Tuning | None = None  # what was measured when it was compiled
        self.code: object | None = None  # what it was loaded from, if that is kept
        self._blocks: list[SlotBlock] = []
        if signature.scratch_bytes % ALIGNMENT:
            raise SignatureError(
                f"scratch of {signature.scratch_bytes} bytes per thread is not a multiple of "
                f"{ALIGNMENT}"
            )
        self._bind_slots()
        self._cache = PreparedCache(self._make_prepared)

    def _bind_slots(self) -> None:
        main, interface = self.signature.main, self.interface
        given = main.slots("input", "parameter")
        specs = (*interface.inputs, *map(TensorSpec.of, interface.constants))
        _check_shapes(main, given, specs)
        _check_shapes(main, main.slots("output"), interface.results)
        parameters = set(interface.parameters)
        self._input_count = len(interface.inputs)
        self._inputs = tuple(
            (i, spec.shape, spec.dtype)
            for i, spec in enumerate(interface.inputs)
            if i not in parameters
        )
        parameter_positions = (*interface.parameters, *range(len(interface.inputs), len(specs)))
        self._parameter_specs = tuple(specs[i] for i in parameter_positions)
        self._zeros = tuple(parameter_positions.index(i) for i in interface.zeros)
        self._prepared_slots = (*(given[i] for i in parameter_positions), *main.slots("prepared"))
        self._pick_parameters = picker(interface.parameters)
        self._run = self._make_runner(self._kernel, main)
        self._plan = self._plan_call(given)

    def _make_runner(self, kernel: Kernel, function: FunctionSignature) -> Runner:
        workspace, scratch = self.signature.workspace_bytes, self.signature.scratch_bytes
        memory = _memory_slots(function)
        return Runner(kernel, memory, align(workspace), scratch, self.num_threads)

    def _plan_call(self, given: Sequence[int]) -> CallPlan:
        main, interface = self.signature.main, self.interface
        inputs = tuple(
            InputSlot(given[i], i, _strides(interface.inputs[i]), interface.inputs[i].conform)
            for i, _, _ in self._inputs
        )
        results = tuple(
            ResultSlot(
                slot,
                spec.shape,
                _strides(spec),
                spec.dtype,
                math.prod(spec.shape) * spec.dtype.itemsize,
            )
            for slot, spec in zip(main.slots("output"), interface.results, strict=True)
        )
        in_order = tuple(Output("result", i) for i in range(len(results)))
        plain = interface.outputs == in_order and all(s.is_dense for s in interface.results)
        memory = "none" if self._run.slots is None else "block" if self._run.is_small else "pool"
        return CallPlan(
            self._input_count, inputs, results, self.reads_parameters, memory, not plain
        )

    def _make_call(self, packed: Set[int] = frozenset()) -> Callable:
        """A function of prepared values and the tensors; packed: see `bound`."""
        names = {
            "blocks": self._blocks,
            "new_block": functools.partial(SlotBlock, len(self.signature.main.arguments)),
            "fill": functools.partial(fill_prepared, self._prepared_slots),
            "equip": self._run.equip,
            "run": self._run if self._plan.memory == "pool" else self._kernel.run,
            "kernel": self._kernel,  # its machine code lives as long as it
            "arrange": self.interface.arrange,
        }
        return region_call(self._plan, names, packed)

    @functools.cached_property
    def _call(self) -> Callable:
        return self._make_call()

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        if len(tensors) != self._input_count:
            raise ValueError(f"{self.name} takes {self._input_count} tensors, not {len(tensors)}")
        for index, shape, dtype in self._inputs:
            tensor = tensors[index]
            if tensor.shape != shape or tensor.dtype is not dtype:
                spec = self.interface.inputs[index]
                raise mismatch(f"input {index} of {self.name}", spec, tensor)
        prepared = None
        if self.reads_parameters:
            prepared = self._cache.get(self._pick_parameters(tensors) + self.interface.constants)
        return self._call(prepared, *tensors)

    @property
    def reads_parameters(self) -> bool:
        """Whether it has parameters, constants of its own, or something to prepare without any."""
        return bool(self._parameter_specs) or self._prepare is not None

    def bound(self, parameters: Sequence[torch.Tensor], packed: Set[int] = frozenset()) -> Callable:
        """The region with these parameters (those at `interface.parameters`) as they are now.

        It is called as the region is, and looks neither at shapes and dtypes nor at the parameters
        it is given: the caller knows that they are right and unchanged, and keeps them alive.
        packed: inputs that have the strides of the interface, and their own numbers in memory.
        """
        prepared = None
        if self.reads_parameters:
            prepared = self._cache.get((*parameters, *self.interface.constants))
        dense = {i for i in packed if self.interface.inputs[i].is_dense}
        call = self._make_call(frozenset(dense)) if dense else self._call
        return functools.partial(call, prepared)

    def _make_prepared(
        self, parameters: Sequence[torch.Tensor]
    ) -> tuple[list[int], list[torch.Tensor]]:
        owned, pointers = [], []
        refuse_other_than_zeros(self.name, parameters, self._zeros)
        for parameter, spec in zip(parameters, self._parameter_specs, strict=True):
            if parameter.shape != spec.shape or parameter.dtype is not spec.dtype:
                raise mismatch(f"a parameter of {self.name}", spec, parameter)
            packed = parameter if spec.accepts(parameter) else spec.conform(parameter.detach())
            if packed is not parameter:  # the caller, and only it, keeps its parameters alive
                owned.append(packed)
            pointers.append(packed.data_ptr())
        if self._prepare is None:
            return pointers, owned
        function = self.signature.prepare
        block = SlotBlock(len(function.arguments))
        for slot, pointer in zip(function.slots("parameter"), pointers, strict=True):
            block.values[slot] = pointer
        for slot in function.slots("output"):
            argument = function.arguments[slot]
            value = torch.empty(argument.shape, dtype=argument.dtype, device="cpu")
            block.values[slot] = value.data_ptr()
            owned.append(value)
            pointers.append(value.data_ptr())
        self._make_runner(self._prepare, function)(block)
        return pointers, owned


# Compiled code has one type of integers of a width; what they stand for is in its operations.
# Booleans are bytes, which host parts say later than regions.
_SIGNLESS = {torch.uint8: torch.int8, torch.bool: torch.int8}


def _signless(dtype: torch.dtype) -> torch.dtype:
    return _SIGNLESS.get(dtype, dtype)


def _check_shapes(
    function: FunctionSignature, slots: Sequence[int], specs: Sequence[TensorSpec]
) -> None:
    arguments = [function.arguments[slot] for slot in slots]
    found = [(argument.shape, _signless(argument.dtype)) for argument in arguments]
    wanted = [(spec.physical_shape, _signless(spec.dtype)) for spec in specs]
    if found != wanted:
        raise SignatureError(
            f"@{function.name} has {found} where the region's interface has {wanted}"
        )


def mismatch(what: str, spec: TensorSpec, tensor: torch.Tensor) -> ValueError:
    return ValueError(
        f"{what} is {tensor.dtype}{list(tensor.shape)}; "
        f"it was compiled for {spec.dtype}{list(spec.shape)}"
    )


def refuse_other_than_zeros(
    name: str, parameters: Sequence[torch.Tensor], positions: Sequence[int]
) -> None:
    """Raises ValueError if one of these parameters, compiled for zeros only, has something else."""
    if any(parameters[position].any() for position in positions):
        raise ValueError(
            f"zero points of weights of {name} are not 0 any more, for which it was "
            "compiled: compile the model again"
        )


def picker(indices: Sequence[int]) -> Callable[[Sequence], tuple]:
    """What takes the elements at these positions out of a sequence."""
    if len(indices) == 1:
        only = indices[0]
        return lambda tensors: (tensors[only],)
    return operator.itemgetter(*indices) if indices else lambda tensors: ()


def _strides(spec: TensorSpec) -> tuple[int, ...]:
    """Of the tensor that compiled code reads or writes."""
    return spec.strides if spec.is_dense else spec.dense


def _memory_slots(function: FunctionSignature) -> tuple[int, int] | None:
    """Positions of workspace and scratch; both are there, or neither (host modules)."""
    slots = (*function.slots("workspace"), *function.slots("scratch"))
    if slots and len(slots) != 2:
        raise SignatureError(
            f"@{function.name} needs one workspace and one scratch argument, or neither"
        )
    return slots or None
