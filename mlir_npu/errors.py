"""What can go wrong, by cause. None of these needs torch or MLIR to be imported."""

from __future__ import annotations

from collections.abc import Sequence


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
    """A model cannot be captured as a program.

    reason: why; location: "file:line" of the user's program, if known; line: its text; compiles:
    whether torch.compile runs such models, which the message says.
    """

    def __init__(
        self,
        reason: str,
        location: str | None = None,
        line: str | None = None,
        *,
        compiles: bool = True,
    ) -> None:
        self.reason, self.location, self.line = reason, location, line
        where = f" at {location}\n    {line}\n" if location else ": "
        advice = '\ntorch.compile(model, backend="mlir_npu") runs such models too.'
        super().__init__(f"cannot capture the model{where}{reason}{advice if compiles else ''}")


class ExportError(RuntimeError):
    """A program cannot leave Python. calls: ATen calls without machine code, each with its
    location ("file:line" or None) and the reason."""

    def __init__(self, reason: str, calls: tuple[tuple[str, str | None, str], ...] = ()) -> None:
        self.reason, self.calls = reason, calls
        super().__init__(reason)

    @classmethod
    def of_calls(cls, calls: Sequence[tuple[str, str | None, str]]) -> ExportError:
        lines = [
            f"  {op} ({where or 'no source line'}): "
            + why.removeprefix(f"{op} at {where} ").removeprefix(f"{op} ").removeprefix(f"{op}: ")
            for op, where, why in calls
        ]
        count = "1 call has" if len(calls) == 1 else f"{len(calls)} calls have"
        return cls(
            f"{count} no machine code to export; write them with other operators, take them out "
            "of the model, or export with host_calls=True, which leaves them in the plan as steps "
            'of engine "host":\n' + "\n".join(lines),
            tuple(calls),
        )


class MismatchError(ValueError):
    """A captured program is called with other inputs than it was captured for, or its model is not
    the one that was captured any more; the message says what to do."""
