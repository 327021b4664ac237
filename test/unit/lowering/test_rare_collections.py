"""What the garbage collector is set to comes back, however compilations overlap."""

import gc
import threading

import pytest

from mlir_npu.lowering.rare_collections import OBJECTS, rare_collections


@pytest.fixture(autouse=True)
def thresholds():
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_nested_and_after_an_error():
    gc.set_threshold(123, 4, 5)
    with pytest.raises(KeyError), rare_collections():
        assert gc.get_threshold() == (OBJECTS, 4, 5)
        with rare_collections():
            assert gc.get_threshold() == (OBJECTS, 4, 5)
        assert gc.get_threshold() == (OBJECTS, 4, 5)
        raise KeyError
    assert gc.get_threshold() == (123, 4, 5)


@pytest.mark.parametrize("threshold", [0, OBJECTS + 1])
def test_who_collects_less_is_left_alone(threshold):
    gc.set_threshold(threshold, 4, 5)
    with rare_collections():
        assert gc.get_threshold() == (threshold, 4, 5)
    assert gc.get_threshold() == (threshold, 4, 5)


def test_two_threads_that_overlap():
    gc.set_threshold(123, 4, 5)
    entered, leave = threading.Event(), threading.Event()

    def other():
        with rare_collections():
            entered.set()
            leave.wait(60)

    thread = threading.Thread(target=other)
    with rare_collections():
        thread.start()
        assert entered.wait(60)
    assert gc.get_threshold() == (OBJECTS, 4, 5)  # the other still compiles
    leave.set()
    thread.join()
    assert gc.get_threshold() == (123, 4, 5)
