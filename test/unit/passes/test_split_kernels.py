from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.split_kernels import split_kernels

MODULE = """
module attributes {{npu.num_threads = {threads} : i64}} {{
  memref.global "private" constant @table : memref<4xf32> = dense<1.0>
  func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {{
    call @a(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    call @b(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    call @c(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    call @d(%x, %y) : (memref<4xf32>, memref<4xf32>) -> ()
    return
  }}
  func.func private @a(%x: memref<4xf32>, %y: memref<4xf32>) attributes {{npu.kernel = "copy"}} {{
    memref.copy %x, %y : memref<4xf32> to memref<4xf32>
    return
  }}
  func.func private @b(%x: memref<4xf32>, %y: memref<4xf32>) attributes {{npu.kernel = "copy"}} {{
    memref.copy %x, %y : memref<4xf32> to memref<4xf32>
    return
  }}
  func.func private @c(%x: memref<4xf32>, %y: memref<4xf32>) attributes {{npu.kernel = "copy"}} {{
    memref.copy %y, %x : memref<4xf32> to memref<4xf32>
    return
  }}
  func.func private @d(%x: memref<4xf32>, %y: memref<4xf32>) attributes {{npu.kernel = "copy"}} {{
    %0 = memref.get_global @table : memref<4xf32>
    memref.copy %0, %y : memref<4xf32> to memref<4xf32>
    return
  }}
}}
"""


def split(threads: int = 1):
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(MODULE.format(threads=threads))
        kernels = split_kernels(module)
        assert module.operation.verify()
        assert all(kernel.module.operation.verify() for kernel in kernels)
        again = split_kernels(module)
        return module.operation.get_asm(), kernels, again


def test_equal_kernels_become_one_public_function_each_of_a_module():
    driver, (first, other), again = split()
    assert "memref.copy %arg0, %arg1" in first.text and "memref.copy %arg1, %arg0" in other.text
    for kernel in (first, other):
        assert f"func.func @{kernel.name}(" in kernel.module.operation.get_asm()
        assert "npu.num_threads = 1" in kernel.text
        assert f"func.func private @{kernel.name}(memref<4xf32>, memref<4xf32>)" in driver
    assert driver.count(f"call @{first.name}(") == 2
    assert driver.count(f"call @{other.name}(") == 1
    assert again == []


def test_kernel_that_needs_more_than_its_arguments_stays():
    driver, _, _ = split()
    assert "func.func private @d(" in driver and "call @d(" in driver
    assert "memref.get_global @table" in driver


def test_names_say_what_the_code_depends_on():
    names = [[kernel.name for kernel in split(threads)[1]] for threads in (1, 1, 2)]
    assert names[0] == names[1]
    assert not set(names[0]) & set(names[2])
