"""Random nests of loops in the form of the stage "stage": loads, compute and stores at every level.

Unlike the loops that tiles make, these run any number of times, none included, start anywhere, and
have steps; moves stand before, behind and inside of inner loops, and accumulators are filled in one
loop and added to in the next.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from jit import segments

ROWS, WIDTH = 128, 4
DRAM = f"memref<{ROWS}x{WIDTH}xf32>"
BOX = f"memref<1x{WIDTH}xf32, strided<[{WIDTH}, 1], offset: ?>>"
TILE = f'memref<1x{WIDTH}xf32, #npu.space<"sram">>'
ACC = f'memref<{WIDTH}xf32, #npu.space<"acc">>'
BOTH, LAST = "affine_map<(r, i) -> (r, i)>", "affine_map<(r, i) -> (i)>"
INPUTS = 2
OPS = ("arith.addf", "arith.subf", "arith.maximumf")


@dataclass(frozen=True)
class Loop:
    """An scf.for; its counter is %i<depth>."""

    low: int
    step: int
    trips: int


@dataclass
class Nests:
    """Text of a kernel and of its @main. Arguments: INPUTS inputs, then `outputs` outputs."""

    rng: random.Random
    buffers: int = 2
    acc_buffers: int = 2
    lines: list[str] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)  # of each output, those that are stored
    names: int = 0

    def text(self, number: int = 0) -> str:
        """@kernel_<number> and @main_<number>; makes the nests, so call it once."""
        for _ in range(self.rng.choice((1, 1, 2))):
            loops = [self._loop() for _ in range(self.rng.randint(1, 3))]
            self._level(loops, 0, [], [])
        inputs = [f"%x{i}" for i in range(INPUTS)]
        arguments = [*inputs, *(f"%y{i}" for i in range(len(self.rows)))]
        signature = ", ".join(f"{a}: {DRAM}" for a in arguments)
        body = "\n  ".join(self.lines)
        return f"""
func.func private @kernel_{number}({signature}) attributes {{npu.kernel = "eltwise", npu.schedule = {{
    buffers = {self.buffers} : i64, acc_buffers = {self.acc_buffers} : i64}}}} {{
  {body}
  return
}}
func.func @main_{number}({signature}) {{
  call @kernel_{number}({", ".join(arguments)}) : ({", ".join([DRAM] * len(arguments))}) -> ()
  return
}}"""

    def _loop(self) -> Loop:
        choose = self.rng.choice
        return Loop(choose((0, 0, 1, 2)), choose((1, 1, 2)), choose((0, 1, 2, 3, 3, 5)))

    def _new(self) -> str:
        self.names += 1
        return f"%v{self.names}"

    def _index(self, value: int) -> str:
        name = self._new()
        self.lines.append(f"{name} = arith.constant {value} : index")
        return name

    def _level(self, loops: list[Loop], depth: int, tiles: list[str], sums: list[str]) -> None:
        """The body around loop `depth`; `tiles` and `sums` are what outer bodies hold."""
        tiles = list(tiles)
        self._work(loops[:depth], tiles, sums)
        if depth < len(loops):
            own = [self._accumulator()] if self.rng.random() < 0.6 else []
            loop = loops[depth]
            low, high = self._index(loop.low), self._index(loop.low + loop.step * loop.trips)
            step = self._index(loop.step)
            self.lines.append(f"scf.for %i{depth} = {low} to {high} step {step} {{")
            self._level(loops, depth + 1, tiles, [*sums, *own])
            self.lines.append("}")
            tiles += [self._drain(total) for total in own]
            self._work(loops[:depth], tiles, [])
        if tiles and depth:
            self._store(loops[:depth], self._compute(tiles))

    def _work(self, around: list[Loop], tiles: list[str], sums: list[str]) -> None:
        for _ in range(self.rng.randint(0, 3)):
            action = self.rng.choice(("load", "load", "compute", "store"))
            if action == "load":
                tiles.append(self._load(around))
            elif tiles and action == "compute":
                tiles.append(self._compute(tiles))
            elif tiles and around and action == "store":
                self._store(around, self._compute(tiles))
        for total in sums if tiles else ():
            self._reduce(self.rng.choice(tiles), total)

    def _box(self, memory: str, depths: Sequence[int], expression: str) -> str:
        """The row that is an expression of the counters of the loops at `depths`."""
        row, box = self._new(), self._new()
        counters = ", ".join(f"%i{d}" for d in depths)
        dims = counters.replace("%", "")
        self.lines.append(
            f"{row} = affine.apply affine_map<({dims}) -> ({expression})>({counters})"
        )
        self.lines.append(
            f"{box} = memref.subview {memory}[{row}, 0] [1, {WIDTH}] [1, 1] : {DRAM} to {BOX}"
        )
        return box

    def _move(self, source: str, target: str, types: str) -> None:
        token = self._new()
        self.lines.append(
            f'{token} = "npu.dma_start"({source}, {target}) {{permutation = array<i64: 0, 1>}} : '
            f"({types}) -> !npu.token"
        )
        self.lines.append(f'"npu.dma_wait"({token}) : (!npu.token) -> ()')

    def _load(self, around: list[Loop]) -> str:
        """A tile at a row that depends on some of the counters; of an input, or stored before."""
        used = [d for d in range(len(around)) if self.rng.random() < 0.5]
        terms = [f"i{d} * {self.rng.choice((1, 2))}" for d in used]
        source = f"%x{self.rng.randrange(INPUTS)}"
        if self.rows and self.rng.random() < 0.4:
            source = f"%y{self.rng.randrange(len(self.rows))}"
        box = self._box(source, used, " + ".join([*terms, str(self.rng.randint(0, 3))]))
        tile = self._alloc(TILE)
        self._move(box, tile, f"{BOX}, {TILE}")
        return tile

    def _store(self, around: list[Loop], tile: str) -> None:
        """To an output of its own, at the row of the number of the iteration."""
        number = "0"
        for depth, loop in enumerate(around):
            number = f"({number}) * {loop.trips} + (i{depth} - {loop.low}) floordiv {loop.step}"
        box = self._box(f"%y{len(self.rows)}", range(len(around)), number)
        self._move(tile, box, f"{TILE}, {BOX}")
        self.rows.append(prod(loop.trips for loop in around))

    def _alloc(self, type_: str) -> str:
        name = self._new()
        self.lines.append(f"{name} = memref.alloc() : {type_}")
        return name

    def _accumulator(self) -> str:
        total = self._alloc(ACC)
        self.lines.append(f'"npu.fill"({total}) {{value = 0.0 : f32}} : ({ACC}) -> ()')
        return total

    def _compute(self, tiles: list[str]) -> str:
        one, other = self.rng.choice(tiles), self.rng.choice(tiles)
        result = self._alloc(TILE)
        self.lines.append(
            f'"npu.eltwise"({one}, {other}, {result}) ({{\n'
            f"  ^bb0(%a: f32, %b: f32, %old: f32):\n"
            f"    %c = {self.rng.choice(OPS)} %a, %b : f32\n"
            f'    "npu.yield"(%c) : (f32) -> ()\n'
            f"  }}) {{indexing_maps = [{BOTH}, {BOTH}, {BOTH}], {segments(2)}}} : "
            f"({TILE}, {TILE}, {TILE}) -> ()"
        )
        return result

    def _reduce(self, tile: str, total: str) -> None:
        self.lines.append(
            f'"npu.reduce"({tile}, {total}) ({{\n'
            f"  ^bb0(%a: f32, %s: f32):\n"
            f"    %c = arith.addf %a, %s : f32\n"
            f'    "npu.yield"(%c) : (f32) -> ()\n'
            f"  }}) {{indexing_maps = [{BOTH}, {LAST}], {segments(1)},\n"
            f'    iterator_types = ["reduction", "parallel"]}} : ({TILE}, {ACC}) -> ()'
        )

    def _drain(self, total: str) -> str:
        result = self._alloc(TILE)
        self.lines.append(
            f'"npu.drain"({total}, {result}) ({{\n'
            f"  ^bb0(%a: f32, %old: f32):\n"
            f'    "npu.yield"(%a) : (f32) -> ()\n'
            f"  }}) {{indexing_maps = [{LAST}, {BOTH}], {segments(0, accumulator=True)}}} : "
            f"({ACC}, {TILE}) -> ()"
        )
        return result
