"""Logging under the standard `mlir_npu` tree, set up from MLIR_NPU_LOGS as TORCH_LOGS is.

    MLIR_NPU_LOGS=info                  everything at INFO
    MLIR_NPU_LOGS=partition,+region     mlir_npu.partition at INFO, mlir_npu.region at DEBUG

Without it, records go where the program's own logging sends them.
"""

from __future__ import annotations

import logging
import os
import threading

VARIABLE = "MLIR_NPU_LOGS"
ROOT = "mlir_npu"
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING}

_told: set[str] = set()
_told_lock = threading.Lock()


def configure(text: str | None = None) -> None:
    """Set levels from `text`, by default the environment variable, and show records on stderr."""
    text = os.environ.get(VARIABLE, "") if text is None else text
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
    """Logger name -> level of `info`, `+partition,region`, ..."""
    levels = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        if item.lower() in _LEVELS:
            levels[ROOT] = _LEVELS[item.lower()]
            continue
        level = logging.DEBUG if item.startswith("+") else logging.INFO
        levels[f"{ROOT}.{item.lstrip('+').removeprefix(ROOT + '.')}"] = level
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
