"""lit configuration: `%npu-opt`, `filecheck` and `%inputs`, from the interpreter that runs lit."""

import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent

config.name = "mlir-npu"  # noqa: F821 - lit defines config
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["Inputs"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here / "Output")  # noqa: F821

python = f'"{sys.executable}"'
config.substitutions += [  # noqa: F821
    (r"%?\bnpu-opt\b", f"{python} -m mlir_npu.scripts.npu_opt"),
    (r"\bfilecheck\b", f"{python} -m filecheck"),
    ("%inputs", str(here / "Inputs")),
]
