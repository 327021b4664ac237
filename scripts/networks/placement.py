"""What ran where, summed over the graphs of one compilation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mlir_npu.lowering.report import GraphReport


@dataclass(frozen=True)
class Placement:
    """Counts of one compiled network. `regions` are those that a kernel was really built for: a
    region that failed to compile and fell back to the host counts as host.

    nodes: ATen calls; macs: multiply-accumulates of one call; conv_macs: those of convolutions.
    """

    graphs: int
    regions: int
    nodes: int
    npu_nodes: int
    macs: int
    npu_macs: int
    conv_macs: int
    npu_conv_macs: int

    @property
    def host_nodes(self) -> int:
        return self.nodes - self.npu_nodes


def placement(reports: Iterable[GraphReport]) -> Placement:
    reports = list(reports)
    parts = [part for report in reports for part in report.parts]
    npu = [part for report in reports for part in report.regions]
    return Placement(
        graphs=len(reports),
        regions=len(npu),
        nodes=sum(part.node_count for part in parts),
        npu_nodes=sum(part.node_count for part in npu),
        macs=sum(part.macs for part in parts),
        npu_macs=sum(part.macs for part in npu),
        conv_macs=sum(part.conv_macs for part in parts),
        npu_conv_macs=sum(part.conv_macs for part in npu),
    )
