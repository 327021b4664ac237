"""What to change so that a graph does not break, for the common kinds of breaks."""

from __future__ import annotations

import re
from dataclasses import dataclass

_IGNORE = "torch._dynamo.config.ignore_logging_functions.add"


@dataclass(frozen=True)
class _Kind:
    """pattern: found in Dynamo's reason; its group, if it has one, is the {name} in the remedy.
    cause: in place of Dynamo's explanation, where that says little."""

    pattern: str
    remedy: str
    cause: str | None = None


_KINDS = (
    _Kind(
        r"builtin operator `print`",
        "Return what you want to see and print it after the call; or "
        f"{_IGNORE}(print), after which compiled code does not print.",
    ),
    _Kind(
        r"`(?:_warnings|warnings)\.warn`",
        "Warn before or after the call; or "
        f"{_IGNORE}(warnings.warn), after which compiled code does not warn.",
    ),
    _Kind(
        r"logging\.Logger method",
        f"Log before or after the call; or {_IGNORE}(logger.info), with the method that is called, "
        "after which compiled code does not log.",
    ),
    _Kind(
        r"Tensor\.item\(\) call",
        "Keep the number in a tensor (y * x.sum() needs no .item(), int() or float()), or return "
        "the tensor and read the number after the call.",
        "Python asks for the number that a tensor holds, which is known only when the code before "
        "it has run.",
    ),
    _Kind(
        r"Tensor\.(tolist|numpy)\(\)|call_method TensorVariable\(\) (to_?list|numpy)",
        "Compute with the tensor instead, or return it and convert it after the call.",
    ),
    _Kind(
        r"generic_jump|[Dd]ata-dependent branching",
        "Compute both sides and choose with torch.where(condition, a, b), or decide in the code "
        "that calls the compiled function.",
        "What Python does next depends on the values of a tensor (if, while, and, or, assert).",
    ),
    _Kind(
        r"[Dd]ata-dependent assertion",
        "Check after the call, or use torch._assert_async.",
    ),
    _Kind(
        r"Dynamic shape operator|[Dd]ata dependent operator|one_hot. with data-dependent",
        "Keep the shape: torch.where(mask, x, 0) in place of x[mask], topk of a fixed number in "
        "place of nonzero; or do this after the last layer that should run on the NPU.",
    ),
    _Kind(r"Call to `torch\._dynamo\.graph_break\(\)`", "Remove the call."),
    _Kind(
        r"`torch\.compiler\.disable\(\)`d function",
        "Remove torch.compiler.disable from the function, or call it before or after the compiled "
        "one.",
    ),
    _Kind(
        r"Attempt to trace generator",
        "Call the function from one that is no generator, and compile that.",
    ),
    _Kind(
        r"builtin operator `([^`]+)`",
        "Call `{name}` before or after the compiled function, and pass in what it returns.",
    ),
    _Kind(
        r"qualname: ([^,]+), skip reason",
        "Call `{name}` before or after the compiled function; if it computes with tensors, make it "
        "an operator with torch.library.custom_op, which then runs on the host.",
    ),
    _Kind(
        r"method `([^`]+)` of class",
        "Call `{name}` before or after the compiled function, and pass in what it returns.",
    ),
)
_MOVE = (
    "Or take the line out of the loop, try or with block that it is in: then Dynamo compiles what "
    "comes before and after it."
)


def cause_of(reason: str) -> str:
    """One or two sentences of Dynamo's reason, or ours."""
    kind = _kind_of(reason)
    if kind is not None and kind.cause:
        return kind.cause
    explanation = re.search(r"Explanation: *(.+)", reason)
    return (explanation.group(1) if explanation else reason.splitlines()[0]).strip()


def remedy_of(reason: str, resumes: bool) -> str:
    """What to change. resumes: whether Dynamo goes on behind the line."""
    kind = _kind_of(reason)
    if kind is not None:
        found = re.search(kind.pattern, reason)
        remedy = kind.remedy.replace("{name}", (found.groups() or ("",))[0] or "")
    else:
        hint = re.search(r"Hint: *(.+)", reason)
        remedy = hint.group(1).strip() if hint else "Take the line out of the compiled function."
    return remedy if resumes else f"{remedy} {_MOVE}"


def _kind_of(reason: str) -> _Kind | None:
    return next((kind for kind in _KINDS if re.search(kind.pattern, reason)), None)
