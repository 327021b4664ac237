import pytest
import torch

from mlir_npu.runtime.fingerprint import EXACT, RUN, RUNS, Fingerprint, is_read_whole


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_same_contents_same_number(dtype):
    a = torch.arange(50).to(dtype)
    assert Fingerprint([a])() == Fingerprint([a.clone()])()
    assert Fingerprint([a])() != Fingerprint([a + 1])()


def test_order_of_tensors_and_elements_matters():
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([2.0, 1.0])
    numbers = {Fingerprint(t)() for t in ([a], [b], [a, b], [b, a])}
    assert len(numbers) == 4


def test_every_word_of_a_small_tensor_counts():
    a = torch.zeros(EXACT)
    fingerprint = Fingerprint([a])
    seen = {fingerprint()}
    for index in range(EXACT):
        a[index] = 1.0
        seen.add(fingerprint())
    assert len(seen) == EXACT + 1


def test_of_large_tensors_runs_are_read_from_first_to_last():
    a = torch.zeros(RUN + 1000 * (RUNS - 1))
    fingerprint = Fingerprint([a])
    before = fingerprint()
    changed = []
    for index in range(a.numel()):
        a[index] = 1.0
        if fingerprint() != before:
            changed.append(index)
        a[index] = 0.0
    assert changed == [1000 * run + word for run in range(RUNS) for word in range(RUN)]


def test_strided_tensors_are_read_within_their_memory():
    base = torch.zeros(40)
    a = base[8:32].view(4, 6)[:, ::2]
    fingerprint = Fingerprint([a])
    before = fingerprint()
    base[:8] = 1
    base[31:] = 1
    assert fingerprint() == before
    a[3, 2] = 1
    assert fingerprint() != before


def test_an_expanded_tensor_has_one_element():
    a = torch.zeros(1).expand(1000, 1000)
    fingerprint = Fingerprint([a])
    before = fingerprint()
    a[0, :1] = 1
    assert fingerprint() != before


def test_nothing_has_a_number_too():
    assert Fingerprint([])() == Fingerprint([torch.empty(0)])()


@pytest.mark.parametrize("words", [16, 64, 128, 512, 1024])
def test_changes_of_all_signs_do_not_cancel(words):
    a = torch.randn(words)
    fingerprint = Fingerprint([a])
    before = fingerprint()
    a.neg_()
    assert fingerprint() != before


def test_words_that_change_places_are_seen():
    a = torch.arange(80.0)
    fingerprint = Fingerprint([a])
    seen = {fingerprint()}
    for distance in (1, 15, 16, 17, 32, 64):
        a.copy_(torch.arange(80.0).roll(distance))
        seen.add(fingerprint())
    assert len(seen) == 7


def test_what_is_read_whole():
    assert is_read_whole(torch.zeros(EXACT)) and is_read_whole(torch.zeros(0))
    assert not is_read_whole(torch.zeros(EXACT + 1))
    assert not is_read_whole(torch.zeros(EXACT)[::2].new_zeros(2 * EXACT)[::2])
    assert not is_read_whole(torch.zeros(5, dtype=torch.bool)), "its last byte is no word"
