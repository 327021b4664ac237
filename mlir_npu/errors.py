"""What can go wrong, by cause. None of these needs torch or MLIR to be imported."""

from __future__ import annotations


class OptionsError(ValueError):
    """An option has an unknown name or a bad value; the message names the nearest valid one."""


class RegionCompileError(RuntimeError):
    """A region could not be compiled for the NPU.

    cause: one line, with the failing pass and its diagnostics; reproduction: the npu-opt command
    that shows the failure again, if the region got as far as MLIR.
    """

    def __init__(self, cause: str, reproduction: str | None = None) -> None:
        self.cause = cause
        self.reproduction = reproduction
        super().__init__(
            cause if reproduction is None else f"{cause}\nto reproduce: {reproduction}"
        )


class HostLoweringError(RuntimeError):
    """A host part cannot go through torch-mlir and LLVM; `reason` is one sentence."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class StrictError(RuntimeError):
    """With strict=True, something would have run on the host."""


class CaptureError(RuntimeError):
    """A model cannot be captured as one graph.

    reason: why; location: "file:line" of the user's program, if known; line: its text.
    """

    def __init__(self, reason: str, location: str | None = None, line: str | None = None) -> None:
        self.reason, self.location, self.line = reason, location, line
        where = f" at {location}\n    {line}\n" if location else ": "
        super().__init__(
            f"cannot capture the model as one graph{where}{reason}\n"
            'torch.compile(model, backend="mlir_npu") runs such models too.'
        )


class MismatchError(ValueError):
    """A captured program is called with other inputs than it was captured for, or its model is not
    the one that was captured any more; the message says what to do."""
