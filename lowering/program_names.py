"""Python identifiers for the values of a program, and words for what they are."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Iterable

from torch import fx

from mlir_npu.lowering.roles import readable
from mlir_npu.lowering.source_location import source_location


class Names:
    """Hands out names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {*keyword.kwlist, *taken}

    def new(self, wanted: str) -> str:
        stem = re.sub(r"\W+", "_", wanted).strip("_") or "value"
        stem = f"v{stem}" if stem[0].isdigit() else stem
        name, number = stem, 1
        while name in self._taken:
            number += 1
            name = f"{stem}_{number}"
        self._taken.add(name)
        return name


def describe_output(node: fx.Node) -> str:
    """ "output layer1.conv, model.py:12": the module and line that made a value."""
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    path = str(stack[-1][0]) if stack else ""
    path = readable(re.sub(r"^L\['fn'\]\.?", "", path))
    path = re.sub(r"^L\['\w+'\]\.?|^\w*self\.?", "", path)
    location = source_location(node)
    words = [f"output {path}" if path else f"output {node.name}"]
    if location is not None:
        words.append(os.path.basename(location))
    return ", ".join(words)
