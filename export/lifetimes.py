"""When the memory of a unit's own values is not needed any more."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from mlir_npu.export.plan_steps import Add, Call, Check, Copy, Host, Step, View, Zero
from mlir_npu.export.values import Values


def frees(
    steps: Sequence[Step], own: Set[str], kept: Set[str], values: Values
) -> tuple[tuple[str, ...], ...]:
    """For every step, the values of `own` that own memory and are used for the last time, directly
    or through a view. What is in `kept` stays, and what the steps do not make."""
    held = {_owner(name, values) for name in kept}
    last: dict[str, int] = {}
    for index, step in enumerate(steps):
        for name in touched(step):
            last[_owner(name, values)] = index
    made = {_owner(name, values) for step in steps for name in written(step)}
    dead: list[list[str]] = [[] for _ in steps]
    for name, index in last.items():
        if name in own and name in made and name not in held:
            dead[index].append(name)
    return tuple(map(tuple, dead))


def touched(step: Step) -> Iterable[str]:
    """Values that a step reads, writes or looks at."""
    match step:
        case Call():
            return [slot.value for slot in step.slots if slot.value is not None]
        case Copy() | Add():
            return [step.source, step.target]
        case View() | Zero() | Check():
            return [step.value]
        case Host():
            return [*step.reads, *step.writes]
    return []


def written(step: Step) -> Iterable[str]:
    match step:
        case Call() | Host():
            return step.writes
        case Copy() | Add():
            return [step.target]
        case Zero():
            return [step.value]
    return []


def _owner(name: str, values: Values) -> str:
    value = values[name]
    return value.base or value.name
