"""Writes the parts of docs/ that come from the code: tables, the dialect reference, the case study.

    python -m mlir_npu.scripts.update_docs [--check]

A part stands between `<!-- begin NAME -->` and `<!-- end NAME -->`. With --check it is compared;
the exit code is 1 if a part is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from pathlib import Path

from mlir_npu.scripts.docs import (
    case_study,
    case_study_cycles,
    dialect_reference,
    networks,
    tables,
    token_mistakes,
)

DOCS = Path(__file__).resolve().parent.parent / "docs"

PARTS: dict[str, Callable[[], str]] = {
    "options": tables.options,
    "support": tables.support,
    "edge-target": tables.edge_target,
    "networks-missing": networks.missing,
    "networks-tolerance": networks.tolerance,
    "networks-inference": networks.inference,
    "networks-training": networks.training,
    "networks-host": networks.host,
    "networks-failures": networks.failures,
    "stages": tables.stages,
    "passes": tables.passes,
    "dialect-attributes": dialect_reference.attributes,
    "dialect-ops": dialect_reference.ops,
    "dialect-checks": dialect_reference.checks,
    "dialect-tokens": token_mistakes.checks,
    "case-study-stages": case_study.table,
    "case-study-input": case_study.source,
    "case-study-target": case_study.machine,
    "case-study-passes": case_study.passes,
    "case-study-cycles": case_study_cycles.cycles,
}


def filled(text: str) -> str:
    """`text` with every part written anew. Raises KeyError for a part that does not exist."""

    def part(match: re.Match[str]) -> str:
        name = match.group(1)
        return f"<!-- begin {name} -->\n{PARTS[name]()}\n<!-- end {name} -->"

    return re.sub(r"<!-- begin ([\w-]+) -->\n.*?<!-- end \1 -->", part, text, flags=re.DOTALL)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing, compare only")
    check = parser.parse_args(arguments).check
    stale = []
    for path in sorted(DOCS.glob("*.md")):
        old = path.read_text()
        new = filled(old)
        if new != old:
            stale.append(path.name)
            if not check:
                path.write_text(new)
    for name in stale:
        print(f"docs/{name}: {'out of date; run this without --check' if check else 'updated'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
