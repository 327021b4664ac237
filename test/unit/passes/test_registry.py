"""The table of passes, and options from text."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from mlir_npu.passes.option_parser import OptionError, option_types, parse_options
from mlir_npu.passes.registry import all_passes, find_pass, register_pass


@dataclass(frozen=True)
class Options:
    buffers: int = 1
    serial: bool = False
    tile: tuple[int, ...] = ()
    layout_name: str = "nhwc"

    def __post_init__(self):
        if self.buffers > 4:
            raise ValueError(f"'buffers' must be at most 4, got {self.buffers}")


@dataclass(frozen=True)
class NothingToSay:
    pass


def parse(text: str, options: type = Options):
    return parse_options("some-pass", options, text)


def test_defaults():
    assert parse("") == Options()


def test_every_kind_of_value():
    expected = Options(buffers=2, serial=True, tile=(8, 16, -1), layout_name="nchw")
    assert parse("buffers=2 serial tile=8,16,-1 layout-name=nchw") == expected
    assert parse("  layout_name=nchw\n tile=8,16,-1 serial=1   buffers=2") == expected


@pytest.mark.parametrize(
    ("text", "value"), [("serial", True), ("serial=true", True), ("serial=0", False)]
)
def test_flags(text, value):
    assert parse(text).serial is value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bufers=2", "pass 'some-pass' has no option 'bufers'; did you mean 'buffers'?"),
        ("zzz", "has no option 'zzz'; it has buffers, serial, tile, layout_name"),
        ("buffers=two", "option 'buffers' of pass 'some-pass' must be an integer, got 'two'"),
        ("buffers=2.0", "must be an integer, got '2.0'"),
        ("buffers", "option 'buffers' of pass 'some-pass' must be an integer, got nothing"),
        ("buffers=", "must be an integer, got nothing"),
        ("serial=maybe", "must be true or false, got 'maybe'"),
        ("tile=8,x", "must be integers such as 8,16, got '8,x'"),
        ("layout-name", "option 'layout-name' of pass 'some-pass' must be a word, got nothing"),
        ("buffers=1 buffers=2", "option 'buffers' of pass 'some-pass' is given twice"),
        ("buffers=9", "pass 'some-pass': 'buffers' must be at most 4, got 9"),
    ],
)
def test_a_wrong_option_is_named(text, message):
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_options_of_a_pass_that_has_none():
    with pytest.raises(OptionError, match="pass 'some-pass' has no options, got 'fast'"):
        parse("fast", NothingToSay)


def test_a_type_that_text_cannot_spell_is_refused_at_definition():
    @dataclass(frozen=True)
    class Bad:
        ratio: float = 0.5

    with pytest.raises(TypeError, match=r"Bad\.ratio has type"):
        option_types(Bad)


def test_registering_makes_a_pass_findable_by_name():
    @register_pass("test-registry-only", Options)
    def test_registry_only(module, options):
        """Does nothing.

        More text that is no summary.
        """

    entry = find_pass("test-registry-only")
    assert (entry.function, entry.options_class) == (test_registry_only, Options)
    assert "test-registry-only" not in all_passes(), "the table lists passes of the package only"


@pytest.mark.parametrize("name", ["canonicalize", "registry", "analysis", "a..b", "../x", "cse-"])
def test_names_that_are_no_pass_of_ours(name):
    assert find_pass(name) is None


def test_every_pass_lives_in_the_file_of_its_name_and_has_a_summary():
    passes = all_passes()
    assert passes
    assert list(passes) == sorted(passes)
    for name, entry in passes.items():
        assert entry.name == name
        assert entry.module == f"mlir_npu.passes.{name.replace('-', '_')}"
        assert entry.summary.endswith("."), f"first docstring line of {entry.module}"
        assert entry.options_class() == entry.options_class(), "every option has a default"
