"""What a user can ask of the backend: `torch.compile(model, backend="mlir_npu", options={...})`."""

from __future__ import annotations

import difflib
import importlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mlir_npu.dialect.target import TargetError, load_target
from mlir_npu.errors import OptionsError
from mlir_npu.passes.analysis.tile_choice import MODES as SCHEDULES

FALLBACKS = ("llvm", "inductor", "eager")
AUTOTUNE = "max-autotune"
MODES = ("default", AUTOTUNE)


@dataclass(frozen=True)
class Options:
    """One compilation's choices. `Options.parse` checks them; see the field comments for values."""

    # Machine that regions are compiled for: a shipped target's name, or the path of a .toml file.
    target: str = "host"
    # What runs the host parts: "llvm" (torch-mlir and LLVM, and eager for what it cannot do),
    # "inductor" or "eager".
    fallback: str = "llvm"
    # Work below which a region runs on the host, in multiply-accumulates. An element of a pass over
    # memory that the region saves counts as one.
    min_region_macs: int = 4096
    # ATen ops kept on the host, as "relu", "aten.relu" or "aten.relu.default".
    host_ops: tuple[str, ...] = ()
    # The ATen ops that may run on the NPU; all others are kept on the host. None: all that it can.
    npu_ops: tuple[str, ...] | None = None
    # Raise StrictError instead of falling back: for a call that would run on the host (but
    # host_ops, what npu_ops leaves out, views, and what is smaller than min_region_macs), a region
    # that does not compile, a part that Inductor does not compile.
    strict: bool = False
    # Directory that receives, for each graph, the stitched source (inference_0.py) and the IR of
    # each part after every stage (inference_0/npu_0/00_import.mlir).
    dump_dir: str | None = None
    # How kernels use an accelerator: "pipelined" (moves overlap with compute), "serial" (each move
    # is waited for) or "untiled" (whole kernels, as if its memories were infinite). The last two
    # are there to compare with. A target whose scratchpad is a cache has one way only.
    schedule: str = "pipelined"
    # Whether 3 x 3 convolutions on the CPU may take fewer multiplications (Winograd), where that is
    # faster. An output is then computed with its neighbours, in windows of 2 x 2 or 4 x 4: the
    # result differs from the plain sum by rounding, relative to the largest values of the window,
    # and a NaN, an infinity, or a value near the end of f32's range reaches all of the window. Set
    # it to False where values differ by many orders of magnitude, or NaN must stay where it is.
    winograd: bool = True
    # Threads of a region; None follows torch.set_num_threads.
    num_threads: int | None = None
    # Whether compiled code is kept on disk for later processes, and taken from there: in the
    # directory that MLIR_NPU_CACHE_DIR names, or the user's cache directory.
    cache: bool = True
    # Whether kernels for the CPU are measured before they are chosen, which takes seconds or
    # minutes, once; mode="max-autotune" sets it. What was measured is kept where compiled code is.
    autotune: bool = False
    # Makes the code of regions, instead of the compiler for the CPU: a function of a
    # mlir_npu.Region, or its name as "module:function".
    code_generator: Callable | None = None

    @staticmethod
    def parse(options: Mapping[str, Any] | None = None, mode: str | None = None) -> Options:
        """Checked options from what torch.compile hands over. Raises OptionsError."""
        if mode is not None and mode not in MODES:
            valid = " or ".join(map(repr, MODES))
            raise OptionsError(f"mode must be None or {valid}, got {mode!r}")
        if options is not None and not isinstance(options, Mapping):
            raise OptionsError(f"options must be a dict, got {options!r}")
        known = {field.name for field in fields(Options)}
        for key in options or {}:
            if key not in known:
                raise OptionsError(f"unknown option {key!r}; {_nearest(str(key), sorted(known))}")
        checked = {key: _CHECKS[key](key, value) for key, value in (options or {}).items()}
        if mode == AUTOTUNE:
            checked.setdefault("autotune", True)
        return Options(**checked)


def _nearest(value: str, valid: list[str]) -> str:
    near = difflib.get_close_matches(value, valid, n=1)
    return f"did you mean {near[0]!r}?" if near else f"valid are {', '.join(map(repr, valid))}"


def _target(key: str, value: Any) -> str:
    if not isinstance(value, (str, Path)):
        raise OptionsError(f"option {key!r} must be a name or a path, got {value!r}")
    try:
        load_target(value)
    except TargetError as error:
        raise OptionsError(f"option {key!r}: {error}") from None
    return str(value)


def _fallback(key: str, value: Any) -> str:
    if value not in FALLBACKS:
        raise OptionsError(f"option {key!r} is {value!r}; {_nearest(str(value), list(FALLBACKS))}")
    return value


def _schedule(key: str, value: Any) -> str:
    if value not in SCHEDULES:
        raise OptionsError(f"option {key!r} is {value!r}; {_nearest(str(value), list(SCHEDULES))}")
    return value


def _non_negative(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise OptionsError(f"option {key!r} must be an integer of at least 0, got {value!r}")
    return value


def _threads(key: str, value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1024:
        raise OptionsError(f"option {key!r} must be None or an integer in [1, 1024], got {value!r}")
    return value


def _op_names(key: str, value: Any) -> tuple[str, ...]:
    sequence = isinstance(value, (list, tuple, set, frozenset))
    if not sequence or not all(isinstance(name, str) for name in value):
        raise OptionsError(f"option {key!r} must be a list of ATen op names, got {value!r}")
    from mlir_npu.lowering.op_names import aten_op_names

    valid = aten_op_names()
    for name in value:
        packet = name.removeprefix("aten.").removeprefix("quantized_decomposed.").split(".")[0]
        if packet not in valid:
            raise OptionsError(
                f"option {key!r}: no ATen op {name!r}; {_nearest(packet, sorted(valid))[:200]}"
            )
    return tuple(sorted(value) if isinstance(value, (set, frozenset)) else value)


def _some_op_names(key: str, value: Any) -> tuple[str, ...] | None:
    return None if value is None else _op_names(key, value)


def _function(key: str, value: Any) -> Callable | None:
    found = _named_function(key, value) if isinstance(value, str) else value
    if found is not None and not callable(found):
        raise OptionsError(
            f'option {key!r} must be a function or its name as "module:function", got {value!r}'
        )
    return found


def _named_function(key: str, name: str) -> Any:
    module, _, path = name.partition(":")
    try:
        return operator.attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise OptionsError(f"option {key!r}: no function {name!r}: {error}") from None


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise OptionsError(f"option {key!r} must be True or False, got {value!r}")
    return value


def _directory(key: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, (str, Path)) or not str(value):
        raise OptionsError(f"option {key!r} must be a path, got {value!r}")
    if Path(value).exists() and not Path(value).is_dir():
        raise OptionsError(f"option {key!r}: {value} exists and is not a directory")
    try:
        Path(value).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OptionsError(f"option {key!r}: cannot make {value}: {error.strerror}") from None
    return str(value)


_CHECKS = {
    "target": _target,
    "fallback": _fallback,
    "min_region_macs": _non_negative,
    "host_ops": _op_names,
    "npu_ops": _some_op_names,
    "strict": _flag,
    "dump_dir": _directory,
    "schedule": _schedule,
    "winograd": _flag,
    "num_threads": _threads,
    "cache": _flag,
    "autotune": _flag,
    "code_generator": _function,
}
