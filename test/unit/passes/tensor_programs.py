"""Random image networks on tensors.

All numbers are small integers in f32, and at most three contractions follow each other, so that
every sum is exact in any order: two ways to compute a network agree bit by bit or one of them is
wrong.
"""

from __future__ import annotations

import random

from tensor_layers import (
    add,
    bias,
    concat,
    convolution,
    flat,
    gate,
    linear,
    pad,
    pool,
    relu,
    slice_,
    transpose,
)
from tensor_text import Program

CONTRACTIONS = 3


def random_program(seed: int) -> tuple[Program, str]:
    """A network of up to eight steps and its text; at least one is a contraction."""
    rng = random.Random(seed)
    p = Program()
    first = p.argument(
        (rng.randint(1, 2), rng.choice([1, 4, 6]), rng.choice([1, 6]), rng.choice([5, 6])), "input"
    )
    values = [first]
    for _ in range(rng.randint(3, 8)):
        y = _step(p, values, rng)
        if y is not None:
            values.append(y)
    results = [values[-1]]
    if rng.random() < 0.3:
        results.append(rng.choice(values))
    if p.contractions == 0 or (rng.random() < 0.4 and p.contractions < CONTRACTIONS):
        results[0] = linear(p, results[0])
    return p, p.text(results)


def _step(p: Program, values, rng: random.Random):
    x = values[-1] if rng.random() < 0.7 else rng.choice(values)
    same = [v for v in values if v[1] == x[1]]
    beside = [v for v in values if v[1][0] == x[1][0] and v[1][2:] == x[1][2:]]
    choices = {
        "convolution": lambda: convolution(p, x, rng) if p.contractions < CONTRACTIONS else None,
        "pool": lambda: pool(p, x, rng),
        "bias": lambda: bias(p, x),
        "relu": lambda: relu(p, x),
        "add": lambda: add(p, x, rng.choice(same)),
        "concat": lambda: concat(p, x, rng.choice(beside)),
        "slice": lambda: slice_(p, x, rng),
        "gate": lambda: gate(p, x),
        "flat": lambda: flat(p, x),
        "permute": lambda: transpose(p, x, rng.choice([(0, 2, 3, 1), (0, 3, 1, 2), (0, 1, 3, 2)])),
        "pad": lambda: pad(p, x, (0, 0, 0, 1), (0, 1, 2, 0), rng.choice(["%zero", "%three"])),
    }
    names = list(choices)
    weights = [4 if name in ("convolution", "bias", "relu") else 1 for name in names]
    return choices[rng.choices(names, weights)[0]]()
