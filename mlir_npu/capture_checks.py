"""What `mlir_npu.capture` refuses before it looks at what the model does."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from mlir_npu.errors import CaptureError

_SCRIPTED = (torch.jit.ScriptModule, torch.jit.ScriptFunction)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_NO_TORCH_FUNCTION = torch._C._disabled_torch_function_impl  # of parameters


def check_call(model: Any, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> None:
    """That the model can be called with such inputs. Raises TypeError, and CaptureError."""
    if isinstance(model, type):
        raise TypeError(f"{model.__name__} is a class: capture an object of it, {model.__name__}()")
    if not callable(model):
        raise TypeError(
            f"capture(model, *inputs) takes an nn.Module or a function, not {_article(model)}"
        )
    if isinstance(model, _SCRIPTED):
        raise TypeError(
            f"{_article(model)} is TorchScript, which has no Python to capture: pass the module or "
            "function that it was made of"
        )
    _check_signature(model, inputs, keywords)
    for name, tensor in _tensors_of(model):
        if fault := _fault(tensor):
            raise CaptureError(f"{name} {fault}", compiles=False)


def modules_of(model: Callable) -> dict[str, torch.nn.Module]:
    """Modules that the model is or names, by the prefix of their tensors' names."""
    if isinstance(model, torch.nn.Module):
        return {"": model}
    function = inspect.unwrap(getattr(model, "__func__", model))
    found: dict[str, Any] = {}
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        found = {**variables.globals, **variables.nonlocals}
    found["self"] = getattr(model, "__self__", None)
    return {f"{n}.": m for n, m in found.items() if isinstance(m, torch.nn.Module)}


def _check_signature(model: Callable, inputs: Sequence, keywords: Mapping[str, Any]) -> None:
    function = model.forward if isinstance(model, torch.nn.Module) else model
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # builtin functions
        return
    try:
        signature.bind(*inputs, **keywords)
    except TypeError as error:
        name = getattr(model, "__name__", type(model).__name__)
        raise TypeError(
            f"the model cannot be called with these example inputs: {error}; it is "
            f"{name}{signature}, and what follows the model in capture(model, ...) is passed on"
        ) from None


def _tensors_of(model: Callable) -> Iterator[tuple[str, torch.Tensor]]:
    for prefix, module in modules_of(model).items():
        for name, tensor in module.named_parameters():
            yield f"parameter {prefix}{name}", tensor
        for name, tensor in module.named_buffers():
            yield f"buffer {prefix}{name}", tensor


def _fault(tensor: torch.Tensor) -> str | None:
    """Why a program cannot have it among its weights."""
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        return "has no shape before the first call of the model: call the model once"
    if tensor.device.type == "meta":
        return "is on the device meta, so it has no values: load the weights first"
    if tensor.device.type != "cpu":
        return f"is on the device {tensor.device}, and programs run on the CPU: use model.cpu()"
    if tensor.layout is not torch.strided:
        return f"has the layout {tensor.layout}, and programs take strided tensors: use to_dense()"
    plain = type(tensor) in _PLAIN or type(tensor).__torch_function__ is _NO_TORCH_FUNCTION
    if not plain or is_traceable_wrapper_subclass(tensor):
        return f"is {_article(tensor)}, and programs take plain tensors"
    return None


def _article(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
