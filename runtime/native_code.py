"""Relocatable ELF objects -> machine code in memory. A linker for what our compiler emits, no more.

The compiler emits x86-64 objects of the large code model: every address is an absolute 64-bit word,
so nothing has to be near anything else, and there are no stubs and no global offset table. Names
that no object defines are looked up in the process (libc, libm, the libgomp that torch loaded).

This is here because a JIT library costs more memory than the whole of a network's code: LLVM's
takes 46 MB of a process, this nothing.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")

_RELOCATABLE, _X86_64 = 1, 62
_SYMBOL_TABLE, _RELOCATIONS, _ZEROS, _INITIALIZERS = 2, 4, 8, (14, 15, 16)
_WRITE, _ALLOCATE, _EXECUTE, _THREAD_LOCAL = 1, 2, 4, 0x400
_LOCAL, _UNDEFINED, _ABSOLUTE, _FIRST_RESERVED = 0, 0, 0xFFF1, 0xFF00
_ABSOLUTE_64 = 1

_READ, _READ_WRITE, _READ_EXECUTE = 1, 3, 5  # protection of pages


class KernelLinkError(RuntimeError):
    """A module does not become machine code, has no such function, or lacks a symbol."""


@dataclass
class _Section:
    name: str
    type: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    place: int = -1  # offset in the block, of those that are loaded

    @property
    def protection(self) -> int:
        if self.flags & _EXECUTE:
            return _READ_EXECUTE
        return _READ_WRITE if self.flags & _WRITE else _READ

    @property
    def is_loaded(self) -> bool:
        """Unwind tables are left out: nothing here throws."""
        return bool(self.flags & _ALLOCATE and self.size) and self.name != ".eh_frame"


class NativeCode:
    """The linked objects. The code lives as long as this does."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        files = [_Object(data) for data in objects]
        size, groups = _lay_out([s for file in files for s in file.sections if s.is_loaded])
        self._block = mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._base = ctypes.addressof(ctypes.c_char.from_buffer(self._block))
        self._symbols: dict[str, int] = {}
        for file in files:
            self._copy(file)
        for file in files:
            self._relocate(file)
        for protection, start, end in groups:
            if _libc().mprotect(self._base + start, end - start, protection):
                raise KernelLinkError("the system forbids executable memory (mprotect failed)")

    def address(self, name: str) -> int:
        """Address of a global symbol, 0 if no object defines it."""
        return self._symbols.get(name, 0)

    def _copy(self, file: _Object) -> None:
        for section in file.sections:
            if section.is_loaded and section.type != _ZEROS:
                end = section.place + section.size
                self._block[section.place : end] = file.contents(section)
        for name, place in file.globals():
            if name in self._symbols:
                raise KernelLinkError(f"two objects define the symbol {name}")
            self._symbols[name] = self._base + place

    def _relocate(self, file: _Object) -> None:
        for section, symbol, offset, type_, addend in file.relocations():
            if type_ != _ABSOLUTE_64:
                raise KernelLinkError(f"relocation of type {type_} in {section.name}")
            value = (self._value(file, symbol) + addend) % (1 << 64)
            struct.pack_into("<Q", self._block, section.place + offset, value)

    def _value(self, file: _Object, symbol: int) -> int:
        name, binding, section, value = file.symbols[symbol]
        if section == _ABSOLUTE:
            return value
        if section >= _FIRST_RESERVED:
            raise KernelLinkError(f"symbol {name} is in the special section {section:#x}")
        if section == _UNDEFINED:
            address = self._symbols.get(name) or address_in_process(name)
            if not address:
                raise KernelLinkError(f"the external symbol {name} is undefined in this process")
            return address
        return self._base + file.sections[section].place + value


class _Object:
    """One file, parsed. symbols: name, binding, section, value."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        try:
            self._parse()
        except (struct.error, IndexError, UnicodeDecodeError, ValueError) as error:
            raise KernelLinkError(f"not an object file of x86-64: {error}") from error

    def _parse(self) -> None:
        header = _HEADER.unpack_from(self._data)
        if header[0][:6] != b"\x7fELF\x02\x01" or header[1:3] != (_RELOCATABLE, _X86_64):
            raise ValueError("bad header")
        table, count, names = header[6], header[12], header[13]
        rows = [_SECTION.unpack_from(self._data, table + 64 * i) for i in range(count)]
        self.sections = [
            _Section(self._name(rows[names][4], row[0]), row[1], row[2], *row[4:9]) for row in rows
        ]
        for section in self.sections:
            if section.flags & _THREAD_LOCAL or section.type in _INITIALIZERS:
                raise ValueError(f"section {section.name} is not supported")
        self.symbols = []
        for table in (s for s in self.sections if s.type == _SYMBOL_TABLE):
            strings = self.sections[table.link].offset
            self.symbols = [
                (self._name(strings, name), info >> 4, section, value)
                for name, info, _, section, value, _ in _SYMBOL.iter_unpack(self.contents(table))
            ]

    def _name(self, strings: int, offset: int) -> str:
        start = strings + offset
        return self._data[start : self._data.index(0, start)].decode()

    def contents(self, section: _Section) -> bytes:
        return self._data[section.offset : section.offset + section.size]

    def globals(self) -> list[tuple[str, int]]:
        """Names and offsets in the block of what other objects may refer to."""
        return [
            (name, self.sections[section].place + value)
            for name, binding, section, value in self.symbols
            if binding != _LOCAL and _UNDEFINED < section < _FIRST_RESERVED
        ]

    def relocations(self) -> list[tuple[_Section, int, int, int, int]]:
        """Section, symbol, offset in the section, type, addend."""
        return [
            (self.sections[table.info], info >> 32, offset, info & 0xFFFFFFFF, addend)
            for table in self.sections
            if table.type == _RELOCATIONS and self.sections[table.info].is_loaded
            for offset, info, addend in _RELOCATION.iter_unpack(self.contents(table))
        ]


def undefined_symbols(data: bytes) -> tuple[str, ...]:
    """Names that an object needs of others. Raises KernelLinkError."""
    symbols = _Object(data).symbols
    return tuple(sorted(name for name, _, section, _ in symbols if name and section == _UNDEFINED))


def _lay_out(sections: Sequence[_Section]) -> tuple[int, list[tuple[int, int, int]]]:
    """Place sections of the same protection together, each group on pages of its own.

    Bytes of the block, and protection, start and end of each group.
    """
    end, groups = 0, []
    for protection in (_READ_EXECUTE, _READ, _READ_WRITE):
        start = end = _align(end, mmap.PAGESIZE)
        for section in sections:
            if section.protection == protection:
                section.place = _align(end, max(1, section.alignment))
                end = section.place + section.size
        if end > start:
            groups.append((protection, start, end))
    return end, groups


def _align(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def address_in_process(name: str) -> int:
    """Address of a function that the program or its libraries export; 0 if there is none."""
    try:
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    except AttributeError:
        return 0
