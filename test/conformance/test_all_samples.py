"""Every sample of every operator in PyTorch's database: pytest --conformance=all.

That takes hours; --conformance-shard=k/n runs a part of it. `run.py` does the same without pytest,
keeps results and goes on where it was stopped.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import opinfo_known
import pytest
from opinfo_cases import SUITES, all_ops
from run import Pool, cases, shard


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "suite" in metafunc.fixturenames:
        names = shard(sorted(all_ops()), metafunc.config.getoption("--conformance-shard"))
        metafunc.parametrize(("suite", "name"), cases(SUITES, names))


@pytest.fixture(scope="session")
def pool() -> Iterator[Pool]:
    with contextlib.closing(Pool()) as pool:
        yield pool


def test_all_samples(pool: Pool, suite: str, name: str) -> None:
    assert not opinfo_known.problems(suite, {name: pool.run(suite, name)})
