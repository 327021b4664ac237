"""Tries the networks of the survey and keeps what came of them for docs/networks.md.

    python -m mlir_npu.scripts.survey_networks [--train] [NAME ...]

Without names it tries those that are new or whose recipe has changed. Each takes a minute or so.
The exit code is 1 if some network does not agree with eager or float64.
"""

from __future__ import annotations

import argparse
import logging
import sys

from mlir_npu.scripts.networks.survey.collection import BY_NAME
from mlir_npu.scripts.networks.survey.record import (
    Result,
    count_kernels,
    load,
    save,
    try_inference,
    try_training,
)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", action="store_true", help="try a training step too")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BY_NAME))
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in BY_NAME]:
        parser.error(f"no network is called {', '.join(unknown)}")
    logging.getLogger("mlir_npu").setLevel(logging.ERROR)  # the table says what ran on the host
    wrong = 0
    for name in options.names or _stale(options.train):
        try:
            wrong += not _try(name, options.train)
        except Exception as error:  # whatever a network raises is its result
            wrong += 1
            print(f"{name}: {type(error).__name__}: {error}", flush=True)
    results = load()
    save({name: results[name] for name in BY_NAME if name in results})
    print("now: python -m mlir_npu.scripts.update_docs")
    return 1 if wrong else 0


def _stale(train: bool) -> list[str]:
    kept = load()
    return [
        name
        for name, entry in BY_NAME.items()
        if name not in kept
        or kept[name].recipe != entry.recipe
        or (train and kept[name].training is None)
    ]


def _try(name: str, train: bool) -> bool:
    entry = BY_NAME[name]
    kept = load().get(name)
    current = kept is not None and kept.recipe == entry.recipe
    inference = kept.inference if current and train else try_inference(entry)
    training = try_training(entry) if train else (kept.training if current else None)
    kernels = kept.kernels if current and train else count_kernels(entry)
    save({**load(), name: Result(entry.recipe, kernels, inference, training)})
    tried = [placement for placement in (inference, training) if placement is not None]
    failures = [failure for placement in tried for failure in placement.failures]
    print(f"{name}: {inference.regions} regions, {inference.share:.0%} of the work", *failures,
          sep="\n  ", flush=True)  # fmt: skip
    return not failures


if __name__ == "__main__":
    sys.exit(main())
