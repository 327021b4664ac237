"""What a captured graph reads of the model and the globals, and how to find it again.

Dynamo's sources are chains: a root, then attributes and items. Every link that is an entry of a
dictionary (a module's attributes, parameters and submodules, globals) is compared in compiled code;
what is left, such as an item of a list or a property, is evaluated anew.
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._dynamo.source import (
    AttrSource,
    ChainedSource,
    DictGetItemSource,
    GlobalSource,
    LocalSource,
    Source,
)

from mlir_npu.lowering.roles import readable
from mlir_npu.runtime.entries import Entry

FLAG = "training"
_NOTHING = object()
# attributes and items with plain names, one after another
_STEP = r"\.([A-Za-z_]\w*)|\['(\w+)'\]|\[(\d+)\]"
_PATH = re.compile(rf"[LG]\['\w+'\](?:{_STEP})*", re.ASCII)
_LAST_STEP = re.compile(rf"(?:{_STEP})$", re.ASCII)


@dataclass(frozen=True)
class Origin:
    """source: as Dynamo writes it; name: for people; read: finds the value anew; value: what it was
    when captured."""

    source: str
    name: str
    read: Callable[[], Any]
    value: Any


@dataclass(frozen=True)
class Origins:
    """What to watch.

    tensors: every tensor that was looked at; flags: `training` of modules; modules: on the way to
    those; entries: links that dictionaries hold; loose: what other links lead to.
    """

    tensors: tuple[Origin, ...]
    flags: tuple[Origin, ...]
    modules: tuple[Origin, ...]
    entries: tuple[Entry, ...]
    loose: tuple[Origin, ...]


def find_origins(
    sources: Iterable[Source], scope: Mapping[str, Any], arguments: Sequence[torch.Tensor]
) -> Origins:
    """Of those sources that are `training` flags, or tensors but these arguments."""
    return _Finder(scope, arguments).find(sources)


def origin_of(source: Source, scope: Mapping[str, Any]) -> Origin | None:
    """None for sources that stand for no value, such as global states."""
    return _Values(scope).origin(source)


class _Values:
    """What sources stand for now. Those that begin alike are evaluated together so far."""

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self._known = {"L": scope["L"], "G": scope["G"]}

    def origin(self, source: Source) -> Origin | None:
        name, scope, value = source.name, self._scope, self.value(source)
        if value is _NOTHING:
            return None
        return Origin(name, readable(name), lambda: eval(_code(name), dict(scope)), value)

    def value(self, source: Source) -> Any:
        try:
            return self._value(source.name)
        except Exception:  # whatever evaluation raises
            return _NOTHING

    def _value(self, name: str) -> Any:
        if name not in self._known:
            self._known[name] = self._evaluated(name)
        return self._known[name]

    def _evaluated(self, name: str) -> Any:
        if _PATH.fullmatch(name) is None:
            return eval(_code(name), dict(self._scope))
        step = _LAST_STEP.search(name)
        before = self._value(name[: step.start()])
        attribute, key, index = step.groups()
        if attribute is not None:
            return getattr(before, attribute)
        return before[int(index) if key is None else key]


@functools.lru_cache(maxsize=4096)
def _code(name: str) -> types.CodeType:
    return compile(name, "<source>", "eval")


class _Finder:
    def __init__(self, scope: Mapping[str, Any], arguments: Sequence[torch.Tensor]) -> None:
        self._scope = scope
        self._values = _Values(scope)
        self._arguments = {id(argument) for argument in arguments}
        self._seen: dict[str, Origin | None] = {}
        self._modules: list[Origin] = []
        self._entries: dict[tuple[int, str], Entry] = {}
        self._loose: list[Origin] = []

    def find(self, sources: Iterable[Source]) -> Origins:
        tensors, flags = [], []
        for source in {source.name: source for source in sources}.values():
            value = self._values.value(source)
            is_flag = isinstance(source, AttrSource) and source.member == FLAG
            if value is _NOTHING or id(value) in self._arguments:
                continue
            if not is_flag and not isinstance(value, torch.Tensor):
                continue
            (flags if is_flag else tensors).append(self._values.origin(source))
            self._follow(source)
        found = (tensors, flags, self._modules, self._entries.values(), self._loose)
        return Origins(*map(tuple, found))

    def _follow(self, source: Source) -> Origin | None:
        """Watch every link of the chain that leads to `source`."""
        chained = isinstance(source, ChainedSource)
        if chained and source.base.name == source.name:  # says more about the same value
            return self._follow(source.base)
        if source.name in self._seen:
            return self._seen[source.name]
        origin = self._seen[source.name] = self._values.origin(source)
        base = self._follow(source.base) if chained else None
        if origin is None:
            return None
        if isinstance(origin.value, torch.nn.Module):
            self._modules.append(origin)
        dictionary, key = self._place(source, base)
        if type(dictionary) is dict and type(key) is str and key in dictionary:
            self._entries[id(dictionary), key] = (dictionary, key, dictionary[key])
        elif not self._stays(source) and origin.read() is origin.value:
            self._loose.append(origin)
        return origin

    def _stays(self, source: Source) -> bool:
        """Arguments of the first frame do, its free variables may not."""
        return isinstance(source, LocalSource) and source.local_name in self._scope["L"]

    def _place(self, source: Source, base: Origin | None) -> tuple[Any, Any]:
        """The dictionary and key where the value of `source` is found, if there are such."""
        if isinstance(source, GlobalSource):
            return self._scope["G"], source.global_name
        if base is not None and isinstance(source, DictGetItemSource):
            return base.value, source.index
        if base is not None and isinstance(source, AttrSource):
            return getattr(base.value, "__dict__", None), source.member
        return None, None
