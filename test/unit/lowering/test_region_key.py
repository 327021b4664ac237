import dataclasses

import pytest
import torch
from aten_graphs import trace

from mlir_npu.lowering.region_key import _NOT_IN_CODE, region_key
from mlir_npu.lowering.support.rules import HOLDS_ZEROS
from mlir_npu.options import Options

aten = torch.ops.aten
IMAGE, WEIGHTS = torch.empty(1, 4, 8, 8), torch.empty(8, 4, 3, 3)


def convolution(x, w, stride=1, op=aten.relu):
    return op(aten.convolution(x, w, None, [stride] * 2, [1, 1], [1, 1], False, [0, 0], 1))


def plain(x, w):
    return convolution(x, w)


def key_of(function=plain, x=IMAGE, w=WEIGHTS, place="npu", parameters=(1,), **options):
    graph_module = trace(function, x, w)
    names = [node.name for node in graph_module.graph.find_nodes(op="placeholder")]
    return region_key(graph_module, place, {names[i] for i in parameters}, Options(**options))


def test_zeros_that_code_relies_on_are_part_of_the_key():
    graph_module = trace(plain, IMAGE, WEIGHTS)
    before = region_key(graph_module, "npu", set(), Options())
    graph_module.graph.find_nodes(op="placeholder")[1].meta[HOLDS_ZEROS] = True
    assert region_key(graph_module, "npu", set(), Options()) != before


def test_equal_graphs_have_one_key():
    def named_otherwise(image, filters):
        result = convolution(image, filters)
        return result

    assert key_of() == key_of() == key_of(named_otherwise)
    assert len(key_of()) == 64


@pytest.mark.parametrize(
    "changes",
    [
        {"x": torch.empty(1, 4, 8, 9)},
        {"x": IMAGE.to(memory_format=torch.channels_last)},
        {"x": torch.empty(2, 4, 8, 8)},
        {"x": IMAGE.double(), "w": WEIGHTS.double()},
        {"w": torch.empty(4, 4, 3, 3)},
        {"function": lambda x, w: convolution(x, w, stride=2)},
        {"function": lambda x, w: convolution(x, w, op=aten.sigmoid)},
        {"function": lambda x, w: convolution(x, w, op=lambda y: aten.leaky_relu(y, 0.1))},
        {"function": lambda x, w: convolution(x, w, op=lambda y: aten.leaky_relu(y, 0.2))},
        {"function": lambda x, w: (convolution(x, w), x)},
        {"function": lambda x, w: (x, convolution(x, w))},
        {"function": lambda x, w: convolution(x, w) * torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 8])},
        {"function": lambda x, w: convolution(x, w) * torch.tensor([1.0, 2, 3, 4, 5, 6, 7, 9])},
        {"place": "host"},
        {"parameters": ()},
        {"target": "edge"},
        {"winograd": False},
        {"schedule": "serial"},
        {"num_threads": 1},
        {"num_threads": 2},
    ],
    ids=lambda changes: "-".join(changes),
)
def test_everything_the_code_depends_on_changes_the_key(changes, request):
    keys = request.config.stash.setdefault(KEYS, {key_of(): "unchanged"})
    key = key_of(**changes)
    assert key is not None
    assert key not in keys, f"the key of {keys[key]}"
    keys[key] = changes


KEYS = pytest.StashKey()


def test_target_file_counts_with_what_it_says(tmp_path):
    from importlib import resources

    text = (resources.files("mlir_npu.dialect.targets") / "edge.toml").read_text()
    file = tmp_path / "mine.toml"
    file.write_text(text)
    first = key_of(target=str(file))
    assert first == key_of(target="edge")
    file.write_text(text.replace("cols = 16", "cols = 8"))
    assert file.read_text() != text
    assert key_of(target=str(file)) != first


def test_what_the_code_does_not_depend_on_leaves_the_key(tmp_path):
    assert key_of() == key_of(strict=True, fallback="eager", dump_dir=str(tmp_path), cache=False)
    assert set(_NOT_IN_CODE) <= {field.name for field in dataclasses.fields(Options)}


def test_graph_that_cannot_be_described_has_no_key():
    graph_module = trace(plain, IMAGE, WEIGHTS)
    (call,) = [n for n in graph_module.graph.nodes if str(n.target) == "aten.relu.default"]
    call.target = lambda x: x
    assert region_key(graph_module, "npu", set(), Options()) is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16, torch.bool])
@pytest.mark.parametrize(
    "shape, strides", [((1,), (2,)), ((1, 1), (7, 3)), ((3, 1), (2, 5)), ((), ())]
)
def test_constants_with_any_strides_have_a_key(dtype, shape, strides):
    def key(value):
        constant = torch.full((8,), value, dtype=dtype).as_strided(shape, strides)
        graph_module = trace(plain, IMAGE, WEIGHTS)
        graph_module.register_buffer("constant", constant)
        with graph_module.graph.inserting_before(graph_module.graph.output_node()):
            graph_module.graph.get_attr("constant")
        return region_key(graph_module, "npu", set(), Options())

    assert key(0) == key(0) is not None
    assert key(0) != key(1)
