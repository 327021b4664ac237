"""Traced graph of a region -> text of a module in the torch dialect.

Written without MLIR, so that the process of the program needs none, and read by one that needs no
torch: either takes seconds to load.

Before: relu(add(x, 1.0)), traced
After:
    #l0 = loc("model.py":3:0)
    #l1 = loc("aten.add.Scalar"(#l0))
    func.func @main(%0: !torch.vtensor<[2,3],f32> loc(unknown)) -> !torch.vtensor<[2,3],f32> {
      %1 = "torch.constant.float"() <{value = 0x3FF0000000000000 : f64}> : () -> !torch.float ...
      %3 = "torch.aten.add.Scalar"(%0, %1, %2) : (...) -> !torch.vtensor<[2,3],f32> loc(#l1)
      ...
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import fx

from mlir_npu.lowering.import_apart import TorchText
from mlir_npu.lowering.import_error import RegionImportError
from mlir_npu.lowering.source_location import source_location
from mlir_npu.lowering.torch_locations import Locations
from mlir_npu.lowering.torch_spelling import IGNORED, spelling
from mlir_npu.lowering.torch_types import constant, list_of, literal, type_of, vtensor


@dataclass(frozen=True)
class _Value:
    name: str
    type: str


def write_graph(graph_module: fx.GraphModule) -> TorchText:
    """A module with one function, @main, that takes the graph's placeholders and returns what it
    returns. The graph: calls of ATen, with values in `meta`, and tensors of one element at most.
    Raises RegionImportError for a call, type or constant that torch-mlir does not have."""
    return _Writer(graph_module).module()


class _Writer:
    def __init__(self, graph_module: fx.GraphModule) -> None:
        self._graph_module = graph_module
        self._locations = Locations()
        self._lines: list[str] = []
        self._values: dict[fx.Node, _Value] = {}
        self._several: dict[fx.Node, list[_Value]] = {}  # results of calls with several
        self._operators: dict[str, str | None] = {}
        self._count = 0

    def module(self) -> TorchText:
        graph = self._graph_module.graph
        whole = self._locations.of_first(graph)
        arguments = [self._argument(node, whole) for node in graph.find_nodes(op="placeholder")]
        for node in (node for node in graph.nodes if node.op == "call_function"):
            try:
                self._call(node)
            except _Unsupported as error:
                raise RegionImportError(
                    f"{node.target}: {error}",
                    operators=(str(node.target),),
                    location=source_location(node),
                ) from error
        returned = self._return(graph.output_node())
        results = ", ".join(value.type for value in returned)
        head = f"func.func @main({', '.join(arguments)}) -> ({results}) {{"
        lines = [*self._locations.lines, head, *self._lines, f"}} {whole}"]
        return TorchText("\n".join(lines), self._operators)

    def _argument(self, node: fx.Node, where: str) -> str:
        value = self._values[node] = _Value(self._name(), _result_type(node.meta.get("val")))
        return f"{value.name}: {value.type} {where}"

    def _return(self, node: fx.Node) -> list[_Value]:
        given = node.args[0] if isinstance(node.args[0], (tuple, list)) else (node.args[0],)
        where = self._locations.of(node)
        returned = [self._operand(one, None, where) for one in given]
        names = ", ".join(value.name for value in returned)
        types = ", ".join(value.type for value in returned)
        self._lines.append(f'"func.return"({names}) : ({types}) -> () {where}')
        return returned

    def _call(self, node: fx.Node) -> None:
        where = self._locations.of(node)
        if node.target is operator.getitem:
            self._item(node, where)
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise _Unsupported("it is no call of ATen")
        if node.target in IGNORED:
            return
        schema = spelling(node)._schema
        operands = self._operands(node, schema, where)
        name = f"torch.{schema.name.replace('::', '.')}"
        name = f"{name}.{schema.overload_name}" if schema.overload_name else name
        if name not in self._operators:
            self._operators[name] = self._locations.line(node)
        val = node.meta.get("val")
        several = len(schema.returns) > 1
        types = [_result_type(one) for one in (val if several else [val][: len(schema.returns)])]
        results = self._operation(name, operands, types, where)
        if several:
            self._several[node] = results
        elif results:
            self._values[node] = results[0]

    def _operands(self, node: fx.Node, schema: torch.FunctionSchema, where: str) -> list[_Value]:
        """One for every parameter of the schema, with defaults where the call gives none."""
        operands = []
        for position, parameter in enumerate(schema.arguments):
            if position < len(node.args):
                given = node.args[position]
            elif parameter.name in node.kwargs:
                given = node.kwargs[parameter.name]
            else:
                operands.append(self._default(parameter.default_value, parameter.type, where))
                continue
            operands.append(self._operand(given, parameter.type, where))
        return operands

    def _item(self, node: fx.Node, where: str) -> None:
        """Of a call with several results, or of one that returns a list."""
        whole, index = node.args
        if whole not in self._several:
            types = [_result_type(one) for one in whole.meta["val"]]
            operands = [self._values[whole]]
            unpacked = self._operation("torch.prim.ListUnpack", operands, types, where)
            self._several[whole] = unpacked
        self._values[node] = self._several[whole][index]

    def _operand(self, given: object, type_: torch.JitType | None, where: str) -> _Value:
        if isinstance(given, fx.Node):
            value = self._node(given, where)
        elif isinstance(given, (list, tuple)):
            return self._list(given, type_, where)
        elif isinstance(type_, torch.TensorType) and not isinstance(given, torch.Tensor):
            return self._number_as_tensor(given, where)
        else:
            value = self._literal(given, where)
        return self._converted(value, type_, where)

    def _default(self, given: object, type_: torch.JitType, where: str) -> _Value:
        if isinstance(given, list):
            return self._list(given, type_, where)
        return self._literal(given, where)

    def _node(self, node: fx.Node, where: str) -> _Value:
        if node.op == "get_attr" and node not in self._values:
            held = operator.attrgetter(node.target)(self._graph_module)
            self._values[node] = self._tensor(held, where)
        if node not in self._values:
            raise _Unsupported(f"{node} has no value of its own")
        return self._values[node]

    def _list(self, given: Sequence, type_: torch.JitType | None, where: str) -> _Value:
        element, whole = list_of(type_) or _refuse(f"the list {given}")
        operands = []
        for one in given:
            value = self._node(one, where) if isinstance(one, fx.Node) else None
            if value is None:
                if one is not None and type(one) is not element:
                    raise _Unsupported(f"the list {given}, of several types")
                value = self._literal(one, where)
            operands.append(value)
        return self._operation("torch.prim.ListConstruct", operands, [whole], where)[0]

    def _number_as_tensor(self, number: object, where: str) -> _Value:
        type_ = vtensor((), torch.tensor(number).dtype) or _refuse(repr(number))
        operands = [self._literal(number, where)]
        return self._operation("torch.prim.NumToTensor.Scalar", operands, [type_], where)[0]

    def _literal(self, given: object, where: str) -> _Value:
        if isinstance(given, torch.Tensor):
            return self._tensor(given, where)
        what, attribute, type_ = constant(given) or _refuse(f"the {type(given).__name__} {given}")
        value = f" <{{value = {attribute}}}>" if attribute else ""
        return self._operation(f"torch.constant.{what}", [], [type_], where, value)[0]

    def _tensor(self, tensor: torch.Tensor, where: str) -> _Value:
        """A constant; booleans are made of bytes."""
        plain = tensor.to(torch.uint8) if tensor.dtype is torch.bool else tensor
        attribute = literal(plain) or _refuse(f"a constant of {tensor.dtype}")
        type_ = vtensor(plain.shape, plain.dtype)
        value = f" <{{value = {attribute}}}>"
        made = self._operation("torch.vtensor.literal", [], [type_], where, value)[0]
        if plain is tensor:
            return made
        operands = [made, self._literal(tensor.dtype, where)]
        type_ = vtensor(tensor.shape, tensor.dtype)
        return self._operation("torch.prims.convert_element_type", operands, [type_], where)[0]

    def _converted(self, value: _Value, type_: torch.JitType | None, where: str) -> _Value:
        """A truth value where a number is wanted."""
        if value.type != "!torch.bool":
            return value
        if isinstance(type_, torch.FloatType):
            return self._operation("torch.aten.Float.bool", [value], ["!torch.float"], where)[0]
        if isinstance(type_, (torch.IntType, torch.NumberType)):
            return self._operation("torch.aten.Int.bool", [value], ["!torch.int"], where)[0]
        return value

    def _operation(
        self, name: str, operands: list[_Value], types: list[str], where: str, attributes: str = ""
    ) -> list[_Value]:
        results = [_Value(self._name(), type_) for type_ in types]
        made = ", ".join(value.name for value in results)
        taken = ", ".join(value.name for value in operands)
        type_ = f"({', '.join(value.type for value in operands)}) -> ({', '.join(types)})"
        equals = " = " if results else ""
        self._lines.append(f'{made}{equals}"{name}"({taken}){attributes} : {type_} {where}')
        return results

    def _name(self) -> str:
        self._count += 1
        return f"%{self._count - 1}"


class _Unsupported(Exception):
    """Of what is written here; the message is what."""


def _refuse(what: str) -> object:
    raise _Unsupported(f"torch-mlir cannot import {what}")


def _result_type(value: object) -> str:
    return type_of(value) or _refuse(f"a value of type {type(value).__name__}")
