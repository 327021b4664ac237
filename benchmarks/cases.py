"""What is measured: cases, and what one worker process gets to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from mlir_npu.benchmarks.layers import Convolution


@dataclass(frozen=True)
class Case:
    """One model with one input shape.

    kind: "time" (calls of all engines by turns), "compile" or "memory" (fresh processes, each of
    one engine); group: the row of the summary it counts for; layer: the convolution, or else
    `network` is a key of `models.NETWORKS`, in the suite "host" of `chains.KINDS`.
    """

    suite: str
    name: str
    group: str
    engines: tuple[str, ...]
    threads: int
    shape: tuple[int, ...]
    kind: str = "time"
    layer: Convolution | None = None
    network: str | None = None
    size: int = 1  # what cost is expected to be linear in, within the group

    def to_json(self) -> dict:
        return asdict(self)

    @staticmethod
    def from_json(data: dict) -> Case:
        layer = data["layer"]
        if layer:
            layer = Convolution(**{k: tuple(v) if type(v) is list else v for k, v in layer.items()})
        fields = {**data, "layer": layer}
        fields |= {key: tuple(data[key]) for key in ("engines", "shape")}
        return Case(**fields)


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds of a timed case until ratios are known to `within`."""

    min_rounds: int = 9
    max_rounds: int = 60
    seconds: float = 12.0  # of a timed case, after min_rounds
    within: float = 0.02
    repetitions: int = 3  # processes per engine of the kinds "compile" and "memory"


QUICK = Effort(min_rounds=5, max_rounds=9, seconds=2.0, within=0.05, repetitions=1)
NORMAL = Effort()


def select(cases: Sequence[Case], pattern: str | None) -> list[Case]:
    """Cases with `pattern` in "suite/group/name", whatever the case of letters."""
    if not pattern:
        return list(cases)
    wanted = pattern.lower()
    return [c for c in cases if wanted in f"{c.suite}/{c.group}/{c.name}".lower()]
