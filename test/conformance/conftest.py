"""Which of the two runs is collected."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    wanted = config.getoption("--conformance")
    other = {"first": "test_all_samples.py", "all": "test_first_samples.py"}[wanted]
    return True if collection_path.name == other else None
