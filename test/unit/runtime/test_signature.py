import pytest
import torch
from modules import PREPARED, SCALE

from mlir_npu.dialect.bindings import ir
from mlir_npu.runtime.read_signature import read_signature
from mlir_npu.runtime.signature import SignatureError


def read(text):
    with ir.Context(), ir.Location.unknown():
        return read_signature(ir.Module.parse(text))


def test_reads_roles_shapes_and_bytes():
    signature = read(PREPARED)
    assert [a.role for a in signature.main.arguments] == [
        "input",
        "parameter",
        "prepared",
        "output",
        "workspace",
        "scratch",
    ]
    assert signature.main.arguments[0].shape == (4,)
    assert signature.main.arguments[4].dtype is torch.int8
    assert signature.main.arguments[0].bytes == 16
    assert signature.workspace_bytes == 64
    assert signature.scratch_bytes == 64
    assert signature.main.slots("input", "output") == (0, 3)


def test_host_module_has_neither_prepare_nor_workspace():
    signature = read(SCALE.format(m=2, n=3))
    assert signature.prepare is None
    assert signature.workspace_bytes == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("%x: memref<4xf32>", "argument 0 of @main has no npu.role"),
        ('%x: memref<4xf32> {npu.role = "weight"}', "unknown role 'weight'"),
        ('%x: tensor<4xf32> {npu.role = "input"}', "not a memref"),
        ('%x: memref<?xf32> {npu.role = "input"}', "static shape"),
        ('%x: memref<4xf32, strided<[2]>> {npu.role = "input"}', "identity layout"),
        ('%x: memref<4xi7> {npu.role = "input"}', "element type i7"),
        ('%x: memref<4xf32> {npu.role = "prepared"}', "makes 0 values and @main takes 1"),
    ],
)
def test_bad_argument_is_named(arguments, message):
    with pytest.raises(SignatureError, match=message):
        read(f"func.func @main({arguments}) {{ return }}")


def test_results_must_be_out_parameters():
    argument = '%x: memref<4xf32> {npu.role = "input"}'
    text = f"func.func @main({argument}) -> memref<4xf32> {{ return %x : memref<4xf32> }}"
    with pytest.raises(SignatureError, match="out-parameters"):
        read(text)


def test_module_needs_main():
    with pytest.raises(SignatureError, match="no function @main"):
        read("func.func @other() { return }")
