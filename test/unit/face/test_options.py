"""Options are checked, typed, and say what was meant."""

import pytest

from mlir_npu.errors import OptionsError
from mlir_npu.options import Options


def test_defaults():
    assert Options.parse() == Options()
    assert Options.parse({}, mode="default") == Options()


def test_values_are_taken(tmp_path):
    options = Options.parse(
        {
            "target": "edge",
            "fallback": "eager",
            "min_region_macs": 0,
            "host_ops": ["relu", "aten.add.Tensor", "quantized_decomposed.quantize_per_tensor"],
            "strict": True,
            "dump_dir": tmp_path,
            "num_threads": 2,
            "schedule": "serial",
        }
    )
    quantizing = "quantized_decomposed.quantize_per_tensor"
    assert options.host_ops == ("relu", "aten.add.Tensor", quantizing)
    assert options.schedule == "serial"
    assert (options.target, options.num_threads, options.dump_dir) == ("edge", 2, str(tmp_path))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fallbck": "llvm"}, "unknown option 'fallbck'; did you mean 'fallback'?"),
        ({"zzz": 1}, "unknown option 'zzz'; valid are"),
        ({"fallback": "inducter"}, "did you mean 'inductor'?"),
        ({"target": "edgy"}, "did you mean 'edge'?"),
        ({"target": "/nowhere/chip.toml"}, "no target is called"),
        ({"target": 3}, "must be a name or a path"),
        ({"min_region_macs": -1}, "at least 0, got -1"),
        ({"min_region_macs": True}, "got True"),
        ({"host_ops": ["relv"]}, "no ATen op 'relv'; did you mean 'relu'?"),
        ({"host_ops": "relu"}, "must be a list"),
        ({"host_ops": 3}, "must be a list"),
        ({"host_ops": ["relu", 3]}, "must be a list"),
        (["fallback"], "options must be a dict"),
        ({"strict": 1}, "must be True or False, got 1"),
        ({"schedule": "serail"}, "option 'schedule' is 'serail'; did you mean 'serial'?"),
        ({"schedule": None}, "valid are 'pipelined', 'serial', 'untiled'"),
        ({"num_threads": 0}, "integer in [1, 1024], got 0"),
        ({"dump_dir": 5}, "must be a path, got 5"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(OptionsError) as error:
        Options.parse(options)
    assert message in str(error.value)


def test_bad_mode():
    with pytest.raises(OptionsError, match="or 'max-autotune', got 'reduce-overhead'"):
        Options.parse(mode="reduce-overhead")


def test_max_autotune_is_an_option():
    assert Options.parse(mode="max-autotune") == Options.parse({"autotune": True})
    assert not Options.parse(mode="default").autotune


def test_dump_dir_must_not_be_a_file(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OptionsError, match="is not a directory"):
        Options.parse({"dump_dir": str(file)})


def test_dump_dir_must_be_possible(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(OptionsError, match="option 'dump_dir': cannot make"):
        Options.parse({"dump_dir": str(file / "below")})
