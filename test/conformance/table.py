"""Writes docs/conformance.md from the results of run.py.

python test/conformance/table.py results.jsonl
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import torch
from opinfo_cases import SUITES, Suite
from opinfo_known import listed, undefined_values
from run import read_results

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

HEAD = """\
# Conformance

<!-- written by test/conformance/table.py -->

Every operator in PyTorch's own test database, `op_db` in
`torch.testing._internal.common_methods_invocations` (torch {version}), with all sample inputs,
compiled and compared with eager: values, element types, shapes, strides, which results and inputs
share memory or are the same object, what happened to the inputs, and gradients.

"""

METHOD = """
* *Ops*: operators that have been run; *whole*, where not all are: with all samples, not with some.
* *Samples*: calls that eager can make. *Passed*: same as eager. *Listed*: PyTorch's own
  `backend="aot_eager"` differs from eager on them too, or its tracing promises other strides than
  its kernels give; the operators are listed below, and one that works again fails the run.
  *Failed*: all others.
* *Uncaptured*: of those that passed, the ones that Dynamo leaves to eager as a whole.
* Samples are tiny, so with default options nearly all work stays on the host. The suites named npu
  give every supported node to the NPU path (`min_region_macs=0`) and leave out samples without one.
* The first forward of each operator goes through `torch.compile`; the others go through AOTAutograd
  and the backend without Dynamo, and again through `torch.compile` where that differs. Samples that
  differ only in values share their compiled code.
* The last columns count compiled parts by what runs them; those that two run in pieces count for
  both.
* Strides of dimensions of one element reach no memory and are not compared, as in PyTorch's tests.
* Results of {undefined} hold memory that nobody wrote: everything but their values is compared.

Run one operator, a part, or everything (hours on one core; it goes on where it was stopped):

```bash
python test/conformance/run.py --results results.jsonl --op nn.functional.conv2d
python test/conformance/run.py --results results.jsonl --suite forward --shard 1/4
pytest test/conformance --conformance=all --conformance-shard=1/4
python test/conformance/table.py results.jsonl     # writes this page
```

`./scripts/test` runs one sample of each operator.
"""


def main(results_path: str) -> None:
    results = read_results(Path(results_path))
    engines = ("npu", "llvm", "inductor", "eager")
    columns = (
        "suite",
        "types",
        "ops",
        "samples",
        "passed",
        "uncaptured",
        "listed",
        "failed",
        *engines,
    )
    lines = [_row(columns), _row(["---", "---", *["---:"] * (len(columns) - 2)])]
    for name, suite in SUITES.items():
        if name in results:
            lines.append(_row(_numbers(suite, results[name], engines)))
    undefined = ", ".join(f"`{name}`" for name in sorted(undefined_values()))
    text = HEAD.format(version=torch.__version__.partition("+")[0]) + "\n".join(lines) + "\n"
    text += METHOD.format(undefined=undefined) + _upstream(results)
    PAGE.write_text(text)


def _numbers(suite: Suite, results: dict[str, dict], engines: tuple[str, ...]) -> list[str]:
    ran = [result for result in results.values() if sum(_counts(result))]
    passed, upstream, failed = map(sum, zip(*map(_counts, ran)))
    dtypes = sorted({result["dtype"] for result in ran}, key=_by_count(ran))
    types = dtypes[0] if len(dtypes) == 1 else f"{dtypes[0]} and {len(dtypes) - 1} more"
    totals = [sum(_parts_on(engine, result) for result in ran) for engine in engines]
    uncaptured = sum(result["uncaptured"] for result in ran)
    numbers = (passed + upstream + failed, passed, uncaptured, upstream, failed, *totals)
    return [suite.name, types, _part(ran, suite), *(f"{number:,}" for number in numbers)]


def _parts_on(engine: str, result: dict) -> int:
    return sum(n for name, n in result["engines"].items() if engine in name.split(" and "))


def _part(ran: list[dict], suite: Suite) -> str:
    """How many operators, and of those how many have had all of their samples run."""
    whole = [r for r in ran if suite.first_only or sum(_counts(r)) + r["left_out"] == r["total"]]
    return f"{len(ran):,}" if len(whole) == len(ran) else f"{len(ran):,} ({len(whole):,} whole)"


def _counts(result: dict) -> tuple[int, int, int]:
    return result["passed"], len(result["upstream"]), len(result["failed"])


def _by_count(ran: list[dict]):
    return lambda dtype: -sum(result["dtype"] == dtype for result in ran)


def _upstream(results: dict[str, dict[str, dict]]) -> str:
    """Listed operators with their reasons, equal ones of several suites together."""
    suites: dict[tuple[str, str], list[str]] = {}
    for suite in SUITES:
        for name, reason in listed(suite).items():
            if suite in results:
                suites.setdefault((name, reason), []).append(suite)
    if not suites:
        return ""
    lines = [_row(("operator", "suites", "what PyTorch does")), _row(["---"] * 3)]
    lines += [
        _row((f"`{name}`", ", ".join(where), reason))
        for (name, reason), where in sorted(suites.items())
    ]
    return "\n## Listed\n\n" + "\n".join(lines) + "\n"


def _row(cells) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main(*sys.argv[1:])
