"""npu-opt: run passes on MLIR text, like mlir-opt, with the npu dialect and its passes."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from mlir_npu.dialect.target import TargetError, available_targets, load_target
from mlir_npu.passes.opt_driver import OptOptions, process_chunk, split_chunks, stage_range
from mlir_npu.passes.pipeline_text import PipelineError
from mlir_npu.passes.registry import all_passes


def main(arguments: list[str] | None = None) -> int:
    """Entry point; returns the exit code: 0, 1 after a diagnostic, 2 for wrong arguments."""
    parsed = _parser().parse_args(arguments)
    if parsed.list_passes:
        _list_passes()
        return 0
    try:
        code = _run(parsed)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # whoever reads our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, UnicodeDecodeError, PipelineError, TargetError) as error:
        print(f"npu-opt: error: {error}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="npu-opt", description=__doc__)
    parser.add_argument("file", nargs="?", default="-", help="MLIR text; - reads standard input")
    parser.add_argument("-o", dest="output", default="-", help="where to write the result")
    parser.add_argument(
        "--pass-pipeline", help="such as 'builtin.module(convert-layout,func.func(cse))'"
    )
    parser.add_argument(
        "--stages",
        metavar="FIRST..LAST",
        help="run stages of the compiler with their checks, such as 'normalise..tile' or '..'",
    )
    parser.add_argument(
        "--target",
        help=f"{', '.join(available_targets())} or a .toml file; for modules without npu.target",
    )
    parser.add_argument(
        "--split-input-file", action="store_true", help="treat // ----- as file borders"
    )
    parser.add_argument(
        "--verify-diagnostics", action="store_true", help="check expected-error comments"
    )
    parser.add_argument(
        "--mlir-print-ir-after-all", action="store_true", help="print after every pass"
    )
    parser.add_argument(
        "--mlir-print-op-generic", action="store_true", help="print the generic form"
    )
    parser.add_argument(
        "--list-passes", action="store_true", help="list the passes of this project"
    )
    return parser


def _run(parsed: argparse.Namespace) -> int:
    text = sys.stdin.read() if parsed.file == "-" else Path(parsed.file).read_text()
    options = OptOptions(
        pipeline=parsed.pass_pipeline,
        stages=stage_range(parsed.stages) if parsed.stages else None,
        target=load_target(parsed.target) if parsed.target else None,
        print_after_all=parsed.mlir_print_ir_after_all,
        verify_diagnostics=parsed.verify_diagnostics,
        generic=parsed.mlir_print_op_generic,
    )
    chunks = split_chunks(text) if parsed.split_input_file else [text]
    results = [process_chunk(chunk, options, parsed.file) for chunk in chunks]
    problems = [problem for result in results for problem in result.problems]
    for problem in problems:
        print(problem, file=sys.stderr)
    outputs = [result.output.rstrip("\n") + "\n" for result in results if result.output is not None]
    if outputs:
        _write(parsed.output, "// -----\n".join(outputs))
    return 1 if problems else 0


def _write(where: str, text: str) -> None:
    if where == "-":
        sys.stdout.write(text)
    else:
        Path(where).write_text(text)


def _list_passes() -> None:
    for entry in all_passes().values():
        print(f"  {entry.name:28} {entry.summary}")


if __name__ == "__main__":
    sys.exit(main())
