import ctypes
import struct

import pytest

from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.runtime.emit import emit_object
from mlir_npu.runtime.kernel import Kernel, KernelLinkError, SlotBlock
from mlir_npu.runtime.native_code import NativeCode, address_in_process

CALLER = """
llvm.func @double(!llvm.ptr)
llvm.func @main(%x: !llvm.ptr, %y: !llvm.ptr) {
  llvm.call @double(%y) : (!llvm.ptr) -> ()
  llvm.call @double(%x) : (!llvm.ptr) -> ()
  llvm.return
}"""
DOUBLE = """
llvm.mlir.global internal constant @two(2 : i64) : i64
llvm.mlir.global internal @calls(0 : i64) : i64
llvm.func @double(%x: !llvm.ptr) {
  %two_at = llvm.mlir.addressof @two : !llvm.ptr
  %two = llvm.load volatile %two_at : !llvm.ptr -> i64
  %calls_at = llvm.mlir.addressof @calls : !llvm.ptr
  %calls = llvm.load %calls_at : !llvm.ptr -> i64
  %old = llvm.load %x : !llvm.ptr -> i64
  %doubled = llvm.mul %old, %two : i64
  %new = llvm.add %doubled, %calls : i64
  llvm.store %new, %x : i64, !llvm.ptr
  %one = llvm.mlir.constant(1 : i64) : i64
  %more = llvm.add %calls, %one : i64
  llvm.store %more, %calls_at : i64, !llvm.ptr
  llvm.return
}"""
UNKNOWN = """
llvm.func @no_such_function()
llvm.func @main() { llvm.call @no_such_function() : () -> ()  llvm.return }"""


def object_of(text: str, **options) -> bytes:
    with make_context(), ir.Location.unknown():
        return emit_object(ir.Module.parse(text), **options)


@pytest.fixture(scope="module")
def objects() -> list[bytes]:
    return [object_of(CALLER), object_of(DOUBLE, entries=False)]


def test_objects_call_each_other_and_keep_constants_and_variables(objects):
    kernel = Kernel.of_objects(objects)
    numbers = (ctypes.c_int64 * 2)(5, 7)
    block = SlotBlock(2)
    block.values[0], block.values[1] = (ctypes.addressof(numbers) + 8 * i for i in range(2))
    kernel.run(block.address)
    assert list(numbers) == [11, 14]  # the first call counted for the second
    kernel.run(block.address)
    assert list(numbers) == [22 + 3, 28 + 2]


def test_code_can_be_loaded_twice_with_variables_of_its_own(objects):
    for _ in range(2):
        kernel, number = Kernel.of_objects(objects), ctypes.c_int64(1)
        block = SlotBlock(2)
        block.values[0] = block.values[1] = ctypes.addressof(number)
        kernel.run(block.address)
        assert number.value == 5


def test_code_and_constants_cannot_be_written(objects):
    code = NativeCode(objects)
    address = code.address("main")
    lines = open("/proc/self/maps").read().splitlines()
    spans = [line.split()[:2] for line in lines]
    (mode,) = (
        mode
        for span, mode in spans
        if int(span.split("-")[0], 16) <= address < int(span.split("-")[1], 16)
    )
    assert mode.startswith("r-x")


def test_undefined_symbol_is_named():
    with pytest.raises(KernelLinkError, match="no_such_function is undefined"):
        NativeCode([object_of(UNKNOWN)])


def test_symbol_that_two_objects_define_is_named(objects):
    with pytest.raises(KernelLinkError, match="two objects define the symbol main"):
        NativeCode([objects[0], *objects])


@pytest.mark.parametrize("length", [0, 10, 63, 64, 500])
def test_what_is_no_object_is_an_error(objects, length):
    with pytest.raises(KernelLinkError, match="not an object file"):
        NativeCode([objects[0][:length]])


def test_object_of_another_machine_is_an_error(objects):
    other = bytearray(objects[0])
    struct.pack_into("<H", other, 18, 183)  # AArch64
    with pytest.raises(KernelLinkError, match="not an object file"):
        NativeCode([bytes(other)])


def test_entry_with_numbers_as_arguments_is_an_error():
    text = "llvm.func @main(%x: i64) { llvm.return }"
    with pytest.raises(ValueError, match="takes pointers and returns nothing"):
        object_of(text)


def test_functions_of_the_process_are_found():
    assert address_in_process("memset")
    assert address_in_process("no_such_function") == 0
