"""What is wrong with a program, where."""

from collections.abc import Iterator
from contextlib import contextmanager

from mlir_npu.dialect.bindings import ir


class UnknownType(ValueError):
    """A type that the simulator has no values of."""


class SimulationError(Exception):
    """A fault of a program: location, op, and a sentence with the numbers."""

    def __init__(self, op: ir.Operation, message: str):
        self.op_name = op.name
        self.message = message
        super().__init__(f"{place(op)}: '{op.name}': {message}")


def fault(op: ir.Operation, error: Exception) -> SimulationError:
    """An exception that executing `op` has raised, as a fault of the program."""
    if isinstance(error, UnknownType):
        return SimulationError(op, str(error))
    if isinstance(error, ZeroDivisionError):
        return SimulationError(op, "divides by zero")
    if isinstance(error, MemoryError):
        return SimulationError(op, "needs more memory than there is")
    return SimulationError(op, f"cannot be simulated: {type(error).__name__}: {error}")


@contextmanager
def faults_of(op: ir.Operation) -> Iterator[None]:
    """Whatever goes wrong inside becomes a fault of `op`, unless it is one of another op."""
    try:
        yield
    except SimulationError:
        raise
    except Exception as error:
        raise fault(op, error) from error


def place(op: ir.Operation) -> str:
    """file:line:column of an op where it has one, else the function that it is in."""
    location = op.location
    if getattr(location, "filename", ""):
        return f"{location.filename}:{location.start_line}:{location.start_col}"
    while op.name != "func.func" and op.parent is not None:
        op = op.parent.operation
    return f"@{ir.StringAttr(op.attributes['sym_name']).value}" if op.name == "func.func" else "-"
