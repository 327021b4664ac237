"""Two processes that share every batch train as one process does, however the model is wrapped."""

from __future__ import annotations

import json
import time

import pytest
import torch
from distributed_steps import WORLD, WRAPPERS, train, work
from torch import multiprocessing

LIMIT = 240  # seconds after which the processes are ended


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each process left, by the name of the wrapper."""
    folder = tmp_path_factory.mktemp("distributed")
    running = multiprocessing.spawn(work, (str(folder),), nprocs=WORLD, join=False)
    try:
        wait_for(running)
    finally:
        for process in running.processes:
            process.kill()
            process.join()
    files = [folder / f"{rank}.json" for rank in range(WORLD)]
    return [json.loads(file.read_text()) for file in files]


def wait_for(running) -> None:
    end = time.monotonic() + LIMIT
    while not running.join(timeout=1):  # raises what a process raised
        if time.monotonic() > end:
            pytest.fail("the processes wait for each other")


@pytest.fixture(scope="module")
def alone():
    return torch.tensor(train())


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_losses_and_parameters_are_those_of_one_process(results, alone, wrapper):
    for process in results:
        numbers = torch.tensor(process[wrapper]["numbers"])
        torch.testing.assert_close(numbers, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_convolutions_run_on_the_npu(results, wrapper):
    for process in results:
        assert process[wrapper]["forward"].count("aten.convolution.default") == 2
        assert process[wrapper]["backward"].count("aten.convolution_backward.default") == 2
