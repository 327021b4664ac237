"""What a call of PyTorch that returns no tensor means for a program, by the function's name."""

from __future__ import annotations

from torch.overrides import resolve_name

from mlir_npu.lowering.program_events import CallEvent, PythonBetween

# read one element
_NUMBERS = {"item", "__bool__", "__int__", "__float__", "__index__", "is_nonzero"}
# say something of a tensor without looking at its contents
_METADATA = {
    *("__get__", "__hash__", "__len__", "size", "stride", "dim", "ndimension", "numel", "nelement"),
    *("element_size", "itemsize", "is_contiguous", "storage_offset", "data_ptr", "type"),
    *("is_floating_point", "is_complex", "is_signed", "get_device", "is_same_size", "is_tensor"),
    *("result_type", "can_cast", "is_inference", "is_pinned", "is_shared", "__set__"),
}
_MODES = {"_set_grad_enabled"}  # change how later calls are made, which these know
_OF_GRADIENTS = {
    "backward": "computes gradients",
    "register_hook": "adds a hook to a gradient",
    "register_post_accumulate_grad_hook": "adds a hook to a gradient",
    "retain_grad": "keeps the gradient of a value",
}
_MOST_NUMBERS = 64
_OF_LISTS = (
    "numbers of it that come back to PyTorch as they are must be the same in every call; what else "
    "is done with them is not repeated"
)


def reads_a_number(event: CallEvent) -> bool:
    return _name(event) in _NUMBERS and isinstance(event.result, (bool, int, float))


def reads_numbers(event: CallEvent) -> bool:
    """Whether it reads some, few enough to follow each."""
    return _name(event) == "tolist" and event.arguments[0].numel() <= _MOST_NUMBERS


def writes(event: CallEvent) -> bool:
    """Whether it changes a tensor: `y[0] = 0`, `y.add_(1)`."""
    name = _name(event)
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def describe_left_out(event: CallEvent) -> PythonBetween | None:
    """What a program does not repeat of the call; None if that is nothing."""
    name = _name(event)
    if name in _METADATA | _MODES:
        return None
    does = _OF_GRADIENTS.get(name)
    if does is None:
        does = "is called" if event.result is None else "takes values to Python"
    return _told(event, does, "a program does not repeat it")


def describe_list(event: CallEvent) -> PythonBetween:
    """What a program does not repeat of a call that reads numbers."""
    return _told(event, "takes values to Python", _OF_LISTS)


def _told(event: CallEvent, does: str, effect: str) -> PythonBetween:
    function, place = resolve_name(event.function) or _name(event), event.place
    return PythonBetween(place.location, place.line, f"{function} {does}", effect)


def _name(event: CallEvent) -> str:
    return getattr(event.function, "__name__", str(event.function))
