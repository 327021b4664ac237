"""The arguments of a compiled module, read from `npu.role` once all memory is planned.

    @main(inputs and parameters..., prepared..., outputs..., workspace, scratch)
    @prepare(parameters..., outputs..., workspace, scratch)

Host modules have no prepared values, workspace or scratch.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from mlir_npu.dialect.bindings import func, ir

ROLES = ("input", "parameter", "prepared", "output", "workspace", "scratch")

_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
}


class SignatureError(ValueError):
    """The module does not follow the calling convention."""


@dataclass(frozen=True)
class Argument:
    """One slot: a packed, row-major buffer."""

    role: str
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size


@dataclass(frozen=True)
class FunctionSignature:
    """Arguments of one function, in order."""

    name: str
    arguments: tuple[Argument, ...]

    def slots(self, *roles: str) -> tuple[int, ...]:
        """Positions of the arguments with one of these roles, in order."""
        return tuple(i for i, argument in enumerate(self.arguments) if argument.role in roles)

    def bytes_of(self, role: str) -> int:
        return sum(argument.bytes for argument in self.arguments if argument.role == role)


@dataclass(frozen=True)
class Signature:
    """`prepare` is None if nothing depends on the parameters alone."""

    main: FunctionSignature
    prepare: FunctionSignature | None

    @property
    def workspace_bytes(self) -> int:
        return max(f.bytes_of("workspace") for f in (self.main, self.prepare) if f is not None)

    @property
    def scratch_bytes(self) -> int:
        """Bytes of one thread."""
        return max(f.bytes_of("scratch") for f in (self.main, self.prepare) if f is not None)


def read_signature(module: ir.Module) -> Signature:
    """Signature of @main and, if there is one, @prepare. Raises SignatureError naming the
    argument."""
    functions = {
        op.operation.attributes["sym_name"].value: op
        for op in module.body.operations
        if isinstance(op, func.FuncOp)
    }
    if "main" not in functions:
        raise SignatureError("the module has no function @main")
    main = _read_function("main", functions["main"])
    prepare = _read_function("prepare", functions["prepare"]) if "prepare" in functions else None
    _check(main, prepare)
    return Signature(main, prepare)


def _read_function(name: str, function: func.FuncOp) -> FunctionSignature:
    arguments = []
    types = function.type.inputs
    attributes = function.arg_attrs if types else []
    for index, (type_, attrs) in enumerate(zip(types, attributes)):
        where = f"argument {index} of @{name}"
        if "npu.role" not in attrs:
            raise SignatureError(f"{where} has no npu.role; expected one of {', '.join(ROLES)}")
        role = ir.StringAttr(attrs["npu.role"]).value
        if role not in ROLES:
            raise SignatureError(
                f"{where} has the unknown role {role!r}; known: {', '.join(ROLES)}"
            )
        arguments.append(_argument(where, role, type_))
    if function.type.results:
        raise SignatureError(f"@{name} still returns values; results must be out-parameters")
    return FunctionSignature(name, tuple(arguments))


def _argument(where: str, role: str, type_: ir.Type) -> Argument:
    if not isinstance(type_, ir.MemRefType):
        raise SignatureError(
            f"{where} is {type_}, not a memref; read the signature after buffers are planned"
        )
    if (
        not type_.has_static_shape
        or not isinstance(type_.layout, ir.AffineMapAttr)
        or not _is_identity(type_)
    ):
        raise SignatureError(
            f"{where} is {type_}; bare pointers need a static shape and the identity layout"
        )
    dtype = _DTYPES.get(str(type_.element_type))
    if dtype is None:
        raise SignatureError(
            f"{where} has element type {type_.element_type}, which torch tensors do not have"
        )
    return Argument(role, tuple(type_.shape), dtype)


def _is_identity(type_: ir.MemRefType) -> bool:
    return type_.affine_map == ir.AffineMap.get_identity(type_.rank, type_.context)


def _check(main: FunctionSignature, prepare: FunctionSignature | None) -> None:
    prepared = [main.arguments[i] for i in main.slots("prepared")]
    produced = [prepare.arguments[i] for i in prepare.slots("output")] if prepare else []
    shapes = [(a.shape, a.dtype) for a in prepared]
    if shapes != [(a.shape, a.dtype) for a in produced]:
        raise SignatureError(
            f"@prepare makes {len(produced)} values and @main takes {len(prepared)} prepared ones "
            "of other types"
        )
    given = len(main.slots("parameter"))
    if prepare and len(prepare.slots("parameter")) != given:
        taken = len(prepare.slots("parameter"))
        raise SignatureError(f"@prepare takes {taken} parameters and @main {given}")
