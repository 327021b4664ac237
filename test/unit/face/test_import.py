"""The face is found without loading anything heavy."""

import subprocess
import sys


def run(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout.strip()


def test_import_loads_neither_torch_nor_mlir():
    loaded = "[m for m in ('torch', 'torch_mlir') if m in sys.modules]"
    assert run(f"import sys, mlir_npu; mlir_npu.__version__; print({loaded})") == "[]"


def test_the_tools_do_not_load_torch():
    code = (
        "import sys, mlir_npu.scripts.npu_opt as t; t.all_passes(); print('torch' in sys.modules)"
    )
    assert run(code) == "False"


def test_every_public_name_exists():
    missing = "[n for n in mlir_npu.__all__ if getattr(mlir_npu, n, None) is None]"
    code = f"import mlir_npu; print({missing})"
    assert run(code) == "[]"


def test_unknown_names_are_attribute_errors():
    code = "import mlir_npu\ntry: mlir_npu.nope\nexcept AttributeError as e: print(e)"
    assert run(code) == "module 'mlir_npu' has no attribute 'nope'"


def test_dynamo_finds_the_backend_without_an_import_of_ours():
    assert run("import torch; print('mlir_npu' in torch._dynamo.list_backends())") == "True"
