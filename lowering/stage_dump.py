"""Files in which people read how a region is compiled.

<dump_dir>/<region>/ holds the ATen graph (region.py) and the IR after every stage (00_import.mlir,
01_normalise.mlir, ...), each readable by npu-opt.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from torch import fx

if TYPE_CHECKING:  # what is in the cache is found without loading MLIR
    from mlir_npu.dialect.bindings import ir


class StageDump:
    """Writes the IR of one region, stage by stage, if the user asked for it."""

    def __init__(self, dump_dir: str | Path | None, region: str) -> None:
        self._folder = Path(dump_dir) / region if dump_dir else None
        self._region = region
        self._count = 0
        self.is_wanted = self._folder is not None

    def graph(self, graph_module: fx.GraphModule) -> None:
        if self._folder is not None:
            self._write("region.py", graph_module.print_readable(print_output=False))

    def stage(self, name: str, module: ir.Module) -> None:
        if self._folder is not None:
            self._write(f"{self._count:02d}_{name}.mlir", module.operation.get_asm())
        self._count += 1

    def failure(self, name: str, text: str) -> Path:
        """Write what a failure needs to be repeated, to a temporary folder if there is no other."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="mlir-npu-")) / self._region
        return self._write(name, text)

    def _write(self, name: str, text: str) -> Path:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / name
        path.write_text(text if text.endswith("\n") else text + "\n")
        return path
