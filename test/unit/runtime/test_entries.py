import gc
import sys

from mlir_npu.runtime.entries import Entries


def test_the_same_objects_are_unchanged():
    thing, table = object(), {"a": None, "b": 3}
    table["c"] = thing
    entries = Entries([(table, "a", None), (table, "b", 3), (table, "c", thing)])
    assert entries.unchanged()
    table["d"] = 1
    assert entries.unchanged()
    assert Entries([]).unchanged()


def test_another_object_is_a_change_even_if_it_is_equal():
    table = {"a": [1], "b": 2}
    entries = Entries([(table, "a", table["a"]), (table, "b", 2)])
    kept = table["a"]
    table["a"] = [1]
    assert not entries.unchanged()
    table["a"] = kept
    assert entries.unchanged()
    del table["a"]
    assert not entries.unchanged()


def test_keys_are_found_by_value():
    key = "".join(["ke", "y"])
    assert Entries([({"key": 1}, key, 1)]).unchanged()


def test_what_is_compared_is_kept_alive_and_not_counted_up():
    def make():
        return Entries([({"a": (value := object())}, "a", value)])

    entries = make()
    gc.collect()
    thing = [object()]
    table = {"a": thing}
    more = Entries([(table, "a", thing)])
    before = sys.getrefcount(thing)
    for _ in range(100):
        assert entries.unchanged() and more.unchanged()
    assert sys.getrefcount(thing) == before
