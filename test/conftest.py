"""What all tests share: which of them run, and a clean start for each."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections import Counter

# One cache for all processes of a run, and none that an earlier run left.
if "MLIR_NPU_TEST_CACHE" not in os.environ:
    os.environ["MLIR_NPU_TEST_CACHE"] = tempfile.mkdtemp(prefix="mlir-npu-test-cache-")
    atexit.register(shutil.rmtree, os.environ["MLIR_NPU_TEST_CACHE"], ignore_errors=True)
os.environ["MLIR_NPU_CACHE_DIR"] = os.environ["MLIR_NPU_TEST_CACHE"]

# Several test processes share the cores. Tests of threads ask for theirs by name.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")
    parser.addoption("--fast", action="store_true", help="leave out the tests marked network")
    parser.addoption(
        "--conformance", choices=("first", "all"), default="first", help="samples of each operator"
    )
    parser.addoption("--conformance-shard", default="1/1", help="k/n: part k of n of --conformance")


# What PyTorch's generator starts from.
_FIRST_SEED = 67280421310721


def pytest_collectstart(collector: pytest.Collector) -> None:
    """The numbers that a file draws when it is imported are the same alone and among others."""
    if isinstance(collector, pytest.Module) and "torch" in sys.modules:
        sys.modules["torch"].manual_seed(_FIRST_SEED)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = set()
    if not config.getoption("--slow"):
        left_out.add("slow")
    if config.getoption("--fast"):
        left_out.add("network")
    kept = [i for i in items if not left_out & {mark.name for mark in i.iter_markers()}]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[i for i in items if i not in set(kept)])
        items[:] = kept


@pytest.fixture(autouse=True)
def fresh_torch() -> None:
    """The same random numbers for every test, and nothing compiled by an earlier one.

    Tests of the dialect and the passes do without torch; it is not imported for them.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return
    torch.manual_seed(0)
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()


def pytest_terminal_summary(terminalreporter) -> None:
    """Totals of what tests recorded as "counted", dictionaries of numbers."""
    totals: Counter[str] = Counter()
    for report in [r for kind in ("passed", "failed") for r in terminalreporter.getreports(kind)]:
        if report.when == "call":
            for counted in (value for name, value in report.user_properties if name == "counted"):
                totals.update(counted)
    for what, count in totals.items():
        terminalreporter.write_line(f"{count:,} {what}")
