"""Where variables come from, by the text of the program alone."""

import pytest

from mlir_npu.lowering.program_origins import (
    Site,
    expressions_at,
    literals,
    origin_of,
    variable,
)

TEXT = """\
def model(x, given):
    y = conv(x)
    a, b = f(), 2
    c = b * y.shape[1] + len(x.shape)
    d = a + 1
    (e, *rest) = g()
    for i in range(b):
        c += i
    if (h := k(a)) > 1:
        pass
    n = max(b, int(math.sqrt(c)))
    return block(y, d, size=given)


class Block:
    def forward(self, y, scale, size=1):
        return y.view(size, -3) * scale
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.py"
    path.write_text(TEXT)
    return str(path)


@pytest.mark.parametrize(
    "name, line", [("a", 3), ("d", 3), ("e", 6), ("rest", 6), ("h", 9), ("y", 2)]
)
def test_variables_of_uncompiled_calls(file, name, line):
    origin = origin_of([Site(file, 12)], variable(name))
    assert (list(origin.lines), list(origin.around)) == ([line], list(range(1, 13)))


@pytest.mark.parametrize("name", ["b", "c", "i", "n", "x", "somewhere_else"])
def test_variables_of_literals_and_sizes(file, name):
    assert origin_of([Site(file, 12)], variable(name)) is None


def test_calls_in_compiled_lines_are_known(file):
    assert origin_of([Site(file, 12, uncompiled={6})], variable("a")) is None
    assert origin_of([Site(file, 12, uncompiled={3})], variable("d")).lines == range(3, 4)


@pytest.mark.parametrize("name, line", [("scale", 3), ("size", None), ("y", 2)])
def test_parameters_come_from_callers(file, name, line):
    origin = origin_of([Site(file, 17), Site(file, 12)], variable(name))
    assert (origin and origin.lines[0]) == line


def test_expressions_of_a_call(file):
    method = Site(file, 17, (17, 17, 15, 31))
    assert literals(expressions_at(method)) == [3, -3]
    assert len(expressions_at(method)) == 3
    assert len(expressions_at(Site(file, 17, (17, 17, 15, 39)))) == 2


def test_without_text():
    assert origin_of([Site("<nowhere>", 1)], variable("a")) is None
    assert expressions_at(Site("<nowhere>", 1)) == []
