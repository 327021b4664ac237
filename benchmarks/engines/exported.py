"""Engines that run an ONNX file. Inputs and results are bound once: a call copies neither."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import torch
from torch import nn

from mlir_npu.benchmarks import onnx_layer
from mlir_npu.benchmarks.engines.base import Call, Engine
from mlir_npu.benchmarks.models import Layer


def export(model: nn.Module, x: torch.Tensor, path: Path) -> Path:
    """Writes the model as ONNX, with its weights inside of the file."""
    if isinstance(model, Layer):
        return onnx_layer.write(model, x, path)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        torch.onnx.export(
            model, (x,), path, input_names=["x"], output_names=["y"],
            dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
    return path


def onnx_file(model: nn.Module, x: torch.Tensor, folder: Path) -> Path:
    """The file of a model; engines of one case share it, for they are given the same folder."""
    path = folder.parent / "model.onnx"
    return path if path.exists() else export(model, x, path)


class Exported(Engine):
    """An engine that runs an ONNX file."""

    def prepare(self, model: nn.Module, x: torch.Tensor) -> Call:
        return self.load(onnx_file(model, x, self.folder), x)

    def load(self, path: Path, x: torch.Tensor) -> Call:
        raise NotImplementedError


class OnnxRuntime(Exported):
    packages = ("onnxruntime", "onnx", "onnxscript")

    def load(self, path: Path, x: torch.Tensor) -> Call:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        binding = session.io_binding()
        array = x.numpy()
        binding.bind_input("x", "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        shape = session.get_outputs()[0].shape
        y = torch.empty(shape)
        binding.bind_output("y", "cpu", 0, array.dtype, shape, y.data_ptr())

        def call() -> torch.Tensor:
            session.run_with_iobinding(binding)
            return y

        call.input = array  # the binding does not keep it
        return call


class OpenVino(Exported):
    packages = ("openvino", "onnx", "onnxscript")

    def load(self, path: Path, x: torch.Tensor) -> Call:
        import openvino

        properties = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
            "INFERENCE_NUM_THREADS": self.threads,
        }
        compiled = openvino.Core().compile_model(path, "CPU", properties)
        request = compiled.create_infer_request()
        request.set_input_tensor(openvino.Tensor(x.numpy(), shared_memory=True))
        y = torch.from_numpy(request.get_output_tensor().data)

        def call() -> torch.Tensor:
            request.infer()
            return y

        return call
