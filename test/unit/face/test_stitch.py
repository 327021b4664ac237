"""The generated function: order, names, lifetimes."""

import traceback
import weakref

import pytest
import torch
from torch import fx

from mlir_npu.lowering.plan import Part, PartitionPlan
from mlir_npu.lowering.stitch import stitch, stitched_source

EMPTY = fx.GraphModule({}, fx.Graph())


def part(name, inputs, outputs):
    return Part(name, "host", EMPTY, tuple(inputs), tuple(outputs), 0, 0, 0)


def plan(placeholders, parts, results):
    return PartitionPlan(EMPTY, tuple(placeholders), tuple(parts), tuple(results), ())


TWO_PARTS = plan(
    ["x", "w", "unused"],
    [part("npu_0", ["x", "w"], ["a", "b"]), part("host_0", ["a", "x"], ["c"])],
    ["c", None, "c", "x", 3],
)


def test_source_reads_like_a_person_wrote_it():
    assert stitched_source(TWO_PARTS, "inference") == (
        "def inference(args):\n"
        "    x, w, unused = args\n"
        "    args.clear()\n"
        "    del unused\n"
        "    a, b = npu_0(x, w)\n"
        "    del w, b\n"
        "    (c,) = host_0(a, x)\n"
        "    return (c, None, c, x, 3)\n"
    )


def test_results_keep_order_count_and_identity():
    function = stitch(
        TWO_PARTS,
        {"npu_0": lambda x, w: (x + w, x - w), "host_0": lambda a, x: (a * x,)},
        stitched_source(TWO_PARTS),
    )
    x = torch.tensor(3.0)
    first, none, again, same, number = function([x, torch.tensor(2.0), None])
    assert first.item() == 15 and none is None and again is first and same is x and number == 3


def test_inputs_die_after_their_last_use():
    seen = []

    def npu_0(x, w):
        seen.append(weakref.ref(w))
        return x + 1, x + 2

    def host_0(a, x):
        seen.append(seen[0]() is None)
        return (a + x,)

    function = stitch(TWO_PARTS, {"npu_0": npu_0, "host_0": host_0}, stitched_source(TWO_PARTS))
    assert function._boxed_call
    function([torch.ones(2), torch.ones(2), None])
    assert seen[1] is True


def test_tracebacks_show_the_stitched_line():
    def fail(x, w):
        raise ValueError("from a part")

    function = stitch(TWO_PARTS, {"npu_0": fail, "host_0": fail}, stitched_source(TWO_PARTS))
    with pytest.raises(ValueError, match="from a part") as error:
        function([1, 2, 3])
    assert "a, b = npu_0(x, w)" in "".join(traceback.format_tb(error.tb))


def test_names_that_are_keywords():
    keyword = plan(["lambda"], [part("host_0", ["lambda"], ["is"])], ["is"])
    function = stitch(keyword, {"host_0": lambda value: (value + 1,)}, stitched_source(keyword))
    assert function([1]) == (2,)


def test_no_inputs_no_parts():
    nothing = plan([], [], [None])
    assert stitch(nothing, {}, stitched_source(nothing))([]) == (None,)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_long_lines_mean_the_same(count):
    inputs = [f"a_rather_long_name_of_input_{number}" for number in range(count)]
    outputs = [f"a_rather_long_name_of_output_{number}" for number in range(count)]
    wide = plan(inputs, [part("npu_0", inputs, outputs)], outputs)
    function = stitch(wide, {"npu_0": lambda *values: values}, stitched_source(wide))
    assert function(list(range(count))) == tuple(range(count))


@pytest.mark.parametrize("outputs", [1, 2, 40])
@pytest.mark.parametrize("inputs", [1, 2, 40])
def test_long_lines_are_broken_and_still_right(inputs, outputs):
    taken = [f"a_value_of_some_length_{index}" for index in range(inputs)]
    made = [f"another_value_of_some_length_{index}" for index in range(outputs)]
    wide = plan(taken, [part("host_0", taken, made)], made)
    source = stitched_source(wide)
    assert max(map(len, source.splitlines())) <= 100
    function = stitch(wide, {"host_0": lambda *values: (sum(values),) * outputs}, source)
    assert function(list(range(inputs))) == (sum(range(inputs)),) * outputs


def test_values_named_like_parts_or_the_argument():
    clash = plan(
        ["args", "host_0"], [part("host_0", ["args", "host_0"], ["host_0_"])], ["host_0_", "args"]
    )
    function = stitch(clash, {"host_0": lambda a, b: (a - b,)}, stitched_source(clash))
    assert function([5, 3]) == (2, 5)


def test_comments_say_what_inputs_and_parts_are():
    source = stitched_source(
        TWO_PARTS, "forward", {"w": "parameter conv.weight", "npu_0": "NPU: conv"}
    )
    assert "        w,  # parameter conv.weight\n" in source
    assert "    # NPU: conv\n    a, b = npu_0(x, w)\n" in source
    assert "        x,\n" in source


def test_sources_leave_with_their_function():
    import gc
    import linecache

    function = stitch(plan([], [], [None]), {}, stitched_source(plan([], [], [None])))
    file_name = function.__code__.co_filename
    assert file_name in linecache.cache
    del function
    gc.collect()
    assert file_name not in linecache.cache
