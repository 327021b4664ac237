"""Large results take the memory of earlier ones only when nobody can see these any more."""

import gc
import threading

import pytest
import torch

from mlir_npu.runtime.results import ResultPool

SHAPE, STRIDES, SIZE = (64, 1024), (1024, 1), 1 << 18


def take(pool: ResultPool) -> torch.Tensor:
    result = pool.take(SIZE, SHAPE, STRIDES, torch.float32)
    assert result.shape == SHAPE and result.stride() == STRIDES and result.dtype == torch.float32
    return result


HOLDERS = {
    "tensor": lambda result: result,
    "view": lambda result: result[3:, 5],
    "detached": lambda result: result.detach(),
    "numpy": lambda result: result.numpy(),
    "dlpack": lambda result: torch.from_dlpack(result),
    "storage": lambda result: result.untyped_storage(),
    "typed storage": lambda result: result.storage(),
}


def test_memory_that_was_dropped_is_used_again():
    pool = ResultPool()
    address = take(pool).data_ptr()
    assert take(pool).data_ptr() == address
    with torch.inference_mode():
        assert take(pool).data_ptr() == address
    assert not take(pool).is_inference()


@pytest.mark.parametrize("holder", HOLDERS.values(), ids=HOLDERS)
def test_memory_that_something_holds_is_left_alone(holder):
    pool = ResultPool()
    result = take(pool)
    address, held = result.data_ptr(), holder(result)
    del result
    gc.collect()
    assert take(pool).data_ptr() != address
    del held
    gc.collect()
    assert address in {one.data_ptr() for one in (take(pool), take(pool))}


def test_results_that_are_alive_by_turns_share_two_pieces():
    pool, addresses, last = ResultPool(), set(), None
    for _ in range(8):
        last = take(pool)
        addresses.add(last.data_ptr())
    assert len(addresses) == 2 and last is not None


def test_memory_that_other_processes_see_or_that_was_resized_is_left_alone():
    pool = ResultPool()
    shared = take(pool)
    shared.share_memory_()
    address = shared.data_ptr()
    del shared
    grown = take(pool)
    assert grown.data_ptr() != address
    grown.resize_(2 * SIZE)
    del grown
    assert take(pool).untyped_storage().nbytes() == SIZE


def test_other_sizes_and_more_than_the_limit_are_not_kept_together():
    pool = ResultPool(limit=SIZE + 4)
    address = take(pool).data_ptr()
    small = pool.take(4, (1,), (1,), torch.float32)
    assert take(pool).data_ptr() == address
    pool.take(8, (2,), (1,), torch.float32)  # the oldest goes
    assert sum(kept.nbytes for kept in pool._kept) <= SIZE + 4
    assert small.untyped_storage().nbytes() == 4


def test_threads_never_get_the_same_memory():
    pool, wrong = ResultPool(), []

    def work(number: int) -> None:
        for _ in range(300):
            result = take(pool)
            result.fill_(number)
            if not bool((result == number).all()):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
