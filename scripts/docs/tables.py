"""Tables of the guides: options, supported ops, a target file, stages, passes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from importlib import resources


def options() -> str:
    """A row for each field of Options; its text is the comment above the field."""
    from mlir_npu import Options

    source = inspect.getsource(Options)
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for field in fields(Options):
        comment = re.search(rf"((?:^ *#.*\n)+) *{field.name}:", source, re.MULTILINE)
        text = " ".join(line.strip(" #") for line in comment.group(1).splitlines())
        rows.append(f"| `{field.name}` | `{field.default!r}` | {text} |")
    return "\n".join(rows)


def support() -> str:
    """A row for each support rule: the ops it covers, and its docstring."""
    from mlir_npu.lowering.support import all_rules

    rules: dict[Callable, list[str]] = {}
    for overload, rule in all_rules().items():
        name = overload.split(".")[1].removeprefix("_")
        rules.setdefault(rule, [])
        if name not in rules[rule]:
            rules[rule].append(name)
    rows = ["| ATen ops | supported |", "|---|---|"]
    for rule, names in rules.items():
        listed = ", ".join(f"`{name}`" for name in names)
        rows.append(f"| {listed} | {' '.join(inspect.getdoc(rule).split())} |")
    return "\n".join(rows)


def edge_target() -> str:
    file = resources.files("mlir_npu.dialect.targets") / "edge.toml"
    return f"```toml\n{file.read_text().strip()}\n```"


def stages() -> str:
    """A row for each stage: its passes, ours in bold."""
    from mlir_npu.passes.pipelines import STAGES
    from mlir_npu.passes.registry import all_passes

    ours = all_passes()
    rows = ["| stage | passes (**ours**, upstream's) |", "|---|---|"]
    for stage in STAGES:
        names = [name.split("{")[0] for name in stage.passes]
        listed = ", ".join(f"**{name}**" if name in ours else name for name in names)
        rows.append(f"| {stage.name} | {listed} |")
    return "\n".join(rows)


def passes() -> str:
    from mlir_npu.passes.registry import all_passes

    rows = ["| pass | what it does |", "|---|---|"]
    rows += [f"| `{entry.name}` | {entry.summary} |" for entry in all_passes().values()]
    return "\n".join(rows)
