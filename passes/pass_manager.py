"""Runs textual pipelines that mix our passes with upstream ones.

Upstream's PassManager cannot name Python passes, so the pipeline text is parsed here and each leaf
pass runs on its own: an upstream leaf through `PassManager.parse`, one of ours as a function call
followed by verification. Printing and failure reports treat both alike.
"""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Callable
from typing import Any

from mlir_npu.dialect.bindings import PassManager, ir
from mlir_npu.dialect.target import TargetError
from mlir_npu.passes.diagnostics import Diagnostic, as_diagnostics, collected_diagnostics
from mlir_npu.passes.option_parser import OptionError, parse_options
from mlir_npu.passes.pipeline_text import PipelineElement, PipelineError, parse_pipeline
from mlir_npu.passes.registry import Pass, PassFailure, all_passes, find_pass

_LOGGER = logging.getLogger("mlir_npu.passes")


class PipelineFailure(Exception):
    """A pass failed. The module is in an unspecified state afterwards.

    pass_name: the pass; diagnostics: what it said, in the order of emission, never empty.
    """

    def __init__(self, pass_name: str, diagnostics: list[Diagnostic]):
        self.pass_name = pass_name
        self.diagnostics = diagnostics
        errors = [str(one) for one in diagnostics if one.severity == "error"]
        super().__init__(f"pass '{pass_name}' failed: {'; '.join(errors)}")


def run_pipeline(
    module: ir.Module,
    pipeline: str,
    *,
    after_each: Callable[[str, ir.Module], None] | None = None,
    verify_each: bool = True,
) -> None:
    """Run `builtin.module(pass{options},func.func(pass),...)` on a module, in place.

    Names and options are checked before anything runs (PipelineError), and the module is verified
    after every pass, unless the caller does so in the end (verify_each). `after_each(pass_name,
    module)` is called after every leaf pass. Raises PipelineFailure.
    """
    with module.context, ir.Location.unknown():
        root = _checked(pipeline)
        _run(module, root.nested, (root.name,), after_each, verify_each)


@functools.lru_cache(maxsize=64)
def _checked(pipeline: str) -> PipelineElement:
    """Every kernel goes through the same ones."""
    root = parse_pipeline(pipeline)
    _check(root.nested, (root.name,))
    return root


def _check(elements: tuple[PipelineElement, ...], anchors: tuple[str, ...]) -> None:
    for element in elements:
        if element.nested is not None:
            _check(element.nested, (*anchors, element.name))
            continue
        ours = find_pass(element.name)
        try:
            if ours is not None:
                _options(ours, element)
            else:
                PassManager.parse(_anchored(element, anchors))
        except OptionError as error:
            raise PipelineError(str(error)) from None
        except ValueError as error:
            raise PipelineError(_explain_unknown(element.name, str(error))) from None


def _options(ours: Pass, element: PipelineElement) -> Any:
    return parse_options(ours.name, ours.options_class, element.options)


def _explain_unknown(name: str, upstream_message: str) -> str:
    near = difflib.get_close_matches(name, all_passes(), n=1)
    if "registered pass" in upstream_message and near:
        return f"no pass is called '{name}'; did you mean '{near[0]}'?"
    if "registered pass" in upstream_message:
        return f"no pass is called '{name}', neither ours (--list-passes) nor upstream's"
    return f"'{name}': {upstream_message}"


def _run(
    module: ir.Module,
    elements: tuple[PipelineElement, ...],
    anchors: tuple[str, ...],
    after_each: Callable[[str, ir.Module], None] | None,
    verify_each: bool,
) -> None:
    for element in elements:
        if element.nested is not None:
            _run(module, element.nested, (*anchors, element.name), after_each, verify_each)
            continue
        _run_leaf(module, element, anchors, verify_each)
        if after_each is not None:
            after_each(element.name, module)


def _run_leaf(
    module: ir.Module, element: PipelineElement, anchors: tuple[str, ...], verify: bool
) -> None:
    with collected_diagnostics(module.context) as diagnostics:
        try:
            _run_pass(module, element, anchors, verify)
        except (ir.MLIRError, PassFailure, TargetError) as error:
            raise PipelineFailure(element.name, diagnostics or as_diagnostics(error)) from error
    if any(diagnostic.severity == "error" for diagnostic in diagnostics):
        raise PipelineFailure(element.name, diagnostics)
    for diagnostic in diagnostics:
        _LOGGER.warning("%s: %s", element.name, diagnostic)


def _run_pass(
    module: ir.Module, element: PipelineElement, anchors: tuple[str, ...], verify: bool
) -> None:
    ours = find_pass(element.name)
    if ours is None:
        manager = PassManager.parse(_anchored(element, anchors))
        manager.enable_verifier(verify)
        manager.run(module.operation)
        return
    options = _options(ours, element)
    for anchor in _anchor_operations(module.operation, anchors[1:]):
        ours.function(anchor, options)
    if verify:
        module.operation.verify()


def _anchored(element: PipelineElement, anchors: tuple[str, ...]) -> str:
    text = element.name + (f"{{{element.options}}}" if element.options else "")
    for anchor in reversed(anchors):
        text = f"{anchor}({text})"
    return text


def _anchor_operations(root: ir.Operation, anchors: tuple[str, ...]) -> list[ir.Operation]:
    operations = [root]
    for anchor in anchors:
        operations = [
            child.operation
            for operation in operations
            for region in operation.regions
            for block in region.blocks
            for child in block.operations
            if child.operation.name == anchor
        ]
    return operations
