"""A process that runs operators one after another, so that a native crash costs one sample.

It reads one JSON object a line, {"suite": ..., "op": ..., "limit": ..., "skip": [...]}, and answers
each with one line; before each sample it writes the sample's number to the file given as argument.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
from opinfo_cases import SUITES, all_ops
from opinfo_known import undefined_values
from opinfo_run import OpResult, run_op

MEMORY_LIMIT = 3 * 2**30  # compiled code adds up; a worker that has more is replaced


def main(progress_path: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what operators print must not come between answers
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    undefined = undefined_values()
    with open(progress_path, "w") as progress:

        def on_sample(index: int) -> None:
            progress.seek(0)
            progress.write(f"{index:8d}")
            progress.flush()

        for line in sys.stdin:
            request = json.loads(line)
            on_sample(-1)
            answer = _answer(request, undefined, on_sample)
            answers.write(json.dumps(answer) + "\n")
            answers.flush()


def _answer(request: dict, undefined: frozenset[str], on_sample) -> dict:
    name = request["op"]
    try:
        result = run_op(
            all_ops()[name],
            SUITES[request["suite"]],
            values=name not in undefined,
            limit=request["limit"],
            skip=frozenset(request["skip"]),
            on_sample=on_sample,
        )
    except Exception as error:  # the database itself cannot make its samples
        result = OpResult(failed={-1: f"no samples: {type(error).__name__}: {error}"})
    torch._dynamo.reset()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return vars(result) | {"tired": peak > MEMORY_LIMIT}


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main(sys.argv[1])
