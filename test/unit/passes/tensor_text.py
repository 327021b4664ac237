"""Functions on tensors under construction, as text in the form that the importer produces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Shape = tuple[int, ...]


def tensor_type(shape: Sequence[int]) -> str:
    return f"tensor<{''.join(f'{d}x' for d in shape)}f32>"


def loops(rank: int) -> str:
    return ", ".join(f"d{i}" for i in range(rank))


def affine(rank: int, results: str) -> str:
    return f"affine_map<({loops(rank)}) -> ({results})>"


@dataclass
class Program:
    """A function @main under construction. Values are (name, shape)."""

    lines: list[str] = field(default_factory=list)
    arguments: list[tuple[str, Shape, str]] = field(default_factory=list)
    contractions: int = 0
    count: int = 0

    def argument(self, shape: Shape, role: str) -> tuple[str, Shape]:
        name = f"%a{len(self.arguments)}"
        self.arguments.append((name, tuple(shape), role))
        return name, tuple(shape)

    def emit(self, line: str, shape: Shape) -> tuple[str, Shape]:
        self.count += 1
        name = f"%v{self.count}"
        self.lines.append(f"{name} = {line}")
        return name, tuple(shape)

    def empty(self, shape: Shape) -> str:
        return self.emit(f"tensor.empty() : {tensor_type(shape)}", shape)[0]

    def filled(self, shape: Shape, scalar: str) -> str:
        type_ = tensor_type(shape)
        fill = f"linalg.fill ins({scalar} : f32) outs({self.empty(shape)} : {type_}) -> {type_}"
        return self.emit(fill, shape)[0]

    def structured(self, op: str, inputs, init: str, shape: Shape) -> tuple[str, Shape]:
        names = ", ".join(name for name, _ in inputs)
        types = ", ".join(tensor_type(s) for _, s in inputs)
        out = tensor_type(shape)
        return self.emit(f"{op} ins({names} : {types}) outs({init} : {out}) -> {out}", shape)

    def generic(
        self, inputs, maps: Sequence[str], kinds: Sequence[str], init: str, shape, body: str
    ):
        names = ", ".join(name for name, _ in inputs)
        types = ", ".join(tensor_type(s) for _, s in inputs)
        out = tensor_type(shape)
        arguments = ", ".join([*(f"%i{n}: f32" for n in range(len(inputs))), "%o: f32"])
        kinds = ", ".join(f'"{kind}"' for kind in kinds)
        return self.emit(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], iterator_types = [{kinds}]}} "
            f"ins({names} : {types}) outs({init} : {out}) {{\n"
            f"^bb0({arguments}):\n{body}\n}} -> {out}",
            shape,
        )

    def collapsed(self, value, groups: Sequence[Sequence[int]], shape: Shape) -> tuple[str, Shape]:
        types = f"{tensor_type(value[1])} into {tensor_type(shape)}"
        return self.emit(f"tensor.collapse_shape {value[0]} {groups} : {types}", shape)

    def expanded(self, value, groups: Sequence[Sequence[int]], shape: Shape) -> tuple[str, Shape]:
        types = f"{tensor_type(value[1])} into {tensor_type(shape)}"
        line = f"tensor.expand_shape {value[0]} {groups} output_shape {list(shape)} : {types}"
        return self.emit(line, shape)

    def elementwise(self, inputs, maps: Sequence[str], body: str) -> tuple[str, Shape]:
        shape = inputs[0][1]
        kinds = ["parallel"] * len(shape)
        whole = affine(len(shape), loops(len(shape)))
        return self.generic(inputs, [whole, *maps, whole], kinds, self.empty(shape), shape, body)

    def text(self, results: Sequence[tuple[str, Shape]]) -> str:
        arguments = ", ".join(
            f'{n}: {tensor_type(s)} {{npu.role = "{r}"}}' for n, s, r in self.arguments
        )
        types = ", ".join(tensor_type(s) for _, s in results)
        names = ", ".join(name for name, _ in results)
        body = "\n".join(self.lines)
        return (
            f"func.func @main({arguments}) -> ({types}) {{\n"
            "%zero = arith.constant 0.0 : f32\n%three = arith.constant 3.0 : f32\n"
            f"%lowest = arith.constant 0xFF800000 : f32\n{body}\nreturn {names} : {types}\n}}\n"
        )
