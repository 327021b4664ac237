import gc
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from aten_graphs import trace
from torch import nn
from torch.nn import functional as F

from mlir_npu.errors import RegionCompileError
from mlir_npu.lowering.compile_region import compile_region
from mlir_npu.lowering.plan import Part
from mlir_npu.options import Options
from mlir_npu.passes.pipelines import stage_names

SHAPES = [(1, 8, 10, 10), (16, 8, 3, 3), (16,), (16,), (16,), (16,)]


def block(x, w, gain, bias, mean, variance):
    x = F.conv2d(x, w, padding=1)
    return F.relu(F.batch_norm(x, mean, variance, gain, bias, False))


def part_of(function, *tensors, name="region_0"):
    graph_module = trace(function, *tensors)
    inputs = tuple(node.name for node in graph_module.graph.find_nodes(op="placeholder"))
    return Part(name, "npu", graph_module, inputs, (), 0, 0, 0)


def compiled_block(options=None):
    tensors = [torch.randn(SHAPES[0]), *(torch.rand(shape) + 0.5 for shape in SHAPES[1:])]
    part = part_of(block, *tensors)
    return compile_region(part, options or Options(), frozenset(part.inputs[1:])), tensors


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-4)


def test_a_block_matches_eager():
    region, tensors = compiled_block()
    (y,) = region(*tensors)
    assert_close(y, block(*tensors))
    assert region.signature.prepare is not None


@pytest.mark.parametrize("position", range(1, len(SHAPES)))
def test_every_weight_update_takes_effect(position):
    region, tensors = compiled_block()
    region(*tensors)
    tensors[position].mul_(1.5)
    assert_close(region(*tensors)[0], block(*tensors))
    tensors[position] = tensors[position] + 0.25
    assert_close(region(*tensors)[0], block(*tensors))


def test_channels_last_in_and_out():
    x = torch.randn(SHAPES[0]).to(memory_format=torch.channels_last)
    w = torch.randn(SHAPES[1])
    part = part_of(F.conv2d, x, w)
    region = compile_region(part, Options(), frozenset(part.inputs[1:]))
    (y,) = region(x, w)
    assert y.stride() == F.conv2d(x, w).stride()
    assert_close(y, F.conv2d(x, w))
    assert_close(region(x.contiguous(), w)[0], y)


def permuted(shape, order):
    """A tensor whose dims lie in memory in this order."""
    inverse = sorted(range(len(order)), key=order.__getitem__)
    return torch.randn([shape[dim] for dim in order]).permute(inverse)


@pytest.mark.parametrize("x_order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2)])
@pytest.mark.parametrize("w_order", [(0, 1, 2, 3), (0, 2, 3, 1), (2, 3, 1, 0)])
def test_any_memory_order_of_image_and_weight(x_order, w_order):
    x, w = permuted((2, 4, 5, 6), x_order), permuted((8, 4, 3, 3), w_order)
    part = part_of(F.conv2d, x, w)
    region = compile_region(part, Options(), frozenset(part.inputs[1:]))
    (y,) = region(x, w)
    assert_close(y, F.conv2d(x, w))
    (value,) = part.graph_module.graph.find_nodes(op="output")[0].args
    traced = value.meta["val"] if hasattr(value, "meta") else value[0].meta["val"]
    assert y.stride() == traced.stride()


@pytest.mark.parametrize("num_threads", [None, 2])
def test_threads_have_scratch_of_their_own(num_threads):
    """Large enough for a team; its size may change after compiling, and between Python threads."""
    x, w = torch.randn(1, 32, 32, 32), torch.randn(64, 32, 3, 3)
    part = part_of(lambda x, w: F.conv2d(F.relu(x), w, padding=1), x, w)
    region = compile_region(part, Options(num_threads=num_threads), frozenset(part.inputs[1:]))
    wanted, before, wrong = F.conv2d(F.relu(x), w, padding=1), torch.get_num_threads(), []

    def run(size):
        for _ in range(20):
            (y,) = region(x, w)
            if not torch.allclose(y, wanted, rtol=1e-4, atol=1e-4):
                wrong.append(size)

    try:
        for size in (1, 2, 3, 1):
            torch.set_num_threads(size)
            run(size)
            thread = threading.Thread(target=run, args=(-size,))
            thread.start()
            thread.join()
    finally:
        torch.set_num_threads(before)
    assert wrong == []


def test_results_that_are_the_same_value_do_not_share_memory():
    def function(x):
        y = torch.relu(x)
        return y, y.view(4, 4), torch.ops.aten.alias(x)

    part = part_of(function, torch.randn(16))
    region = compile_region(part, Options(), frozenset())
    x = torch.randn(16)
    a, b, c = region(x)
    assert torch.equal(a, x.relu())
    assert torch.equal(b, x.relu().view(4, 4))
    assert torch.equal(c, x)
    assert len({t.data_ptr() for t in (a, b, c, x)}) == 4


def test_eight_threads_share_a_region():
    region, tensors = compiled_block()
    inputs = [torch.randn(SHAPES[0]) for _ in range(8)]
    wanted = [block(x, *tensors[1:]) for x in inputs]
    start, wrong = threading.Barrier(8), []

    def work(index):
        start.wait()
        for _ in range(50):
            (y,) = region(inputs[index], *tensors[1:])
            if not torch.allclose(y, wanted[index], rtol=1e-4, atol=1e-4):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_threads_compile_at_the_same_time():
    wanted, got = {}, {}
    parts = {}
    for index in range(4):
        tensors = [torch.randn(1, 4 + index, 6, 6), torch.randn(8, 4 + index, 3, 3)]
        parts[index] = (part_of(F.conv2d, *tensors, name=f"region_{index}"), tensors)
        wanted[index] = F.conv2d(*tensors)

    def work(index):
        part, tensors = parts[index]
        region = compile_region(part, Options(), frozenset(part.inputs[1:]))
        (got[index],) = region(*tensors)

    threads = [threading.Thread(target=work, args=(i,)) for i in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for index, expected in wanted.items():
        assert_close(got[index], expected)


def resident_bytes():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def test_memory_is_flat_when_many_regions_are_compiled():
    weight = nn.Parameter(torch.randn(512, 512))  # 1 MiB, packed once more by each region
    x = torch.randn(2, 512)
    part = part_of(F.linear, x, weight)

    def once():
        region = compile_region(part, Options(), frozenset(part.inputs[1:]))
        region(x, weight)

    for _ in range(5):
        once()
    gc.collect()
    before = resident_bytes()
    for _ in range(30):
        once()
    gc.collect()
    assert (resident_bytes() - before) / 30 < 250_000


def test_dump_dir_holds_every_stage(tmp_path):
    compiled_block(Options(dump_dir=str(tmp_path)))
    names = sorted(path.name for path in (tmp_path / "region_0").iterdir())
    stages = ("import", *stage_names())
    assert names == [*(f"{i:02d}_{stage}.mlir" for i, stage in enumerate(stages)), "region.py"]
    assert "aten.convolution" in (tmp_path / "region_0" / "region.py").read_text()


def run_npu_opt(arguments):
    program = "import sys; from mlir_npu.scripts.npu_opt import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True
    )


def test_dumped_stages_are_readable_by_npu_opt(tmp_path):
    compiled_block(Options(dump_dir=str(tmp_path)))
    for path in sorted((tmp_path / "region_0").glob("*.mlir")):
        ran = run_npu_opt([str(path)])
        assert ran.returncode == 0, f"{path.name}: {ran.stderr}"


def test_a_failure_carries_the_command_that_repeats_it(tmp_path):
    with pytest.raises(RegionCompileError) as caught:
        compiled_block(Options(target="nano", schedule="serial", dump_dir=str(tmp_path)))
    assert "choose-tiles{mode=serial}" in caught.value.reproduction
    command = shlex.split(caught.value.reproduction)
    assert command[0] == "npu-opt"
    ran = run_npu_opt(command[1:])
    assert ran.returncode != 0
    needed = re.search(r"needs[^;]*", caught.value.cause).group()
    assert needed in ran.stderr


def test_a_failed_import_names_the_operator_and_the_graph(tmp_path):
    part = part_of(lambda x: torch.fft.fft(x).real, torch.randn(2, 4))
    with pytest.raises(RegionCompileError, match=r"aten\._fft_r2c") as caught:
        compile_region(part, Options(dump_dir=str(tmp_path)), frozenset())
    assert str(tmp_path / "region_0" / "region.py") in caught.value.reproduction
