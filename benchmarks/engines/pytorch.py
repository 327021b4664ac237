"""PyTorch: eager in both memory formats, the backends of torch.compile, and captured programs."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import torch
from torch import nn

from mlir_npu.benchmarks.engines.base import Call, Engine
from mlir_npu.capturing import capture
from mlir_npu.lowering.report import collect

WINOGRAD = "winograd_conv2d"  # the op of kernels that use it


def with_own_code(model: nn.Module) -> types.FunctionType:
    """The model's forward behind a code object of its own.

    Dynamo keeps what it compiled by code object: engines that share one would go through each
    other's guards.
    """

    def forward(x: torch.Tensor) -> torch.Tensor:
        return model(x)

    code = forward.__code__.replace()
    return types.FunctionType(code, globals(), "forward", None, forward.__closure__)


def channels_last(model: nn.Module, x: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """Both in that memory format, as far as they have four dimensions."""
    model = model.to(memory_format=torch.channels_last)
    return model, x.contiguous(memory_format=torch.channels_last) if x.dim() == 4 else x


class Eager(Engine):
    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        return lambda: model(x)


class ChannelsLast(Engine):
    """Parameters, input and result channels last."""

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        model, x = channels_last(model, x)
        return lambda: model(x)


class Compiled(Engine):
    """torch.compile with `backend`."""

    backend: str

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        compiled = torch.compile(with_own_code(model), backend=self.backend)
        return lambda: compiled(x)


class DynamoOnly(Compiled):
    """Dynamo's guards around the eager graph."""

    backend = "eager"


class Inductor(Compiled):
    backend = "inductor"


class Frozen(Compiled):
    """Inductor with the weights as constants, packed and folded while compiling."""

    backend = "inductor"

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        call = super().prepare(model, x)
        from torch._inductor import config

        with config.patch(freezing=True):
            call()
        return call


def uses_winograd(dumps: Path) -> bool:
    """Whether kernels in a folder of dumps do."""
    return any(WINOGRAD in path.read_text() for path in dumps.rglob("*.mlir"))


class MlirNpu(Engine):
    """A captured program of this backend, called directly. notes: what ran on the host, and,
    if that is asked for, whether Winograd kernels run."""

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        with collect() as reports:
            call = self._compile(model, x, {"dump_dir": str(self.folder)} if self.inspect else {})
        self._parts = [part for report in reports for part in report.parts]
        return call

    def _compile(self, model: nn.Module, x: torch.Tensor, options: dict) -> Call:
        program = capture(model, x, options=options)
        return lambda: program(x)

    def notes(self) -> dict:
        host = [part for part in self._parts if part.engine != "npu"]
        ran = {
            "regions": len(self._parts) - len(host),
            "host_conv_macs": sum(part.conv_macs for part in host),
        }
        if not self.inspect:
            return ran
        return ran | {"winograd": uses_winograd(self.folder)}


class MlirNpuCompile(MlirNpu):
    """This backend through torch.compile."""

    def _compile(self, model: nn.Module, x: torch.Tensor, options: dict) -> Call:
        compiled = torch.compile(with_own_code(model), backend="mlir_npu", options=options)
        compiled(x)
        return lambda: compiled(x)


ON_HOST = {"min_region_macs": sys.maxsize}


class MlirNpuHost(MlirNpu):
    """A captured program whose ops all run as host parts."""

    def _compile(self, model: nn.Module, x: torch.Tensor, options: dict) -> Call:
        return super()._compile(model, x, options | ON_HOST)


class MlirNpuHostCompile(MlirNpuCompile):
    """The same through torch.compile."""

    def _compile(self, model: nn.Module, x: torch.Tensor, options: dict) -> Call:
        return super()._compile(model, x, options | ON_HOST)


class MlirNpuLast(MlirNpu):
    """A captured program with parameters, input and result channels last."""

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        return super().prepare(*channels_last(model, x))
