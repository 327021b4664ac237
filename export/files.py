"""Writes an exported program into a directory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from importlib import resources
from pathlib import Path

from mlir_npu.export.collected import CompiledPart
from mlir_npu.export.header import header
from mlir_npu.export.part_code import prepare_symbol
from mlir_npu.export.plan import PartArgument, PartEntry, Plan, as_json
from mlir_npu.export.program import Exported
from mlir_npu.runtime.signature import ELEMENTS, FunctionSignature

LEVELS = ("torch", "linalg", "npu", "llvm", "object")
SCHEMA = "plan-1.schema.json"
RUNTIME = ("mlir_npu_runtime.h", "mlir_npu_runtime.c")


def file_names(name: str, levels: Collection[str]) -> dict[str, str]:
    """What is there beside the parts, by purpose."""
    names = {"weights": "weights.bin", "schema": SCHEMA}
    if "object" in levels:
        names |= {"header": f"{name}.h", "runtime_header": RUNTIME[0], "runtime_source": RUNTIME[1]}
    return names


def write_program(exported: Exported, directory: Path, levels: Collection[str]) -> Path:
    """Write all files; the plan, whose path is returned, comes last."""
    directory.mkdir(parents=True, exist_ok=True)
    entries = tuple(_write_part(part, directory, levels) for part in exported.parts)
    plan = dataclasses.replace(exported.plan, parts=entries)
    (directory / plan.files["weights"]).write_bytes(exported.weights)
    if "object" in levels:
        (directory / plan.files["header"]).write_text(header(plan))
        for name in RUNTIME:
            (directory / name).write_text(packaged("c", name))
    (directory / SCHEMA).write_text(packaged("schema", SCHEMA))
    path = directory / "plan.json"
    path.write_text(_text(plan))
    return path


def packaged(folder: str, name: str) -> str:
    """A file that comes with this package."""
    return resources.files(f"mlir_npu.export.{folder}").joinpath(name).read_text()


def _write_part(part: CompiledPart, directory: Path, levels: Collection[str]) -> PartEntry:
    code, signature = part.code, part.code.signature
    folder = directory / part.unit
    folder.mkdir(exist_ok=True)
    stem = part.name.removeprefix(f"{part.unit}.")
    ir = {}
    for level, text in code.ir.items():
        if level in levels:
            ir[level] = f"{part.unit}/{stem}.{level}.mlir"
            (directory / ir[level]).write_text(text if text.endswith("\n") else f"{text}\n")
    file = None
    if "object" in levels:
        file = f"{part.unit}/{stem}.o"
        (directory / file).write_bytes(code.object)
    prepare = signature.prepare
    return PartEntry(
        name=part.name,
        unit=part.unit,
        engine=code.engine,
        symbol=code.symbol,
        arguments=_arguments(signature.main),
        prepare_symbol=prepare_symbol(code.symbol) if prepare else None,
        prepare_arguments=_arguments(prepare) if prepare else (),
        workspace_bytes=signature.workspace_bytes,
        scratch_bytes=signature.scratch_bytes,
        object=file,
        ir=ir,
        needs=code.needs,
        ops=part.ops,
    )


def _arguments(function: FunctionSignature) -> tuple[PartArgument, ...]:
    return tuple(PartArgument(a.role, ELEMENTS[a.element][0], a.shape) for a in function.arguments)


def _text(plan: Plan) -> str:
    """JSON with one line for each value, step and part, so that people can read it and compare."""
    lines = []
    for key, entry in as_json(plan).items():
        if isinstance(entry, list) and entry and isinstance(entry[0], dict):
            inner = ",\n".join(_entry(item) for item in entry)
            lines.append(f"{json.dumps(key)}: [\n{inner}\n]")
        else:
            lines.append(f"{json.dumps(key)}: {json.dumps(entry, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _entry(item: dict) -> str:
    if "steps" not in item:
        return f"  {json.dumps(item, allow_nan=False)}"
    parts = []
    for key, value in item.items():
        if key in ("steps", "prepare") and value:
            inner = ",\n".join(f"      {json.dumps(step, allow_nan=False)}" for step in value)
            parts.append(f"    {json.dumps(key)}: [\n{inner}\n    ]")
        else:
            parts.append(f"    {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "  {\n" + ",\n".join(parts) + "\n  }"
