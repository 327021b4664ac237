"""What npu-opt does with one input: parse, set the target, run passes, print, compare diagnostics.

Every chunk runs in a fresh context. Nothing is printed for a chunk that failed.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import ATTRIBUTE_NAME, Target, set_target
from mlir_npu.passes.diagnostics import Diagnostic, as_diagnostics
from mlir_npu.passes.pass_manager import PipelineFailure, run_pipeline
from mlir_npu.passes.pipeline_text import PipelineError

SEVERITIES = ("error", "note")
SPLIT_MARKER = re.compile(r"(?m)^// -----[^\n]*\n")
_EXPECTATION = re.compile(
    r"//\s*expected-([\w-]+)\s*(?:@(?:(below|above)|([+-]\d+)))?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class OptOptions:
    """What to do with every chunk.

    pipeline: text, or None; stages: the first and the last stage to run with their checks, or None;
    target: written into modules that have none.
    """

    pipeline: str | None = None
    stages: tuple[str, str] | None = None
    target: Target | None = None
    print_after_all: bool = False
    verify_diagnostics: bool = False
    generic: bool = False


@dataclass
class ChunkResult:
    """output: the printed module, None after a failure; problems: what makes the tool fail."""

    output: str | None = None
    problems: list[str] = field(default_factory=list)


def split_chunks(text: str) -> list[str]:
    """Chunks between `// -----` lines, each padded so that line numbers stay those of the file."""
    chunks, line = [], 0
    for chunk in SPLIT_MARKER.split(text):
        chunks.append("\n" * line + chunk)
        line += chunk.count("\n") + 1
    return chunks


def process_chunk(text: str, options: OptOptions, file_name: str = "-") -> ChunkResult:
    """Run the pipeline on one chunk."""
    with make_context() as context, ir.Location.unknown():
        output, diagnostics = _parse_and_run(text, options, context)
    if options.verify_diagnostics:
        return ChunkResult(output, compare_diagnostics(text, diagnostics, file_name))
    errors = [_show(diagnostic, file_name) for diagnostic in diagnostics]
    return ChunkResult(output, errors)


def _parse_and_run(
    text: str, options: OptOptions, context: ir.Context
) -> tuple[str | None, list[Diagnostic]]:
    try:
        module = ir.Module.parse(text)
    except ir.MLIRError as error:
        return None, as_diagnostics(error)
    if options.target is not None and ATTRIBUTE_NAME not in module.operation.attributes:
        set_target(module.operation, options.target)
    diagnostics = _run(module, options)
    if diagnostics:
        return None, diagnostics
    return module.operation.get_asm(print_generic_op_form=options.generic), []


def _run(module: ir.Module, options: OptOptions) -> list[Diagnostic]:
    """What went wrong; empty after success."""
    after_each = _print_after if options.print_after_all else None
    try:
        if options.pipeline is not None:
            run_pipeline(module, options.pipeline, after_each=after_each)
    except PipelineFailure as failure:
        return failure.diagnostics
    if options.stages is None:
        return []
    from mlir_npu.passes.run_stages import StageFailure, run_stages  # most runs need no stage

    first, last = options.stages
    try:
        run_stages(module, on_stage=after_each, first=first, last=last)
    except StageFailure as failure:
        return list(failure.diagnostics)
    return []


def compare_diagnostics(text: str, diagnostics: list[Diagnostic], file_name: str) -> list[str]:
    """Differences between `expected-error {{...}}` comments and what was emitted."""
    wanted = expectations(text)
    problems = [
        f"{file_name}:{line}: expected-{severity} is not one of {', '.join(SEVERITIES)}"
        for line, severity, _ in wanted
        if severity not in SEVERITIES
    ]
    for diagnostic in diagnostics:
        match = next((w for w in wanted if _matches(w, diagnostic)), None)
        if match is not None:
            wanted.remove(match)
        elif diagnostic.severity == "error":
            problems.append("unexpected " + _show(diagnostic, file_name))
    for line, severity, message in (w for w in wanted if w[1] in SEVERITIES):
        problems.append(f"{file_name}:{line}: expected {severity} '{message}' was not produced")
    return problems


def expectations(text: str) -> list[tuple[int, str, str]]:
    """(line, severity, message part) of every expectation comment."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for severity, direction, offset, message in _EXPECTATION.findall(line):
            shift = {"below": 1, "above": -1}.get(direction, int(offset or 0))
            found.append((number + shift, severity, message))
    return found


def _matches(expectation: tuple[int, str, str], diagnostic: Diagnostic) -> bool:
    line, severity, message = expectation
    return (
        severity == diagnostic.severity
        and line == diagnostic.line
        and message in diagnostic.message
    )


def _show(diagnostic: Diagnostic, file_name: str) -> str:
    return re.sub(r"^-(?=:\d+:\d+: )", lambda _: file_name, str(diagnostic))


def _print_after(pass_name: str, module: ir.Module) -> None:
    print(f"// -----// IR Dump After {pass_name} //----- //\n{module}", file=sys.stderr)


def stage_range(text: str) -> tuple[str, str]:
    """First and last stage of `tile`, `normalise..tile`, `..tile`, `tile..` or `..` (all).

    Raises PipelineError for a name that is no stage, and for a range that runs backwards.
    """
    from mlir_npu.passes.pipelines import stage_names

    names = stage_names()
    begin, dots, end = text.partition("..")
    first, last = begin or names[0], (end or names[-1]) if dots else begin
    for name in (first, last):
        if name not in names:
            raise PipelineError(f"no stage is called '{name}'; there are {', '.join(names)}")
    if names.index(first) > names.index(last):
        raise PipelineError(f"stage '{first}' comes after stage '{last}'")
    return first, last
