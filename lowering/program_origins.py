"""Where a number of the user's program comes from: calls in the text of the program that make it.

What Dynamo traces is no secret, and neither are literals, sizes and attributes of objects. What is
left are calls that ran uncompiled.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

_SIZES = {"shape", "ndim", "dtype", "device", "size", "dim", "numel", "nelement", "stride"}
_PLAIN = {
    *("abs", "bool", "divmod", "enumerate", "float", "int", "isinstance", "len", "list", "max"),
    *("min", "range", "reversed", "round", "sorted", "str", "sum", "tuple", "type", "zip"),
}
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
Span = tuple[int | None, int | None, int | None, int | None]  # first and last line, columns


@dataclass(frozen=True)
class Site:
    """Where a function is. uncompiled: lines whose calls Dynamo did not trace, None for all."""

    file: str
    line: int
    span: Span = (None, None, None, None)
    uncompiled: Collection[int] | None = None


@dataclass(frozen=True)
class Origin:
    """A call at `lines` of a function that is at `around`."""

    file: str
    lines: range
    around: range


def origin_of(sites: Sequence[Site], expressions: Sequence[ast.expr]) -> Origin | None:
    """The uncompiled call that an expression at the first site depends on, if any; the other sites
    are those that called it, innermost first."""
    site, *callers = sites
    scope = _scope_at(site)
    if scope is None:
        return None
    used: set[str] = set()
    for expression in expressions:
        call = _origin(expression, _assignments(scope), site.uncompiled, used)
        if call is not None:
            return Origin(site.file, _lines(call), _lines(scope))
    outer = [one for one in callers if _scope_at(one) is not scope]
    parameters = used - set(_assignments(scope))
    if not outer or not parameters:
        return None
    return origin_of(outer, _arguments(outer[0], scope, _is_method(site, scope), parameters))


def variable(name: str) -> list[ast.expr]:
    return [ast.Name(name, ast.Load())]


def expressions_at(site: Site) -> list[ast.expr]:
    """Those that the site's call, operator or comparison takes, in order; of everything on its line
    where the text does not tell more."""
    return [one for node in _nodes_at(site, ast.AST) for one in _operands(node)]


def literals(expressions: Sequence[ast.expr]) -> list[object]:
    """Those that are written in them, and the same with a minus, which is an operator."""
    nodes = [node for one in expressions for node in ast.walk(one)]
    found = [node.value for node in nodes if isinstance(node, ast.Constant)]
    return [*found, *(-value for value in found if type(value) in (int, float))]


def _origin(
    expression: ast.expr,
    assignments: dict[str, list[ast.expr]],
    uncompiled: Collection[int] | None,
    seen: set[str],
) -> ast.Call | None:
    for node in _parts(expression):
        if isinstance(node, ast.Call) and not _is_plain(node):
            if uncompiled is None or any(line in uncompiled for line in _lines(node)):
                return node
        if isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            for assigned in assignments.get(node.id, ()):
                found = _origin(assigned, assignments, uncompiled, seen)
                if found is not None:
                    return found
    return None


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for what only sizes are taken of."""
    yield node
    if isinstance(node, ast.Attribute) and node.attr in _SIZES:
        return
    for child in ast.iter_child_nodes(node):
        yield from _parts(child)


def _is_plain(call: ast.Call) -> bool:
    """Whether its result is known if its arguments are."""
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr in _SIZES or getattr(function.value, "id", None) == "math"
    return isinstance(function, ast.Name) and function.id in _PLAIN


def _operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call):
        called = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        given = [a.value if isinstance(a, ast.Starred) else a for a in node.args]
        return [*called, *given, *(keyword.value for keyword in node.keywords)]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Subscript):
        return [node.value, node.slice]
    return []


def _nodes_at(site: Site, kind: type[ast.AST]) -> list[ast.AST]:
    tree = _tree(site.file)
    if tree is None:
        return []
    nodes = [node for node in ast.walk(tree) if isinstance(node, kind) and hasattr(node, "lineno")]
    exact = [node for node in nodes if _span(node) == site.span]
    return exact or [node for node in nodes if node.lineno <= site.line <= node.end_lineno]


def _arguments(
    caller: Site, function: Scope, is_method: bool, names: Collection[str]
) -> list[ast.expr]:
    """What the caller gives to these parameters. Sequences that it unpacks may be for any."""
    if isinstance(function, ast.Module):
        return []
    parameters = [*function.args.posonlyargs, *function.args.args]
    named = parameters[1:] if is_method else parameters
    found: list[ast.expr] = []
    for call in _nodes_at(caller, ast.Call):
        found += [given.value for given in call.args if isinstance(given, ast.Starred)]
        found += [given for parameter, given in zip(named, call.args) if parameter.arg in names]
        found += [k.value for k in call.keywords if k.arg is None or k.arg in names]
    return found


def _is_method(site: Site, function: Scope) -> bool:
    tree = _tree(site.file)
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return any(function in node.body for node in classes)


def _lines(node: ast.AST) -> range:
    if isinstance(node, ast.Module):
        return range(1 << 30)
    return range(_first_line(node), (node.end_lineno or node.lineno) + 1)


def _span(node: ast.AST) -> Span:
    return (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)


def _scope_at(site: Site) -> Scope | None:
    """The innermost function around the line, or the module."""
    tree = _tree(site.file)
    if tree is None:
        return None
    around = [
        node
        for node in ast.walk(tree)
        if isinstance(node, _SCOPES) and _first_line(node) <= site.line <= node.end_lineno
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def _first_line(node: ast.AST) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])


def _tree(file: str) -> ast.Module | None:
    return _parsed("".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=8)
def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text) if text else None
    except SyntaxError:
        return None


@functools.lru_cache(maxsize=64)
def _assignments(scope: Scope) -> dict[str, list[ast.expr]]:
    """Expressions that variables of the function get their values of."""
    found: dict[str, list[ast.expr]] = {}
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        if isinstance(node, _SCOPES):
            continue
        pending += ast.iter_child_nodes(node)
        for target, value in _assigned(node):
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                    found.setdefault(name.id, []).append(value)
    return found


def _assigned(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        return [pair for target in node.targets for pair in _unpacked(target, node.value)]
    if isinstance(node, (ast.AugAssign, ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
        return [(node.target, node.value)]
    if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
        return [(node.target, node.iter)]
    if isinstance(node, ast.withitem) and node.optional_vars is not None:
        return [(node.optional_vars, node.context_expr)]
    return []


def _unpacked(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Pairs, where both are written out."""
    targets, values = (getattr(one, "elts", None) for one in (target, value))
    if not targets or not values or len(targets) != len(values):
        return [(target, value)]
    if any(isinstance(one, ast.Starred) for one in (*targets, *values)):
        return [(target, value)]
    return [pair for pairs in map(_unpacked, targets, values) for pair in pairs]
