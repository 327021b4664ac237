"""Reads the signature of a module from `npu.role`, once all memory is planned."""

from __future__ import annotations

from mlir_npu.dialect.bindings import func, ir
from mlir_npu.runtime.signature import (
    ELEMENTS,
    ROLES,
    Argument,
    FunctionSignature,
    Signature,
    SignatureError,
)

NAMES = ("main", "prepare")


def read_signature(module: ir.Module) -> Signature:
    """Signature of @main and, if there is one, @prepare. Raises SignatureError naming the
    argument."""
    return Signature.of(read_functions(module))


def read_functions(module: ir.Module) -> tuple[FunctionSignature, ...]:
    """Of those two, the ones that are in the module. Raises SignatureError."""
    functions = [op for op in module.body.operations if isinstance(op, func.FuncOp)]
    named = [(ir.StringAttr(op.attributes["sym_name"]).value, op) for op in functions]
    return tuple(_read_function(name, op) for name, op in named if name in NAMES)


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
    element = str(type_.element_type)
    if element not in ELEMENTS:
        raise SignatureError(f"{where} has element type {element}, which torch tensors do not have")
    return Argument(role, tuple(type_.shape), element)


def _is_identity(type_: ir.MemRefType) -> bool:
    return type_.affine_map == ir.AffineMap.get_identity(type_.rank, type_.context)
