"""Logging under the standard `mlir_npu` tree, set up from MLIR_NPU_LOGS as TORCH_LOGS is.

    MLIR_NPU_LOGS=info                  everything at INFO
    MLIR_NPU_LOGS=partition,+graph      mlir_npu.partition at INFO, mlir_npu.graph at DEBUG

Topics: autotune (what was measured), graph (parts, where they run, the stitched source), partition
(why not on the NPU), fallback (engines of host parts), passes (IR pipelines).

Without it, records go where the program's own logging sends them.
"""

from __future__ import annotations

import difflib
import functools
import logging
import os
import threading

from mlir_npu.errors import OptionsError

VARIABLE = "MLIR_NPU_LOGS"
ROOT = "mlir_npu"
TOPICS = ("autotune", "fallback", "graph", "partition", "passes")
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}

_told: set[str] = set()
_told_lock = threading.Lock()


@functools.cache
def configure_from_environment() -> None:
    """Do what the variable says, once: what the program sets later stays."""
    configure(os.environ.get(VARIABLE, ""))


def configure(text: str) -> None:
    """Set levels, and show records on stderr. Raises OptionsError for an unknown topic."""
    levels = parse(text)
    if not levels:
        return
    root = logging.getLogger(ROOT)
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def parse(text: str) -> dict[str, int]:
    """Logger name -> level of `info`, `+partition,graph`, ..."""
    levels = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        if item.lower() in _LEVELS:
            levels[ROOT] = _LEVELS[item.lower()]
            continue
        topic = item.lstrip("+").removeprefix(f"{ROOT}.")
        if topic not in TOPICS:
            valid = [*TOPICS, *_LEVELS]
            near = difflib.get_close_matches(topic, valid, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"valid are {', '.join(valid)}"
            raise OptionsError(f"{VARIABLE}={text}: no topic {topic!r}; {hint}")
        levels[f"{ROOT}.{topic}"] = logging.DEBUG if item.startswith("+") else logging.INFO
    return levels


def first_time(cause: str) -> bool:
    """True the first time `cause` is seen in this process."""
    with _told_lock:
        new = cause not in _told
        _told.add(cause)
    return new


def warn_once(logger: logging.Logger, cause: str, message: str) -> None:
    """Warn about `cause` the first time this process sees it; later ones are logged at INFO."""
    logger.log(logging.WARNING if first_time(cause) else logging.INFO, message)
