"""What is tuned, and what came of it: plain data, for every process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_npu.words import count


@dataclass(frozen=True)
class Question:
    """Which candidate is fastest for one kernel?

    name: for people; attribute, key: of the module, where passes look for the answer; text: all
    that the answer depends on besides threads and toolchain; module: bytecode of the kernel alone,
    callable as @main; candidates: attributes as text, the cost model's choice first.
    """

    name: str
    attribute: str
    key: str
    text: str
    module: bytes
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """chosen: a candidate; before, after: seconds with the cost model's choice and with it;
    rejected: candidates that computed something else, or did not compile."""

    chosen: str
    is_other: bool
    before: float
    after: float
    rejected: int

    @property
    def gain(self) -> float:
        return self.before / self.after


@dataclass(frozen=True)
class Tuned:
    """A kernel and its answer; known: it was answered before, by this process or another."""

    name: str
    answer: Answer
    known: bool

    def __str__(self) -> str:
        before, after = 1e3 * self.answer.before, 1e3 * self.answer.after
        return f"{self.name}: {before:.3f} -> {after:.3f} ms, {self.answer.gain:.2f} times as fast"


@dataclass(frozen=True)
class Tuning:
    """What tuning did to a region. reason: why nothing was measured."""

    kernels: tuple[Tuned, ...] = ()
    threads: int = 0
    seconds: float = 0.0
    reason: str | None = None

    @property
    def measured(self) -> int:
        return sum(not tuned.known for tuned in self.kernels)

    @property
    def changed(self) -> tuple[Tuned, ...]:
        """Those for which the measurements overruled the cost model."""
        return tuple(tuned for tuned in self.kernels if tuned.answer.is_other)

    def recalled(self) -> Tuning:
        """As it is where its code is found in the cache."""
        known = tuple(replace(tuned, known=True) for tuned in self.kernels)
        return replace(self, kernels=known, seconds=0.0)

    def __str__(self) -> str:
        if self.reason is not None:
            return f"not tuned: {self.reason}"
        threads = count(self.threads, "thread")
        rejected = sum(tuned.answer.rejected for tuned in self.kernels)
        measured = f"{self.measured} measured in {self.seconds:.1f} s, the others known"
        choices = count(len(self.kernels), "choice")
        parts = [
            f"{choices} tuned for {threads}, {len(self.changed)} changed",
            measured if self.measured else "all known from before",
            *([f"{count(rejected, 'candidate')} rejected"] if rejected else []),
        ]
        return "\n".join(["; ".join(parts), *map(str, self.changed)])
