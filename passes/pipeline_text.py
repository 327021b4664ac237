"""Reads pipeline text such as `builtin.module(choose-tiles{buffers=2},func.func(cse))`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"\s*([\w.-]+)\s*")
_COMMA = re.compile(r"\s*,")
_SPACES = re.compile(r"\s*")


class PipelineError(ValueError):
    """The pipeline text is wrong: syntax, an unknown pass, an unknown option."""


@dataclass(frozen=True)
class PipelineElement:
    """One element of a pipeline: a pass with its option text, or an anchor with nested elements."""

    name: str
    options: str
    nested: tuple[PipelineElement, ...] | None


def parse_pipeline(text: str) -> PipelineElement:
    """The one anchored element that a pipeline consists of."""
    elements, position = _parse_elements(text, 0)
    if text[position:].strip():
        raise PipelineError(f"unexpected {text[position]!r} at position {position} of: {text}")
    if len(elements) != 1 or elements[0].nested is None or elements[0].name != "builtin.module":
        raise PipelineError(f"a pipeline has the form builtin.module(pass,...), got: {text}")
    return elements[0]


def _parse_elements(text: str, position: int) -> tuple[tuple[PipelineElement, ...], int]:
    elements: list[PipelineElement] = []
    while True:
        match = _NAME.match(text, position)
        if not match:
            raise PipelineError(f"expected a pass name at position {position} of: {text}")
        position, options, nested = match.end(), "", None
        if text[position : position + 1] == "{":
            options, position = _balanced_braces(text, position)
        elif text[position : position + 1] == "(":
            nested, position = _parse_elements(text, position + 1)
            if text[position : position + 1] != ")":
                raise PipelineError(f"expected ')' at position {position} of: {text}")
            position += 1
        elements.append(PipelineElement(match.group(1), options, nested))
        separator = _COMMA.match(text, position)
        if not separator:
            return tuple(elements), _SPACES.match(text, position).end()
        position = separator.end()


def _balanced_braces(text: str, start: int) -> tuple[str, int]:
    depth = 0
    for position in range(start, len(text)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return text[start + 1 : position], position + 1
    raise PipelineError(f"missing '}}' after position {start} of: {text}")
