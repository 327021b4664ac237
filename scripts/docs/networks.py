"""The tables of docs/networks.md, from what the survey of networks has kept."""

from __future__ import annotations

from mlir_npu.scripts.networks.survey.collection import BY_NAME
from mlir_npu.scripts.networks.survey.measure import LEAST_SCALE, TIMES_EAGER, UNITS
from mlir_npu.scripts.networks.survey.record import Placement, load


def inference() -> str:
    """A row for each network."""
    rows = [
        "| network | graphs | breaks | regions | kernels | nodes on NPU / host | MACs | on NPU "
        "| error | eager's error |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, result in load().items():
        place = result.inference
        rows.append(
            f"| {name} | {place.graphs} | {place.breaks} | {place.regions} | {result.kernels} "
            f"| {place.npu_nodes} / {place.host_nodes} | {_errors_after_macs(place)} |"
        )
    return "\n".join(rows)


def training() -> str:
    """A row for each network of which a training step was tried."""
    rows = [
        "| network | regions | nodes on NPU / host | MACs | on NPU | error | eager's error |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, result in load().items():
        if (place := result.training) is not None:
            rows.append(
                f"| {name} | {place.regions} | {place.npu_nodes} / {place.host_nodes} "
                f"| {_errors_after_macs(place)} |"
            )
    return "\n".join(rows)


def host() -> str:
    """Why work stays on the host in inference, by network."""
    rows = ["| network | the most frequent reasons |", "|---|---|"]
    for name, result in load().items():
        if result.inference.reasons:
            rows.append(f"| {name} | {'<br>'.join(result.inference.reasons)} |")
    return "\n".join(rows)


def failures() -> str:
    """What does not hold that should."""
    found = [
        f"* {name}, {kind}: {failure}"
        for name, result in load().items()
        for kind, place in (("inference", result.inference), ("training", result.training))
        for failure in (place.failures if place is not None else ())
    ]
    return "\n".join(found) or "None."


def missing() -> str:
    """Networks that are in the collection and have not been tried."""
    kept = load()
    names = [name for name in BY_NAME if name not in kept]
    untrained = sum(result.training is None for result in kept.values())
    listed = f" Not tried yet: {', '.join(names)}." if names else ""
    return (
        f"{len(kept)} of {len(BY_NAME)} networks have been tried in inference, "
        f"{len(kept) - untrained} in training.{listed}"
    )


def tolerance() -> str:
    return (
        f"A compiled tensor may be {TIMES_EAGER} times as far from the float64 one as eager's is, "
        f"and {UNITS} units in the last place of its largest value. Gradients that are 0 but for "
        f"rounding are measured by {LEAST_SCALE:g} of the step's largest gradient."
    )


def _errors_after_macs(place: Placement) -> str:
    """MACs, share on the NPU, errors: four cells."""
    macs = f"{place.macs / 1e6:.2f} M"
    return f"{macs} | {100 * place.share:.0f} % | {place.ours:.1e} | {place.eager:.1e}"
