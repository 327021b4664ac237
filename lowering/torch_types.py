"""Types and constants of the torch dialect, as text."""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence

import torch

_ELEMENTS = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
    torch.float64: "f64",
    torch.uint8: "ui8",
    torch.uint32: "ui32",
    torch.int8: "si8",
    torch.int16: "si16",
    torch.int32: "si32",
    torch.int64: "si64",
    torch.bool: "i1",
    torch.complex32: "complex<f16>",
    torch.complex64: "complex<f32>",
    torch.complex128: "complex<f64>",
    torch.float8_e5m2: "f8E5M2",
    torch.float8_e4m3fn: "f8E4M3FN",
    torch.float8_e5m2fnuz: "f8E5M2FNUZ",
    torch.float8_e4m3fnuz: "f8E4M3FNUZ",
}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

# the numbers that ATen has for them
_DTYPES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex32: 8,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.float8_e5m2: 23,
    torch.float8_e4m3fn: 24,
    torch.float8_e5m2fnuz: 25,
    torch.float8_e4m3fnuz: 26,
    torch.uint32: 28,
}
_LAYOUTS = {torch.strided: 0}
_MEMORY_FORMATS = {
    torch.contiguous_format: 0,
    torch.preserve_format: 1,
    torch.channels_last: 2,
    torch.channels_last_3d: 3,
}
_SCALARS = {int: "int", float: "float", str: "str", bool: "bool", type(None): "none"}
_LISTED = {
    torch.IntType: int,
    torch.FloatType: float,
    torch.StringType: str,
    torch.BoolType: bool,
    torch.TensorType: torch.Tensor,
}


def vtensor(shape: Sequence[int], dtype: torch.dtype) -> str | None:
    """The type of a tensor, such as "!torch.vtensor<[2,3],f32>". None for dtypes that the dialect
    does not have, and for sizes that are no numbers."""
    element = _ELEMENTS.get(dtype)
    if element is None or any(not isinstance(extent, int) for extent in shape):
        return None
    return f"!torch.vtensor<[{','.join(map(str, shape))}],{element}>"


def type_of(value: object) -> str | None:
    """The type of what a node computes: a dense tensor, a list of tensors, a number, text or None.
    None for anything else."""
    if isinstance(value, torch.Tensor):
        plain = value.layout is torch.strided and not value.is_quantized
        return vtensor(value.shape, value.dtype) if plain else None
    if isinstance(value, list) and all(isinstance(one, torch.Tensor) for one in value):
        return "!torch.list<vtensor>"
    name = _SCALARS.get(type(value))
    return f"!torch.{name}" if name else None


def list_of(type_: torch.JitType | None) -> tuple[type, str] | None:
    """What a list holds that is given for a parameter of this type, and the type of the list: for
    `int[]?` int and "!torch.list<int>". None if the parameter takes no list, or one of others than
    numbers, text and tensors."""
    if isinstance(type_, torch.OptionalType):
        type_ = type_.getElementType()
    if not isinstance(type_, torch.ListType):
        return None
    element = type_.getElementType()
    optional = isinstance(element, torch.OptionalType)
    held = _LISTED.get(type(element.getElementType() if optional else element))
    if held is None:
        return None
    name = "vtensor" if held is torch.Tensor else _SCALARS[held]
    return held, f"!torch.list<{f'optional<{name}>' if optional else name}>"


def constant(given: object) -> tuple[str, str, str] | None:
    """Of an argument that is no tensor: `what` of its operation torch.constant.<what>, the
    attribute `value` ("" if it has none), and its type. Dtypes, layouts and memory formats are
    ATen's numbers for them. None for what no such operation makes."""
    for table in (_DTYPES, _LAYOUTS, _MEMORY_FORMATS):
        if type(given) is type(next(iter(table))):
            given = table.get(given, given)
    if given is None:
        return "none", "", "!torch.none"
    if isinstance(given, bool):
        return "bool", str(given).lower(), "!torch.bool"
    if isinstance(given, int):
        return "int", f"{int(given)} : i64", "!torch.int"
    if isinstance(given, float):
        (bits,) = struct.unpack("<Q", struct.pack("<d", given))
        return "float", f"0x{bits:016X} : f64", "!torch.float"
    if isinstance(given, str):
        return "str", quoted(given), "!torch.str"
    if isinstance(given, torch.device):
        return "device", quoted(str(given)), "!torch.Device"
    return None


def literal(tensor: torch.Tensor) -> str | None:
    """The attribute `dense<...>` of a tensor. None for more than one element, complex numbers and
    dtypes that the dialect does not have."""
    element = _ELEMENTS.get(tensor.dtype)
    if element is None or tensor.dtype.is_complex or tensor.numel() > 1:
        return None
    type_ = f"tensor<{''.join(f'{extent}x' for extent in tensor.shape)}{element}>"
    if tensor.numel() == 0:
        return f"dense<> : {type_}"
    if not tensor.dtype.is_floating_point:
        return f"dense<{tensor.item()}> : {type_}"
    size = tensor.dtype.itemsize
    bits = tensor.detach().reshape(1).view(_BITS[size]).item() % (1 << 8 * size)
    return f"dense<0x{bits:0{2 * size}X}> : {type_}"


@functools.lru_cache(maxsize=4096)
def quoted(text: str) -> str:
    """The text in quotes, with all but printable ASCII escaped."""
    plain = (chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in text.encode())
    return f'"{"".join(plain)}"'
