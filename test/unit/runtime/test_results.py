"""Large results take the memory of earlier ones only when nobody can see these any more."""

import gc
import threading

import pytest
import torch

from mlir_npu.runtime.results import ResultPool

SHAPE, STRIDES, SIZE = (64, 1024), (1024, 1), 1 << 18
SPEC = SHAPE, STRIDES, torch.float32


def take(pool: ResultPool) -> torch.Tensor:
    result = pool.take(SIZE, SPEC)
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


def test_memory_of_other_shapes_and_types_of_the_same_size_is_used_again():
    pool = ResultPool()
    address = take(pool).data_ptr()
    for spec in (((SIZE // 2,), (1,), torch.bfloat16), ((1024, 64), (1, 1024), torch.float32)):
        other = pool.take(SIZE, spec)
        assert other.data_ptr() == address
        assert (other.shape, other.stride(), other.dtype) == spec
        del other
    assert take(pool).data_ptr() == address


def test_results_in_the_same_memory_are_tensors_of_their_own():
    """What is done to one, the next one does not know."""
    pool = ResultPool()
    first = take(pool)
    first.add_(1).t_()
    first.requires_grad_()
    assert first._version
    del first
    second = take(pool)
    assert second._version == 0 and not second.requires_grad and second.is_leaf


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
    small = pool.take(4, ((1,), (1,), torch.float32))
    assert take(pool).data_ptr() == address
    pool.take(8, ((2,), (1,), torch.float32))  # the oldest goes
    assert sum(kept.size for kept in pool._kept) <= SIZE + 4
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
