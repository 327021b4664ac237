"""One generated, readable Python function that calls the parts of a plan in order.

    def forward(args):
        primals_1, primals_2 = args
        args.clear()
        (relu,) = npu_0(primals_1, primals_2)
        del primals_2
        (sin,) = host_0(relu)
        return (sin, relu)

Values have the names of their FX nodes and are deleted after their last use. The function is boxed: it
empties the list it is given, so that nothing keeps an input alive longer than needed.
"""

from __future__ import annotations

import itertools
import keyword
import linecache
from collections.abc import Callable, Mapping

from mlir_npu.lowering.plan import PartitionPlan

_numbers = itertools.count()


def stitched_source(plan: PartitionPlan, name: str = "forward") -> str:
    """Source text of the function. It refers to the parts by their names."""
    last_use = _last_uses(plan)
    lines = [f"def {name}(args):"]
    if plan.placeholders:
        lines.append(f"    {_target(plan.placeholders)} = args")
    lines.append("    args.clear()")
    lines += _deletions(plan.placeholders, last_use, -1)
    for step, part in enumerate(plan.parts):
        call = f"{part.name}({_names(part.inputs)})"
        lines.append(f"    {_target(part.outputs)} = {call}" if part.outputs else f"    {call}")
        lines += _deletions((*dict.fromkeys(part.inputs), *part.outputs), last_use, step)
    lines.append(f"    return {_tuple([_result(value) for value in plan.results])}")
    return "\n".join(lines) + "\n"


def stitch(plan: PartitionPlan, parts: Mapping[str, Callable], source: str) -> Callable:
    """The function of `source`, with `parts` as its globals. Tracebacks show its lines."""
    file_name = f"<mlir_npu stitched {next(_numbers)}>"
    linecache.cache[file_name] = (len(source), None, source.splitlines(keepends=True), file_name)
    namespace = dict(parts)
    exec(compile(source, file_name, "exec"), namespace)
    function = namespace[source.partition("(")[0].removeprefix("def ")]
    function._boxed_call = True  # AOTAutograd's mark for functions that take a list and empty it
    return function


def _last_uses(plan: PartitionPlan) -> dict[str, int]:
    """Value -> index of the part after which it is dead; results never die."""
    last = {name: -1 for name in plan.placeholders}
    for step, part in enumerate(plan.parts):
        last |= {name: step for name in (*part.inputs, *part.outputs)}
    return last | {name: len(plan.parts) for name in plan.results if isinstance(name, str)}


def _deletions(names: tuple[str, ...], last_use: dict[str, int], step: int) -> list[str]:
    dead = [name for name in names if last_use[name] == step]
    return [f"    del {_names(dead)}"] if dead else []


def _names(names) -> str:
    return ", ".join(map(_identifier, names))


def _target(names: tuple[str, ...]) -> str:
    return _names(names) if len(names) > 1 else _tuple([_names(names)])


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


def _identifier(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def _result(value: str | int | float | bool | None) -> str:
    return _identifier(value) if isinstance(value, str) else f"{value!r}"
