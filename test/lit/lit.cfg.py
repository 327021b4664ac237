"""lit configuration: `%npu-opt`, `filecheck` and `%inputs`.

Both tools are run by the interpreter that runs lit, so that tests need neither PATH nor an
activated environment. Only whole words are replaced: a checkout may lie in a folder of that name.
"""

import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent

config.name = "mlir-npu"  # noqa: F821 - lit defines config
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["Inputs", "Output"]  # noqa: F821
config.test_source_root = str(here)  # noqa: F821
config.test_exec_root = str(here / "Output")  # noqa: F821

# NumPy, which the bindings import, otherwise starts a thread per core: half the time of a test.
config.environment["OPENBLAS_NUM_THREADS"] = "1"  # noqa: F821

# -P: the folder that a test runs in must not shadow modules.
python = f'"{sys.executable}" -P -m'
config.substitutions += [  # noqa: F821
    (r"(?<![\w./-])%?npu-opt(?![\w./-])", f"{python} mlir_npu.scripts.npu_opt"),
    (r"(?<![\w./-])filecheck(?![\w./-])", f"{python} filecheck"),
    ("%inputs", str(here / "Inputs")),
]
