"""What users are told of an error that nobody foresaw."""

from __future__ import annotations

from mlir_npu.lowering.source_location import user_frame


def describe_internal_error(error: Exception) -> str:
    """One line: the error's type, the first line of its text, and the user's line if the text has
    one, as the errors of running an FX graph do. The whole error is in the log at DEBUG."""
    text = str(error)
    told = ["internal error", type(error).__name__, text.strip().partition("\n")[0]]
    where = user_frame(text)
    return ": ".join(filter(None, told)) + (f" (at {where})" if where else "")
