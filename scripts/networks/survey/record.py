"""What compiling one network of the survey came to, as plain data, and the file that keeps it."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch

from mlir_npu import Explanation
from mlir_npu.graph_breaks import record_graph_breaks
from mlir_npu.lowering.region_modules import collect_modules
from mlir_npu.lowering.report import GraphReport, collect
from mlir_npu.passes.pipelines import STAGES
from mlir_npu.passes.run_stages import run_stage
from mlir_npu.scripts.networks.survey.entry import Entry
from mlir_npu.scripts.networks.survey.measure import Deviation, deviations, infer, train

FILE = Path(__file__).with_name("results.json")
REASONS = 2  # of each network, most frequent first

# The network does not ask for these: they are views, or too little to be worth a region.
_NO_LACK = ("it is a view", "its region of", "it depends on constants only")


@dataclass(frozen=True)
class Placement:
    """Of one call, or one step: graphs, breaks between them, regions, nodes and
    multiply-accumulates by place, and the worst deviation from float64 beside eager's."""

    graphs: int
    breaks: int
    regions: int
    npu_nodes: int
    host_nodes: int
    macs: int
    npu_macs: int
    ours: float
    eager: float
    failures: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def share(self) -> float:
        return self.npu_macs / self.macs if self.macs else 1.0


def try_inference(entry: Entry) -> Placement:
    return _try(entry, training=False)


def try_training(entry: Entry) -> Placement:
    return _try(entry, training=True)


def _try(entry: Entry, training: bool) -> Placement:
    torch._dynamo.reset()
    model, inputs = entry.build().train(training), entry.inputs()
    compiled = torch.compile(copy.deepcopy(model), backend="mlir_npu")
    with collect() as reports, record_graph_breaks() as breaks:
        found = deviations(model, compiled, inputs, train if training else infer)
    made = Explanation(tuple(reports), tuple(breaks), result=None)
    worst = max(found, key=_excess)
    return Placement(
        graphs=len(reports),
        breaks=len(breaks),
        regions=made.regions,
        npu_nodes=made.npu_nodes,
        host_nodes=made.host_nodes,
        macs=made.macs,
        npu_macs=made.npu_macs,
        ours=worst.ours,
        eager=worst.eager,
        failures=(*_failed_regions(reports), *(str(d) for d in found if not d.acceptable)),
        reasons=_reasons(reports),
    )


def count_kernels(entry: Entry) -> int:
    """Calls of kernels in one run of the network."""
    torch._dynamo.reset()
    model, inputs = entry.build().eval(), entry.inputs()
    with torch.no_grad(), collect_modules() as regions:
        torch.compile(model, backend="mlir_npu")(*inputs)
    return sum(_kernel_calls(region.module) for region in regions)


def _kernel_calls(module) -> int:
    with module.context:
        run_stage(module, STAGES[0])
    return len(re.findall(r"\bcall @(?!prepare)\w+\(", module.operation.get_asm()))


def _excess(deviation: Deviation) -> float:
    return (
        deviation.ours / deviation.tolerance if deviation.ours == deviation.ours else float("inf")
    )


def _failed_regions(reports: list[GraphReport]) -> list[str]:
    parts = [part for report in reports for part in report.parts if part.place == "npu"]
    return [
        f"{part.name} does not compile: {part.reason}" for part in parts if part.engine != "npu"
    ]


def _reasons(reports: list[GraphReport]) -> tuple[str, ...]:
    """Why calls are on the host, those that lack something; alike but for names and numbers."""
    counts: Counter[str] = Counter()
    for rejection in (rejection for report in reports for rejection in report.rejections):
        if not rejection.reason.startswith(_NO_LACK):
            op = rejection.op.removeprefix("aten.").removesuffix(".default")
            counts[f"{op}: {_without_names(rejection.reason)}"] += 1
    return tuple(f"{count} x {cause}" for cause, count in counts.most_common(REASONS))


def _without_names(reason: str) -> str:
    return re.sub(r"\b(operand|producer|positions) \w+", r"\1", reason)


@dataclass(frozen=True)
class Result:
    """Of one network; recipe: the entry's when it was tried."""

    recipe: str
    kernels: int
    inference: Placement
    training: Placement | None


def load() -> dict[str, Result]:
    if not FILE.exists():
        return {}
    return {name: _result(data) for name, data in json.loads(FILE.read_text()).items()}


def save(results: dict[str, Result]) -> None:
    data = {name: asdict(result) for name, result in results.items()}
    FILE.write_text(json.dumps(data, indent=1) + "\n")


def _result(data: dict) -> Result:
    placements = {
        field.name: _placement(data[field.name])
        for field in fields(Result)
        if field.name in ("inference", "training")
    }
    return Result(data["recipe"], data["kernels"], **placements)


def _placement(data: dict | None) -> Placement | None:
    if data is None:
        return None
    return Placement(**{name: tuple(v) if isinstance(v, list) else v for name, v in data.items()})
