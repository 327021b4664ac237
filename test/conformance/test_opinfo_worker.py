"""A worker that dies costs the sample it was at, and no other."""

from __future__ import annotations

import contextlib

from run import Pool


def test_a_crash_is_a_failure_of_its_sample() -> None:
    with contextlib.closing(Pool(limit=2)) as pool:
        before = pool.run("eager-forward", "mul")
        assert (before["passed"], before["failed"]) == (2, {})
        pool._worker._process.kill()
        pool._worker._process.wait()
        after = pool.run("eager-forward", "mul")
    (words,) = after["failed"].values()
    assert "crashed with -9" in words
    assert after["passed"] == 1
