"""The test command counts what its runners report, and never takes silence for success."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlir_npu.scripts import run_tests
from mlir_npu.scripts.run_tests import Counts, count

REPORT = """<testsuites>
<testsuite name="a" tests="5" failures="1" errors="1" skipped="1"><testcase/></testsuite>
<testsuite name="b" tests="2" failures="0" skipped="0"/>
</testsuites>"""


def test_counts_of_all_suites(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    assert count(report) == Counts(passed=4, failed=2, skipped=1)
    assert str(count(report)) == "4 passed, 2 failed, 1 skipped"


def test_a_missing_report_is_a_failure(tmp_path: Path) -> None:
    assert count(tmp_path / "none.xml") == Counts(failed=1)


@pytest.mark.parametrize(
    ("lit", "pytest_", "expected"),
    [
        ((0, Counts(3)), (0, Counts(2)), 0),
        ((1, Counts(2, 1)), (0, Counts(2)), 1),
        ((0, Counts(3)), (2, Counts(2)), 1),
        ((0, Counts()), (0, Counts()), 1),
    ],
)
def test_exit_code(lit, pytest_, expected, monkeypatch, capsys) -> None:
    results = {"lit": lit, "pytest": pytest_}
    monkeypatch.setattr(run_tests, "run", lambda title, command, report: results[title])
    assert run_tests.main([]) == expected
    assert capsys.readouterr().out.splitlines()[-1] == str(lit[1] + pytest_[1])


def test_arguments_reach_pytest(monkeypatch) -> None:
    commands = {}
    monkeypatch.setattr(
        run_tests,
        "run",
        lambda title, command, report: commands.update({title: command}) or (0, Counts(1)),
    )
    run_tests.main(["--slow", "--only", "pytest", "-k", "conv", "test/unit"])
    assert set(commands) == {"pytest"}
    assert commands["pytest"][-4:] == ["--slow", "-k", "conv", "test/unit"]
