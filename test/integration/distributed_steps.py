"""A few training steps of a small network, in one process and in several that share each batch."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from mlir_npu.lowering.report import collect

WORLD, BATCH, STEPS = 2, 8, 3
WAIT = datetime.timedelta(seconds=40)  # for the other process, in each collective


class Block(nn.Module):
    """Normalized by groups, because the statistics of a batch depend on who shares it."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, padding=1)
        self.norm = nn.GroupNorm(2, outputs)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Block(3, 8, 1), Block(8, 16, 2)])
        self.wide = nn.Linear(576, 512)  # fills DDP's first bucket, of 1 MiB
        self.head = nn.Linear(512, 10)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(torch.relu(self.wide(x.flatten(1))))


def ddp_of_compiled(model: nn.Module) -> nn.Module:
    return DistributedDataParallel(torch.compile(model, backend="mlir_npu"))


def compiled_ddp(model: nn.Module) -> nn.Module:
    """Dynamo cuts the graph where a bucket of gradients is full."""
    return torch.compile(DistributedDataParallel(model), backend="mlir_npu")


def fsdp_of_compiled(model: nn.Module) -> nn.Module:
    model.compile(backend="mlir_npu")
    return _sharded(model)


def compiled_fsdp(model: nn.Module) -> nn.Module:
    return torch.compile(_sharded(model), backend="mlir_npu")


def compiled_blocks_fsdp(model: nn.Module) -> nn.Module:
    for block in model.blocks:
        block.compile(backend="mlir_npu")
    return _sharded(model)


def _sharded(model: nn.Module) -> nn.Module:
    mesh = init_device_mesh("cpu", (WORLD,))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


WRAPPERS = {
    wrapper.__name__: wrapper
    for wrapper in (
        ddp_of_compiled,
        compiled_ddp,
        fsdp_of_compiled,
        compiled_fsdp,
        compiled_blocks_fsdp,
    )
}


def train(wrap=lambda model: model, rank: int = 0, world: int = 1) -> list[float]:
    """Losses of whole batches, of which this process sees its share, and then the sums of the
    absolute values of what was trained."""
    torch.manual_seed(0)
    network = Network()
    model = wrap(network)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    numbers = []
    for _ in range(STEPS):
        x, y = torch.randn(BATCH, 3, 12, 12), torch.randint(0, 10, (BATCH,))
        share = slice(rank * BATCH // world, (rank + 1) * BATCH // world)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[share]), y[share])
        loss.backward()
        optimizer.step()
        numbers.append(_mean(loss.detach(), world))
    for parameter in network.parameters():
        whole = parameter.full_tensor() if hasattr(parameter, "full_tensor") else parameter
        numbers.append(whole.detach().abs().sum().item())
    return numbers


def _mean(loss: torch.Tensor, world: int) -> float:
    if world > 1:
        dist.all_reduce(loss)
    return loss.item() / world


def work(rank: int, folder: str) -> None:
    """One of WORLD processes. Leaves, for each way to wrap, its numbers and what ran on the NPU."""
    torch.set_num_threads(1)
    rendezvous = f"file://{folder}/rendezvous"
    dist.init_process_group(
        "gloo", init_method=rendezvous, rank=rank, world_size=WORLD, timeout=WAIT
    )
    results = {}
    for name, wrap in WRAPPERS.items():
        torch._dynamo.reset()
        with collect() as reports:
            numbers = train(wrap, rank, WORLD)
        on_npu = {
            kind: [
                op for graph in reports if graph.kind == kind for p in graph.regions for op in p.ops
            ]
            for kind in ("forward", "backward")
        }
        results[name] = {"numbers": numbers, **on_npu, "graphs": len(reports)}
        Path(folder, f"{rank}.json").write_text(json.dumps(results))
    dist.destroy_process_group()
