from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.split_functions import split_functions

KERNEL = """
  func.func private @{name}(%x: tensor<4xf32>) -> tensor<4xf32> attributes {{npu.kernel = "copy"}} {{
    {body}
    return %x : tensor<4xf32>
  }}
"""
FUNCTION = """
  func.func @{name}(%x: tensor<4xf32>) -> tensor<4xf32> {{
    {calls}
    return %x : tensor<4xf32>
  }}
"""


def call(name: str, number: int = 0) -> str:
    return f"%{number} = call @{name}(%x) : (tensor<4xf32>) -> tensor<4xf32>"


def function(name: str, *callees: str) -> str:
    calls = "\n    ".join(call(callee, i) for i, callee in enumerate(callees))
    return FUNCTION.format(name=name, calls=calls)


def kernel(name: str, body: str = "") -> str:
    return KERNEL.format(name=name, body=body)


def split(*parts: str) -> list[str]:
    with make_context(), ir.Location.unknown():
        text = "".join(parts)
        module = ir.Module.parse(f"module attributes {{npu.num_threads = 2 : i64}} {{{text}}}")
        before = module.operation.get_asm()
        made = split_functions(module)
        assert all(one.operation.verify() for one in made)
        assert module.operation.get_asm() == before
        again = [one.operation.get_asm() for each in made for one in split_functions(each)]
        assert again == [one.operation.get_asm() for one in made]
        return again


PREPARE, MAIN = function("prepare", "a"), function("main", "b", "c", "b")
KERNELS = kernel("a"), kernel("b"), kernel("c")


def test_each_function_takes_its_kernels_along_the_larger_first():
    main, prepare = split(PREPARE, MAIN, *KERNELS)
    assert [f"@{name}(%arg" in main for name in ("main", "prepare", "a", "b", "c")] == [
        *(True, False, False, True, True)
    ]
    assert [f"@{name}(%arg" in prepare for name in ("main", "prepare", "a", "b", "c")] == [
        *(False, True, True, False, False)
    ]
    assert "npu.num_threads = 2" in main and "npu.num_threads = 2" in prepare


def test_one_function_stays():
    assert len(split(MAIN, *KERNELS[1:])) == 1


def test_what_belongs_together_stays_together():
    assert len(split(function("prepare", "b"), MAIN, *KERNELS[1:])) == 1  # a kernel of both
    assert len(split(PREPARE, MAIN, *KERNELS, kernel("unused"))) == 1
    assert len(split(PREPARE, MAIN, kernel("a", call("b")), *KERNELS[1:])) == 1
    table = 'memref.global "private" constant @table : memref<4xf32> = dense<1.0>'
    assert len(split(table, PREPARE, MAIN, *KERNELS)) == 1
