"""A process that compiles, without torch: reads jobs from its input, writes replies to its output.

A message is its length in 8 bytes and a pickle. The first one out says that the worker is ready. A
job is the name of a method of `Session` and its arguments; a reply is whether it went well, the
result or the exception, and what was logged. The worker ends when its input does, or with nothing
to do for IDLE_SECONDS.
"""

from __future__ import annotations

import faulthandler
import logging
import os
import pickle
import select
import signal
from typing import Any, BinaryIO

IDLE_SECONDS = 30
PAUSE_SECONDS = 1


def send(file: BinaryIO, message: Any) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    file.write(len(data).to_bytes(8, "little") + data)
    file.flush()


def receive(file: BinaryIO) -> Any:
    """Raises EOFError if the other side is gone."""
    size = int.from_bytes(_read(file, 8), "little")
    return pickle.loads(_read(file, size))


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise EOFError
    return data


def main() -> None:
    jobs, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what native code prints is not a reply
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this
    faulthandler.enable()
    records = _collect_records()
    session = _session()
    send(replies, "ready")
    while _is_told(jobs):
        try:
            method, arguments = receive(jobs)
        except EOFError:
            return
        send(replies, (*_run(session, method, arguments), records.copy()))
        records.clear()


def _is_told(jobs: BinaryIO) -> bool:
    """Wait for a job or the end of the input, tidying up meanwhile; False: neither for long."""
    from mlir_npu.runtime import emit

    if select.select([jobs], [], [], PAUSE_SECONDS)[0]:
        return True
    emit.finished = []
    return bool(select.select([jobs], [], [], IDLE_SECONDS)[0])


def _run(session: Any, method: str, arguments: tuple) -> tuple[bool, Any]:
    try:
        return True, getattr(session, method)(*arguments)
    except Exception as error:
        logging.getLogger("mlir_npu.passes").debug("in a worker", exc_info=True)
        return False, _portable(error)


def _portable(error: Exception) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")


def _session() -> Any:
    """Loads what all jobs need."""
    from mlir_npu.passes.pipelines import HOST_STAGES, STAGES
    from mlir_npu.passes.registry import find_pass
    from mlir_npu.runtime import emit
    from mlir_npu.runtime.compile_jobs import Session

    for stage in (*STAGES, *HOST_STAGES):
        for text in stage.passes:
            find_pass(text.partition("{")[0].partition("(")[0])
    emit.finished = []
    return Session()


def _collect_records() -> list[logging.LogRecord]:
    """The list that receives what this process logs."""
    records: list[logging.LogRecord] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:  # tracebacks do not travel, their text does
                record.exc_text = logging.Formatter().formatException(record.exc_info)
            record.msg, record.args, record.exc_info = record.getMessage(), None, None
            records.append(record)

    logger = logging.getLogger("mlir_npu")
    logger.addHandler(Collector())
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    return records
