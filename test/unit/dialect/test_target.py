"""Targets: what ships, what a file may say, how the host looks, the way through an attribute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mlir_npu.dialect import host_cpu
from mlir_npu.dialect.bindings import ir, make_context
from mlir_npu.dialect.target import (
    MacsPerCell,
    MatrixUnit,
    Target,
    TargetError,
    available_targets,
    load_target,
    set_target,
    target_of,
)

INPUTS = Path(__file__).resolve().parents[2] / "lit" / "Inputs"


def write(folder: Path, *edits: tuple[str, str]) -> Path:
    """avx2.toml with text replaced."""
    text = (INPUTS / "avx2.toml").read_text()
    for old, new in edits:
        assert old in text
        text = text.replace(old, new, 1)
    path = folder / "edited.toml"
    path.write_text(text)
    return path


def test_every_shipped_target_loads_under_its_own_name():
    assert available_targets() == ["edge", "host", "nano", "small"]
    for name in available_targets():
        target = load_target(name)
        assert target.name == name
        assert target.cached == (name == "host")


def test_edge_is_the_documented_machine():
    edge = load_target("edge")
    assert (edge.matrix.rows, edge.matrix.cols) == (16, 16)
    assert edge.matrix.macs_per_cell == MacsPerCell(f32=1, f16=1, i8=4)
    assert (edge.sram.bytes, edge.acc.bytes) == (512 * 1024, 64 * 1024)
    assert edge.vector.lanes == 64
    dma = edge.dma
    assert (dma.channels, dma.setup_cycles, dma.bytes_per_cycle, dma.max_rank) == (1, 100, 32, 4)
    assert edge.clock_hz == 1_000_000_000


@pytest.mark.parametrize(
    ("element_type", "rate"),
    [("f32", 1), ("f64", 1), ("i32", 1), ("index", 1), ("f16", 2), ("bf16", 2), ("i8", 4)]
    + [("ui8", 4), ("f8E4M3FN", 4)],
)
def test_a_rate_goes_by_the_width_of_the_type(element_type, rate):
    assert MatrixUnit(4, 4, MacsPerCell(f32=1, f16=2, i8=4)).rate(element_type) == rate


@pytest.mark.parametrize("name", ["edge", "host", "nano", "small"])
def test_a_target_survives_its_attribute(name):
    target = replace(load_target(name), description='with "quotes" and \\ and ü')
    with make_context() as context:
        attribute = target.to_attribute(context)
        assert Target.from_attribute(ir.Attribute.parse(str(attribute))) == target


def test_a_module_carries_its_target():
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse("module {}").operation
        with pytest.raises(TargetError, match=r"no npu\.target attribute"):
            target_of(module)
        set_target(module, load_target("small"))
        assert target_of(module) == load_target("small")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("unit", r"must be a #npu\.target, got unit"),
        ('#npu.target<{name = "x"}>', "missing key 'description'"),
        ("#npu.target<{nmae = 1}>", "unknown key 'nmae'; did you mean 'name'"),
    ],
)
def test_a_bad_attribute_is_a_target_error(text, message):
    with make_context(), pytest.raises(TargetError, match=message):
        Target.from_attribute(ir.Attribute.parse(text))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("cores = 2", "", "missing key 'cores'"),
        ("[vector]", "[vektor]", "unknown key 'vektor'; did you mean 'vector'?"),
        ("lanes = 8", "lane = 8", "unknown key 'vector.lane'; did you mean 'vector.lanes'?"),
        ("lanes = 8", "", "missing key 'vector.lanes'"),
        (
            "lanes = 8",
            "lanes = 0",
            "'vector.lanes' must be an integer in [1, 1024], got 0",
        ),
        (
            "lanes = 8",
            "lanes = -8",
            "'vector.lanes' must be an integer in [1, 1024], got -8",
        ),
        (
            "lanes = 8",
            "lanes = 8.5",
            "'vector.lanes' must be an integer in [1, 1024], got 8",
        ),
        ("lanes = 8", "lanes = true", "must be an integer in [1, 1024], got True"),
        ("lanes = 8", 'lanes = "8"', "must be an integer in [1, 1024], got '8'"),
        ("lanes = 8", "lanes = inf", "must be an integer in [1, 1024], got inf"),
        (
            "lanes = 8",
            "lanes = 1_025",
            "'vector.lanes' must be an integer in [1, 1024], got 1025",
        ),
        ("channels = 1", "channels = 65", "'dma.channels' must be an integer in [1, 64], got 65"),
        ("max_rank = 8", "max_rank = 65", "'dma.max_rank' must be an integer in [1, 64], got 65"),
        (
            "clock_hz = 3_000_000_000",
            "clock_hz = 1_099_511_627_777",
            "'clock_hz' must be an integer in [1, 1099511627776], got 1099511627777",
        ),
        ("alignment = 64", "alignment = 48", "sram.alignment must be a power of two, got 48"),
        (
            "alignment = 64",
            "alignment = 1_048_576",
            "sram.alignment must be at most the 524288 bytes of the memory, got 1048576",
        ),
        ("i8 = 1", "i8 = 0", "'matrix.macs_per_cell.i8' must be an integer in [1, 65536]"),
        ("i8 = 1", "", "missing key 'matrix.macs_per_cell.i8'"),
        ("i8 = 1", "i9 = 1", "unknown key 'matrix.macs_per_cell.i9'; known: f32, f16, i8"),
        (
            "[matrix.macs_per_cell]\nf32 = 1\nf16 = 1\ni8 = 1",
            "macs_per_cell = 1",
            "'matrix.macs_per_cell' must be a table of f32, f16, i8, got 1",
        ),
        ("cached = true", "cached = 1", "'cached' must be true or false, got 1"),
        ('name = "avx2"', "name = 2", "'name' must be text, got 2"),
        ('name = "avx2"', 'name = ""', "name must not be empty"),
        ("cores = 2", "cores = 2\nacc = 3", "Cannot"),
        ("cores = 2", "cores = ", "Invalid value (at line 5, column 9)"),
    ],
)
def test_a_bad_file_is_named_with_key_and_value(tmp_path, old, new, message):
    path = write(tmp_path, (old, new))
    with pytest.raises(TargetError) as caught:
        load_target(path)
    assert str(caught.value).startswith(f"target file '{path}': ")
    assert message in str(caught.value)


def test_a_table_cannot_be_a_number(tmp_path):
    text = (INPUTS / "avx2.toml").read_text()
    head, _, tail = text.partition("[sram]")
    path = tmp_path / "flat.toml"
    path.write_text(f"sram = 3\n{head}{tail.partition('[acc]')[1]}{tail.partition('[acc]')[2]}")
    with pytest.raises(TargetError, match="'sram' must be a table of bytes, alignment, got 3"):
        load_target(path)


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "binary.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetError, match=f"target file '{path}': it is not UTF-8 text"):
        load_target(path)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("edgy", "did you mean 'edge'?"),
        ("zzz", "there are edge, host, nano, small"),
        ("/nowhere/machine.toml", "no .toml file is there"),
    ],
)
def test_an_unknown_name_lists_what_there_is(name, message):
    with pytest.raises(TargetError) as caught:
        load_target(name)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "machine", "unit"),
    [
        ({"avx512f", "avx512vl", "avx512dq", "avx2", "fma"}, "x86_64", (16, 32)),
        ({"avx512f", "avx2", "fma"}, "x86_64", (8, 16)),
        ({"avx2"}, "x86_64", (4, 16)),
        (set(), "x86_64", (4, 16)),
        (set(), "aarch64", (4, 32)),
    ],
)
def test_vector_unit_from_cpu_flags(flags, machine, unit):
    assert host_cpu.vector_unit(frozenset(flags), machine) == unit


def test_byte_products_from_cpu_flags():
    assert host_cpu.byte_products(frozenset({"avx512_vnni", "avx512vl"})) == 4
    assert host_cpu.byte_products(frozenset({"avx512vl", "avx512f"})) == 1


def test_a_file_overrides_what_was_detected(tmp_path, monkeypatch):
    monkeypatch.setattr(host_cpu, "cpu_flags", lambda: frozenset({"avx2", "fma"}))
    monkeypatch.setattr(host_cpu, "l2_bytes", lambda: 123_456)
    path = write(tmp_path, ("cores = 2", "cores = 7\ndetect = true"), ("lanes = 8\n", ""))
    target = load_target(path)
    assert target.cores == 7
    assert target.vector.registers == 16
    assert target.sram.bytes == load_target(INPUTS / "avx2.toml").sram.bytes


def test_detect_must_be_a_boolean(tmp_path):
    path = write(tmp_path, ("cores = 2", 'cores = 2\ndetect = "no"'))
    with pytest.raises(TargetError, match="'detect' must be true or false, got 'no'"):
        load_target(path)
