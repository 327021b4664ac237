"""Regions run by code that a user's code generator makes; here for the simulated accelerator."""

import logging

import numpy as np
import pytest
import torch
from parity import assert_same, check_training, compile_model
from torch import nn

import mlir_npu
from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.passes.kernels.walk import argument_roles, entry, functions, symbol
from mlir_npu.simulator.buffers import dtype_of
from mlir_npu.simulator.functional import run_function

KNOWN = ["convolution", "relu"]
X = torch.randn(2, 3, 12, 12)


class Machine:
    """A compiler and a driver for the target that programs of the npu dialect run on."""

    def __init__(self) -> None:
        self.regions: list[mlir_npu.Region] = []
        self.uploads = self.runs = 0

    def __call__(self, region: mlir_npu.Region) -> mlir_npu.GeneratedCode:
        self.regions.append(region)
        with make_context():
            module = ir.Module.parse(region.ir("allocate"))

        def prepare(*parameters):
            self.uploads += 1
            packed = self._run(module, "prepare", parameters) if has(module, "prepare") else []
            return [*parameters], packed

        def run(prepared, *inputs):
            self.runs += 1
            parameters, packed = map(iter, prepared)
            given = iter(inputs)
            roles = [argument.role for argument in region.arguments]
            arguments = [next(given if role == "input" else parameters) for role in roles]
            return self._run(module, "main", [*arguments, *packed])

        return mlir_npu.GeneratedCode(run, prepare)

    def _run(self, module: ir.Module, name: str, arguments) -> list[torch.Tensor]:
        (function,) = (f for f in functions(module.operation) if symbol(f) == name)
        types = [argument.type for argument in entry(function).arguments]
        made = [t for t, role in zip(types, argument_roles(function)) if role == "output"]
        outputs = [np.empty(type_.shape, dtype_of(type_.element_type)) for type_ in made]
        run_function(module.operation, name, [a.numpy() for a in arguments], outputs)
        return [torch.from_numpy(output) for output in outputs]


def has(module: ir.Module, name: str) -> bool:
    return any(symbol(function) == name for function in functions(module.operation))


def network() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, bias=False), nn.GELU()
    ).eval()


def eager_code(region):
    """Stands in for code that takes all arguments in order."""
    return region.graph_module


def compiled_for(machine, model, **options):
    options = {"target": "edge", "min_region_macs": 0, "npu_ops": KNOWN, **options}
    return compile_model(model, code_generator=machine, **options)


@pytest.mark.parametrize("fallback", ["llvm", "inductor", "eager"])
def test_convolutions_and_relu_on_the_machine_and_the_rest_on_the_host(fallback):
    model, machine = network(), Machine()
    compiled = compiled_for(machine, model, fallback=fallback)
    with torch.no_grad():
        assert_same(compiled(X), model(X))
    assert machine.runs == len(machine.regions) == 1
    calls = {str(n.target) for n in machine.regions[0].graph_module.graph.nodes}
    assert {"aten.convolution.default", "aten.relu.default"} <= calls


def test_weights_are_uploaded_once_and_again_when_they_change():
    model, machine = network(), Machine()
    compiled = compiled_for(machine, model)
    with torch.no_grad():
        compiled(X)
        compiled(X + 1)
        assert (machine.uploads, machine.runs) == (1, 2)
        model[0].weight.mul_(2)
        assert_same(compiled(X), model(X))
    assert machine.uploads == 2


def test_channels_last_images_are_row_major_in_the_order_of_memory():
    model, machine = network(), Machine()
    x = X.to(memory_format=torch.channels_last)
    with torch.no_grad():
        assert_same(compiled_for(machine, model)(x), model(x))
    image = next(a for a in machine.regions[0].arguments if a.role == "input")
    assert image.shape == (2, 12, 12, 3)


def test_a_program_runs_on_the_machine_but_cannot_be_saved(tmp_path):
    model, machine = network(), Machine()
    options = {"code_generator": machine, "target": "edge", "min_region_macs": 0}
    program = mlir_npu.capture(model, X, options=options | {"npu_ops": KNOWN})
    assert_same(program(X), model(X))
    assert machine.runs and machine.uploads == 1
    training = mlir_npu.capture(model, X, train=True, options=options)
    with pytest.raises(mlir_npu.CaptureError, match="cannot be written"):
        training.save(tmp_path)


def test_training():
    regions = []

    def generate(region):
        regions.append(region)
        return region.graph_module

    options = {"code_generator": generate, "min_region_macs": 0}
    check_training(network(), X.clone(), options=options)
    assert len(regions) >= 2


@pytest.mark.parametrize("level", ["torch", "linalg", "schedule", "allocate", "llvm"])
def test_ir_of_every_level(level):
    texts = []

    def generate(region):
        texts.append(region.ir(level))
        return region.graph_module

    compile_model(network(), code_generator=generate, min_region_macs=0)(X)
    with make_context():
        module = ir.Module.parse(texts[0])
    assert module.operation.verify()
    assert "main" in texts[0]


def test_an_unknown_level_names_the_others(caplog):
    compiled = compile_model(network(), code_generator=lambda region: region.ir("hlo"))
    with pytest.raises(Exception, match="no level is called 'hlo'; there are torch, linalg"):
        compile_model(network(), code_generator=lambda r: r.ir("hlo"), strict=True)(X)
    with caplog.at_level(logging.WARNING, "mlir_npu"):
        assert_same(compiled(X), compiled._orig_mod(X))
    assert "no level is called 'hlo'" in caplog.text


def test_a_generator_that_refuses_leaves_the_region_to_the_host(caplog):
    def refuse(region):
        raise NotImplementedError(f"no more than 1 MAC, {region.name} has {region.macs}")

    model = network()
    with torch.no_grad(), caplog.at_level(logging.WARNING, "mlir_npu"):
        assert_same(compiled_for(refuse, model)(X), model(X))
    assert "does not take it: NotImplementedError: no more than 1 MAC, npu_0 has" in caplog.text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda result: result[:1], r"returned torch.float32\[1, 8, 10, 10\]; the region returns"),
        (lambda result: result.double(), r"returned torch.float64\[2, 8, 10, 10\]"),
        (lambda result: (result, result), r"returned .*, .*; the region returns"),
        (lambda result: result.numpy(), "returned a ndarray, "),
    ],
)
def test_wrong_results_are_errors(wrong, message):
    def generate(region):
        return lambda *arguments: wrong(region.graph_module(*arguments)[0])

    with torch.no_grad(), pytest.raises(TypeError, match=message):
        compiled_for(generate, network())(X)


def test_a_failure_in_the_code_names_the_region():
    def generate(region):
        def run(*arguments):
            raise OSError("no such device")

        return run

    with torch.no_grad(), pytest.raises(OSError, match="no such device") as error:
        compiled_for(generate, network())(X)
    assert any("region npu_0" in note for note in error.value.__notes__)


def test_a_result_that_is_an_argument_is_copied():
    class Sum(nn.Module):
        def forward(self, x):
            return x + 0

    def generate(region):
        return lambda x: x

    with torch.no_grad():
        y = compile_model(Sum(), code_generator=generate, min_region_macs=0, npu_ops=["add"])(X)
    assert_same(y, X)
    assert y.data_ptr() != X.data_ptr()


def test_a_name_finds_the_generator():
    options = mlir_npu.Options.parse({"code_generator": f"{__name__}:eager_code"})
    assert options.code_generator.__name__ == "eager_code"
    with pytest.raises(mlir_npu.OptionsError, match="no function 'nowhere:f'"):
        mlir_npu.Options.parse({"code_generator": "nowhere:f"})
    with pytest.raises(mlir_npu.OptionsError, match="must be a function"):
        mlir_npu.Options.parse({"code_generator": 3})


def test_npu_ops_keeps_all_others_on_the_host():
    options = {"npu_ops": KNOWN, "min_region_macs": 0}
    (graph,) = mlir_npu.explain(network(), X, options=options).graphs
    reasons = [rejection.reason for rejection in graph.rejections]
    assert reasons == ["the option npu_ops does not list aten.gelu.default"]
    with torch.no_grad():
        compile_model(network(), strict=True, npu_ops=KNOWN)(X)
