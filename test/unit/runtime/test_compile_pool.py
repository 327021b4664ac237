import logging
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from mlir_npu.passes.pipelines import npu_recipe
from mlir_npu.passes.run_stages import StageFailure
from mlir_npu.runtime import compile_pool
from mlir_npu.runtime.compile_pool import CompilePool, NoWorkers, WorkerCrash, run_apart, run_here
from mlir_npu.runtime.native_code import KernelLinkError, NativeCode

TEXT = "llvm.func @f{0}(%x: !llvm.ptr) {{ llvm.return }}"
JOBS = [("emit", (TEXT.format(i),)) for i in range(5)]


@pytest.fixture(scope="module")
def pool():
    pool = CompilePool(2)
    yield pool
    pool.end()


def test_results_come_in_the_order_of_the_jobs(pool):
    objects = pool.run(JOBS)
    assert all(NativeCode([data]).address(f"f{i}") for i, data in enumerate(objects))
    assert objects == run_here(JOBS)


def test_exceptions_are_results(pool):
    bad = ("normalise", (b"module {}", npu_recipe()))
    failure, good, unknown = pool.run([bad, JOBS[0], ("no_such_step", ())])
    assert isinstance(failure, StageFailure)
    assert "npu.target" in str(failure) and failure.stage == "normalise"
    assert failure.ir_before.startswith("module") and failure.reproduction("x").startswith(
        "npu-opt"
    )
    assert isinstance(good, bytes)
    assert isinstance(unknown, AttributeError)


def test_what_follows_runs_before_what_waits(pool):
    """And its results are not those of the jobs that were given."""
    told = []

    def after(job, outcome):
        told.append((job, outcome))
        return JOBS[3:] if job == JOBS[0] else ()

    here = run_here(JOBS[:3], after)
    order = [job for job, _ in told]
    assert order == [JOBS[0], *JOBS[3:], *JOBS[1:3]]
    assert [outcome for _, outcome in told] == run_here(order)
    told.clear()
    assert pool.run(JOBS[:3], after) == here == run_here(JOBS[:3])
    assert sorted(job for job, _ in told) == sorted(JOBS)


def test_pool_goes_on_after_what_is_told_fails(pool):
    def after(job, outcome):
        raise ValueError("told")

    with pytest.raises(ValueError, match="told"):
        pool.run(JOBS, after)
    assert all(isinstance(result, bytes) for result in pool.run(JOBS))


def test_what_workers_log_is_heard_here(pool, caplog):
    with caplog.at_level(logging.DEBUG, logger="mlir_npu.passes"):
        pool.run([("no_such_step", ())])
    (record,) = [r for r in caplog.records if r.getMessage() == "in a worker"]
    assert "no_such_step" in record.exc_text


def test_crash_takes_one_job_only(pool):
    busy_text = "\n".join(TEXT.format(i) for i in range(3000))

    def kill_the_busy_one():
        while True:
            for worker in pool._workers:
                if worker.job == 0:
                    os.kill(worker._process.pid, signal.SIGSEGV)
                    return
            time.sleep(0.001)

    killer = threading.Thread(target=kill_the_busy_one)
    killer.start()
    crash, *others = pool.run([("emit", (busy_text,)), *JOBS])
    killer.join()
    assert isinstance(crash, WorkerCrash)
    assert str(crash) == "the compiling process died of SIGSEGV"
    assert "Segmentation fault" in crash.last_words
    assert all(isinstance(other, bytes) for other in others)
    assert isinstance(pool.run(JOBS[:1])[0], bytes)


def test_no_job_is_lost_when_all_workers_leave_at_once(monkeypatch):
    """The idle one is heard first, while the other has a job."""
    pool = CompilePool(2)
    pool.run(JOBS)
    while not all(worker.ready for worker in pool._workers):
        pool.run(JOBS)
    answering = pool._answering

    def both_leave():
        monkeypatch.setattr(pool, "_answering", answering)
        for worker in pool._workers:
            worker._process.kill()
            worker._process.wait()
        return [worker for worker in pool._workers if worker.job is None]

    monkeypatch.setattr(pool, "_answering", both_leave)
    results = []
    call = threading.Thread(target=lambda: results.extend(pool.run(JOBS[:1])), daemon=True)
    call.start()
    call.join(60)
    assert len(results) == 1 and isinstance(results[0], WorkerCrash)
    pool.end()


def test_worker_that_left_is_replaced(pool):
    pool.run(JOBS)
    for worker in pool._workers:
        worker._process.stdin.close()  # how it ends when idle, or when its parent is gone
        assert worker._process.wait(60) == 0
    assert all(isinstance(result, bytes) for result in pool.run(JOBS))


def test_the_caller_is_left_a_core_until_jobs_run():
    pool = CompilePool(2)
    try:
        pool.start_beside()
        (first,) = pool._workers
        pool.start()
        assert len(pool._workers) == 2 and pool._workers[0] is first
        assert all(isinstance(result, bytes) for result in pool.run(JOBS))
    finally:
        pool.end()


def test_one_process_is_started_for_one_core():
    pool = CompilePool(1)
    try:
        pool.start_beside()
        assert len(pool._workers) == 1
    finally:
        pool.end()


def test_without_processes_jobs_run_here(monkeypatch, caplog):
    monkeypatch.setattr(compile_pool.sys, "executable", "/no/such/python")
    monkeypatch.setattr(compile_pool, "POOL", CompilePool(1))
    compile_pool.POOL.start()  # not an error
    with pytest.raises(NoWorkers):
        compile_pool.POOL.run(JOBS)
    assert all(isinstance(result, bytes) for result in run_apart(JOBS))
    assert "no other can be started" in caplog.text


def test_worker_that_does_not_come_up_is_no_crash(monkeypatch):
    monkeypatch.setattr(compile_pool, "_START", "raise SystemExit('broken')")
    with pytest.raises(NoWorkers, match="broken"):
        CompilePool(1).run(JOBS)


PROGRAM = textwrap.dedent("""
    # no `if __name__ == "__main__"`: workers never see this file
    import os, sys
    from mlir_npu.runtime.compile_pool import POOL
    TEXT = "llvm.func @f(%x: !llvm.ptr) { llvm.return }"
    first, = POOL.run([("emit", (TEXT,))])
    before = [worker._process.pid for worker in POOL._workers]
    child = os.fork()
    again, = POOL.run([("emit", (TEXT,))])
    after = [worker._process.pid for worker in POOL._workers]
    assert first == again
    assert (before == after) == (child != 0)
    assert "torch" not in sys.modules and "torch_mlir" not in sys.modules
    if child:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    print(*after)
    """)


def test_fork_leaves_the_workers_to_the_parent_and_none_outlives_the_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    workers = [int(pid) for pid in done.stdout.split()]
    assert workers
    assert not [pid for pid in workers if os.path.exists(f"/proc/{pid}")]


def test_job_that_fails_to_link_is_the_same_error_here_and_apart(pool):
    job = ("emit", ("llvm.func @f()",))
    for (outcome,) in (pool.run([job]), run_here([job])):
        assert isinstance(outcome, KernelLinkError)
