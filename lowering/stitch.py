"""One generated, readable Python function that calls the parts of a plan in order.

    def forward(args):
        (
            primals_1,  # parameter conv.weight: float32[8, 3, 3, 3]
            primals_2,  # argument x: float32[1, 3, 16, 16]
        ) = args
        args.clear()
        # NPU: convolution, relu; 338,688 MACs
        (relu,) = npu_0(primals_1, primals_2)
        del primals_1, primals_2
        # host, eager: bessel_j0
        (bessel_j0,) = host_0(relu)
        return (bessel_j0, relu)

Values have the names of their FX nodes and are deleted after their last use. The function is boxed:
it empties the list it is given, so that nothing keeps an input alive longer than needed.
"""

from __future__ import annotations

import itertools
import keyword
import linecache
import textwrap
import weakref
from collections.abc import Callable, Iterable, Mapping

from mlir_npu.lowering.plan import Part, PartitionPlan

WIDTH = 100

_numbers = itertools.count()


def stitched_source(
    plan: PartitionPlan, name: str = "forward", comments: Mapping[str, str] | None = None
) -> str:
    """Source text of the function. It refers to the parts by their names.

    comments: what to say about placeholders and parts, by name.
    """
    return _Writer(plan, comments or {}).write(name)


def stitch(plan: PartitionPlan, parts: Mapping[str, Callable], source: str) -> Callable:
    """The function of `source`, with `parts` as its globals. Tracebacks show its lines."""
    file_name = f"<mlir_npu stitched {next(_numbers)}>"
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    namespace = dict(parts)
    exec(compile(source, file_name, "exec"), namespace)
    function = namespace[source.partition("(")[0].removeprefix("def ")]
    function._boxed_call = True  # AOTAutograd's mark for functions that take a list and empty it
    weakref.finalize(function, linecache.cache.pop, file_name, None)
    return function


class _Writer:
    """Writes one function line by line."""

    def __init__(self, plan: PartitionPlan, comments: Mapping[str, str]) -> None:
        self._plan, self._comments = plan, comments
        self._last_use = _last_uses(plan)
        self._names = _identifiers(plan)

    def write(self, name: str) -> str:
        plan = self._plan
        lines = [f"def {name}(args):", *self._arguments(), "    args.clear()"]
        lines += self._deletions(plan.placeholders, -1)
        for step, part in enumerate(plan.parts):
            if part.name in self._comments:
                lines.append(f"    # {self._comments[part.name]}")
            lines += self._call(part)
            if step < len(plan.parts) - 1:  # returning deletes what is left
                lines += self._deletions((*dict.fromkeys(part.inputs), *part.outputs), step)
        comma = "," if len(plan.results) == 1 else ""
        lines += fit_lines("    return (", ", ".join(map(self._name, plan.results)) + comma, ")")
        return "\n".join(lines) + "\n"

    def _arguments(self) -> list[str]:
        names = self._plan.placeholders
        if not any(name in self._comments for name in names):
            return self._assign(names, "args") if names else []
        inputs = [
            f"        {self._name(name)},  # {self._comments.get(name, '')}".rstrip(" #")
            for name in names
        ]
        return ["    (", *inputs, "    ) = args"]

    def _deletions(self, names: Iterable[str], step: int) -> list[str]:
        dead = [self._name(name) for name in names if self._last_use[name] == step]
        if not dead:
            return []
        line = f"    del {', '.join(dead)}"
        return [line] if len(line) <= WIDTH else fit_lines("    del (", ", ".join(dead), ")")

    def _call(self, part: Part) -> list[str]:
        arguments = ", ".join(map(self._name, part.inputs))
        if part.outputs:
            return self._assign(part.outputs, f"{part.name}(", arguments, ")")
        return fit_lines(f"    {part.name}(", arguments, ")")

    def _assign(
        self, names: tuple[str, ...], head: str, text: str = "", tail: str = ""
    ) -> list[str]:
        """`names = head text tail`."""
        target = ", ".join(map(self._name, names)) + ("," if len(names) == 1 else "")
        if len(target) > WIDTH // 2:
            left = fit_lines("    (", target, ") = " + head, fits=False)
        else:
            left = [f"    {target if len(names) > 1 else f'({target})'} = {head}"]
        return [*left[:-1], *fit_lines(left[-1], text, tail)]

    def _name(self, value: str | int | float | bool | None) -> str:
        return self._names[value] if isinstance(value, str) else repr(value)


def _identifiers(plan: PartitionPlan) -> dict[str, str]:
    """Variable for each value: its own name, unless Python or a part has taken that."""
    values = dict.fromkeys(plan.placeholders)
    for part in plan.parts:
        values |= dict.fromkeys(part.outputs)
    taken = {part.name for part in plan.parts} | {"args"} | set(keyword.kwlist)
    names = {value: value for value in values if value not in taken}
    for value in values.keys() - names.keys():
        name = f"{value}_"
        while name in taken or name in values or name in names.values():
            name += "_"
        names[value] = name
    return names


def fit_lines(head: str, text: str, tail: str, fits: bool = True) -> list[str]:
    """head + text + tail on one line, or the text on lines of its own between the two."""
    line = f"{head}{text}{tail}"
    if fits and len(line) <= WIDTH:
        return [line]
    margin = " " * (len(head) - len(head.lstrip()))
    inner = margin + "    "
    wrapped = textwrap.wrap(text, WIDTH, initial_indent=inner, subsequent_indent=inner)
    return [head, *wrapped, f"{margin}{tail}"]


def _last_uses(plan: PartitionPlan) -> dict[str, int]:
    """Value -> index of the part after which it is dead; results never die."""
    last = dict.fromkeys(plan.placeholders, -1)
    for step, part in enumerate(plan.parts):
        last |= dict.fromkeys((*part.inputs, *part.outputs), step)
    return last | {name: len(plan.parts) for name in plan.results if isinstance(name, str)}
