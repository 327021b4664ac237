"""Processes that compile in parallel: MLIR holds the GIL, and a fault in it kills its process.

Workers are started when they are first needed, as many as there are cores and at most MOST, and end
by themselves when they have had nothing to do for a while. They are new processes that never see
the program's own modules, so programs need no `if __name__ == "__main__"`. A program that forks
leaves its workers to the parent.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import logging
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from typing import Any

from mlir_npu.logs import warn_once
from mlir_npu.runtime.compile_worker import receive, send

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from mlir_npu.runtime.compile_worker import main; main()"
)
_STDERR_CHARACTERS = 2000
MOST = 8  # each takes 100 MB or more

logger = logging.getLogger("mlir_npu.passes")


class WorkerCrash(RuntimeError):
    """A process died of a job. last_words: the end of what it wrote to stderr."""

    def __init__(self, code: int, last_words: str) -> None:
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        super().__init__(f"the compiling process died of {how}")
        self.last_words = last_words


class NoWorkers(RuntimeError):
    """Processes cannot be started here."""


Job = tuple[str, tuple]  # a method of Session, and its arguments
# told of every job and its result, or the exception that it raised; returns the jobs that follow
After = Callable[[Job, Any], Sequence[Job]]


def nothing(job: Job, outcome: Any) -> Sequence[Job]:
    return ()


class Agenda:
    """Jobs by number, those that were given and those that follow from them, which come first."""

    def __init__(self, jobs: Sequence[Job], after: After) -> None:
        self._given = len(jobs)
        self._after = after
        self._jobs: list[Job] = []
        self._outcomes: list[Any] = []
        self._waiting: list[int] = []
        self._left = 0
        self._add(jobs)

    def __bool__(self) -> bool:
        """Whether a job is not finished."""
        return self._left > 0

    @property
    def results(self) -> list[Any]:
        """Of the jobs that were given."""
        return self._outcomes[: self._given]

    def take(self) -> tuple[int, Job] | None:
        """The next one that nobody is at, if there is one."""
        return (number := self._waiting.pop(), self._jobs[number]) if self._waiting else None

    def put_back(self, number: int) -> None:
        self._waiting.append(number)

    def finish(self, number: int, outcome: Any) -> None:
        self._outcomes[number] = outcome
        self._left -= 1
        self._add(self._after(self._jobs[number], outcome))

    def _add(self, jobs: Sequence[Job]) -> None:
        numbers = range(len(self._jobs), len(self._jobs) + len(jobs))
        self._jobs += jobs
        self._outcomes += [None] * len(jobs)
        self._waiting += reversed(numbers)
        self._left += len(jobs)


class _Worker:
    """One process. `job`: the number of the one that it is at; ready: it has come up."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )
        self.replies = self._process.stdout
        self.job: int | None = None
        self.ready = False

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def give(self, number: int, job: Job) -> bool:
        """False if the process has ended."""
        try:
            send(self._process.stdin, job)
        except OSError:
            return False
        self.job = number
        return True

    def last_words(self) -> tuple[int, str]:
        """Exit code and the end of what it wrote, once its output has ended."""
        code = self._process.wait()
        self._errors.seek(0)
        return code, self._errors.read().decode(errors="replace").strip()[-_STDERR_CHARACTERS:]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self.abandon()

    def abandon(self) -> None:
        """Close this side's files only."""
        for file in (self._process.stdin, self._process.stdout, self._errors):
            try:
                file.close()
            except OSError:
                pass  # a reply or a job was left in the buffer


class CompilePool:
    """Runs jobs, several at a time. One call at a time."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()

    @property
    def is_running(self) -> bool:
        return any(not worker.has_ended for worker in self._workers)

    def start(self) -> None:
        """Start the processes, which come up while the caller goes on."""
        with self._lock, contextlib.suppress(NoWorkers):
            self._start(self._size)

    def start_beside(self) -> None:
        """Start as many as leave the caller a core of its own, but one in any case."""
        with self._lock, contextlib.suppress(NoWorkers):
            self._start(max(1, self._size - 1))

    def run(self, jobs: Sequence[Job], after: After = nothing) -> list[Any]:
        """The result of every job, or the exception that it raised: WorkerCrash if it died of it.
        What follows from them is run as well.

        Raises NoWorkers.
        """
        with self._lock:
            try:
                return self._run(Agenda(jobs, after))
            except BaseException:  # Ctrl-C: what the workers are at is of no use to the next call
                self._end()
                raise

    def end(self) -> None:
        with self._lock:
            self._end()

    def forget(self) -> None:
        """In a fork: the workers are the parent's."""
        self._lock = threading.Lock()
        for worker in self._workers:
            worker.abandon()
        self._workers = []

    def _start(self, count: int) -> None:
        # the job of one that has ended is given to another when its end is heard
        for worker in [w for w in self._workers if w.has_ended and w.job is None]:
            worker.end()
            self._workers.remove(worker)
        try:
            while len(self._workers) < count:
                self._workers.append(_Worker())
        except OSError as error:
            raise NoWorkers(str(error)) from error

    def _end(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers = []

    def _run(self, agenda: Agenda) -> list[Any]:
        self._start(self._size)
        while agenda:
            for worker in self._workers:
                if worker.ready and worker.job is None and (job := agenda.take()) is not None:
                    if not worker.give(*job):
                        agenda.put_back(job[0])
            for worker in self._answering():
                if worker not in self._workers:  # it was replaced together with another
                    continue
                if worker.job is None:
                    self._hear(worker)
                else:
                    self._collect(worker, agenda)
        return agenda.results

    def _answering(self) -> list[_Worker]:
        with selectors.DefaultSelector() as selector:
            for worker in self._workers:  # of one that has nothing to do, the end is heard
                selector.register(worker.replies, selectors.EVENT_READ, worker)
            return [key.data for key, _ in selector.select()]

    def _hear(self, worker: _Worker) -> None:
        """A worker without a job comes up, or has ended."""
        try:
            receive(worker.replies)
            worker.ready = True
        except EOFError:
            code, words = worker.last_words()
            if not worker.ready:
                raise NoWorkers(f"a worker ended with code {code}: {words}") from None
            self._replace(worker)

    def _collect(self, worker: _Worker, agenda: Agenda) -> None:
        """Take a reply; the job is put back if the worker ended before it saw it."""
        number, worker.job = worker.job, None
        try:
            _, outcome, records = receive(worker.replies)
        except EOFError:
            code, words = worker.last_words()
            self._replace(worker)
            if code == 0:  # it had waited long enough, just then
                agenda.put_back(number)
            else:
                agenda.finish(number, WorkerCrash(code, words))
            return
        for record in records:
            target = logging.getLogger(record.name)
            if target.isEnabledFor(record.levelno):
                target.handle(record)
        agenda.finish(number, outcome)

    def _replace(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)
        self._start(self._size)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


POOL = CompilePool(min(cores(), MOST))
atexit.register(POOL.end)
os.register_at_fork(after_in_child=POOL.forget)


def run_apart(jobs: Sequence[Job], after: After = nothing) -> list[Any]:
    """Run in the pool, or here where processes cannot be started."""
    try:
        return POOL.run(jobs, after)
    except NoWorkers as error:
        cause = "compiling in this process: no other can be started"
        warn_once(logger, cause, f"{cause}: {error}")
        return run_here(jobs, after)


def run_here(jobs: Sequence[Job], after: After = nothing) -> list[Any]:
    """The results of the jobs, or their exceptions. What follows from them is run as well."""
    from mlir_npu.runtime.compile_jobs import Session  # loads MLIR

    session, agenda = Session(), Agenda(jobs, after)
    while (job := agenda.take()) is not None:
        number, (method, arguments) = job
        try:
            outcome = getattr(session, method)(*arguments)
        except Exception as error:
            outcome = error
        agenda.finish(number, outcome)
    return agenda.results
