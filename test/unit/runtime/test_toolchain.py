import os
import time

import pytest

from mlir_npu.runtime import toolchain


@pytest.fixture(autouse=True)
def fresh():
    yield
    toolchain.toolchain.cache_clear()


def line() -> str:
    toolchain.toolchain.cache_clear()
    return toolchain.toolchain()


@pytest.fixture
def source(tmp_path, monkeypatch):
    path = tmp_path / "a_pass.py"
    path.write_text("x = 1\n")
    os.utime(path, (1000, 1000))
    monkeypatch.setattr(toolchain, "_sources", lambda: [("passes/a_pass.py", path)])
    return path


def test_changes_with_the_contents_of_the_package(source):
    before = line()
    assert before == line()
    source.write_text("x = 2\n")
    os.utime(source, (1000, 1000))
    assert line() != before


def test_process_that_outlives_an_edit_shares_nothing(source):
    assert toolchain.is_current()
    before = line()
    source.touch()
    os.utime(source, (time.time() + 5, time.time() + 5))
    assert not toolchain.is_current()
    assert "process" in line() and line() != before


def test_changes_with_tools_and_cpu(monkeypatch):
    lines = {line()}
    with monkeypatch.context() as patch:
        patch.setattr(toolchain.importlib.metadata, "version", lambda tool: "0.1")
        lines.add(line())
    with monkeypatch.context() as patch:
        patch.setattr(toolchain, "cpu_flags", lambda: frozenset({"sse2"}))
        lines.add(line())
    with monkeypatch.context() as patch:
        patch.setattr(toolchain.platform, "machine", lambda: "other")
        lines.add(line())
    assert len(lines) == 4


def test_reads_real_sources():
    names = {name for name, _ in toolchain._sources()}
    assert {"passes/pipelines.py", "dialect/targets/edge.toml", "lowering/retrace.py"} <= names


def test_parts_of_a_key_are_kept_apart():
    keys = {
        toolchain.digest(*parts)
        for parts in (["ab", "c"], ["a", "bc"], ["abc"], ["abc", ""], ["c", "ab"], [b"abd"])
    }
    assert len(keys) == 6
    assert toolchain.digest("a") == toolchain.digest(b"a")
