"""Whether a line of the user's program does nothing but tell people something."""

from __future__ import annotations

import ast
import functools
import linecache

_TELLING = {"print", "pprint", "debug", "info", "warning", "warn", "error", "critical", "log"}


def only_tells(location: str | None) -> bool:
    """location: "file:line". True for `print(...)`, `logger.info(...)` and the like as statements,
    whose result nobody takes."""
    file, _, line = (location or "").rpartition(":")
    if not file:
        return False
    return int(line) in _telling_lines(file, "".join(linecache.getlines(file)))


@functools.lru_cache(maxsize=8)
def _telling_lines(file: str, text: str) -> frozenset[int]:
    try:
        tree = ast.parse(text, file)
    except SyntaxError:
        return frozenset()
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            callee = node.value.func
            name = getattr(callee, "id", getattr(callee, "attr", None))
            if name in _TELLING:
                found |= set(range(node.lineno, node.end_lineno + 1))
    return frozenset(found)
