"""One sample of every operator in PyTorch's database, through torch.compile."""

from __future__ import annotations

import dataclasses

import opinfo_known
import pytest
from opinfo_cases import SUITES, all_ops
from opinfo_run import run_op
from run import cases

SUITE = dataclasses.replace(SUITES["forward"], first_only=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for _, name in cases([SUITE.name], sorted(all_ops()))])
def test_first_sample(name: str) -> None:
    values = name not in opinfo_known.undefined_values()
    result = vars(run_op(all_ops()[name], SUITE, values=values))
    assert not opinfo_known.problems(SUITE.name, {name: result}, complete=False)
    assert result["passed"] or result["left_out"] or result["upstream"]


def test_listed_operators_exist() -> None:
    listed = {name for suite in SUITES for name in opinfo_known.listed(suite)}
    assert listed | opinfo_known.undefined_values() <= set(all_ops())
