"""What is wrong with a program, where."""

from mlir_npu.dialect.bindings import ir


class SimulationError(Exception):
    """A fault of a program: location, op, and a sentence with the numbers."""

    def __init__(self, op: ir.Operation, message: str):
        self.op_name = op.name
        self.message = message
        super().__init__(f"{place(op)}: '{op.name}': {message}")


def place(op: ir.Operation) -> str:
    """file:line:column of an op where it has one, else the function that it is in."""
    location = op.location
    if getattr(location, "filename", ""):
        return f"{location.filename}:{location.start_line}:{location.start_col}"
    while op.name != "func.func" and op.parent is not None:
        op = op.parent.operation
    return f"@{ir.StringAttr(op.attributes['sym_name']).value}" if op.name == "func.func" else "-"
