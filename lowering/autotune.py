"""Measure what the cost models only estimate: `mode="max-autotune"`.

For a module, first the algorithm of every distinct convolution, then the schedule of every distinct
kernel, is chosen by running the candidates here, alone, on the threads in use. What was found is
written into the module as attributes that the passes obey, and kept in the cache, so that no kernel
is measured twice. A candidate must compute what the cost model's choice computes.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import torch

from mlir_npu.dialect.host_cpu import cpu_name
from mlir_npu.dialect.target import Target, load_target
from mlir_npu.logs import warn_once
from mlir_npu.options import Options
from mlir_npu.runtime.bytecode import bytecode
from mlir_npu.runtime.compile_pool import run_apart
from mlir_npu.runtime.contest import contest
from mlir_npu.runtime.kernel import KernelLinkError
from mlir_npu.runtime.object_cache import default_cache
from mlir_npu.runtime.toolchain import digest, is_current
from mlir_npu.runtime.trial import Trial, random_arguments, same_numbers
from mlir_npu.runtime.tuning import Answer, Question, Tuned, Tuning

if TYPE_CHECKING:
    from mlir_npu.dialect.bindings import ir
    from mlir_npu.passes.pipelines import Recipe

ABOUT = ("convolutions", "kernels")
EVICTION = 2  # what is read between calls, in sizes of the cache

logger = logging.getLogger("mlir_npu.autotune")

_known: dict[str, Answer] = {}  # of this process


def autotune(module: ir.Module, recipe: Recipe, options: Options) -> Tuning:
    """Write what was measured, or known, into the module. Whatever fails is left to the models."""
    target = load_target(options.target)
    if not target.cached:
        reason = (
            f"the target {target.name!r} is an accelerator: its cycles are computed, so there is "
            "nothing to measure (npu-sim shows them)"
        )
        warn_once(logger, reason, f"mode='max-autotune' changes nothing: {reason}")
        return Tuning(reason=reason)
    started, tuned = time.perf_counter(), []
    bench = _Bench(target, recipe, options)
    for about in ABOUT:  # kernels follow from the algorithms of convolutions
        tuned += bench.tune(about, module)
    tuning = Tuning(tuple(tuned), bench.threads, time.perf_counter() - started)
    logger.info("%s", tuning)
    return tuning


class _Bench:
    """Answers questions, from memory, from the cache, or by measuring."""

    def __init__(self, target: Target, recipe: Recipe, options: Options) -> None:
        self.threads = options.num_threads or torch.get_num_threads()
        self._recipe = recipe
        self._cache = default_cache() if options.cache and is_current() else None
        self._other = torch.zeros(EVICTION * target.sram.bytes * self.threads // 4)

    def tune(self, about: str, module: ir.Module) -> list[Tuned]:
        """Answer what a module asks about one thing, and write it down there."""
        from mlir_npu.dialect.bindings import ir
        from mlir_npu.passes.kernels.choices import set_choices

        (questions,) = run_apart(
            [("questions", (about, bytecode(module), self._recipe, self.threads))]
        )
        if isinstance(questions, Exception):
            logger.warning("nothing is tuned about %s: %s", about, questions)
            return []
        answers = self._answers(questions)
        with module.context, ir.Location.unknown():
            for name in {question.attribute for question in answers}:
                chosen = {q.key: t.answer.chosen for q, t in answers.items() if q.attribute == name}
                set_choices(module.operation, name, chosen)
        return list(answers.values())

    def _answers(self, questions: list[Question]) -> dict[Question, Tuned]:
        keys = [self._key(question) for question in questions]
        known = [self._find(key) for key in keys]
        asked = [q for q, answer in zip(questions, known, strict=True) if answer is None]
        outcomes = iter(self._compile(asked))
        found = {}
        for question, key, answer in zip(questions, keys, known, strict=True):
            is_known = answer is not None
            if not is_known:
                answer = self._measure(question, next(outcomes))
                self._keep(key, answer)
            if answer is not None:
                found[question] = Tuned(question.name, answer, is_known)
        return found

    def _key(self, question: Question) -> str:
        return digest("tuned", str(self.threads), cpu_name(), question.text)

    def _find(self, key: str) -> Answer | None:
        if key in _known:
            return _known[key]
        contents = self._cache.get(key) if self._cache else None
        return Answer(**json.loads(contents)) if contents is not None else None

    def _keep(self, key: str, answer: Answer | None) -> None:
        if answer is None:
            return
        _known[key] = answer
        if self._cache:
            self._cache.put(key, json.dumps(asdict(answer)).encode())

    def _compile(self, questions: list[Question]) -> list[list]:
        """For every question the outcomes of its candidates."""
        jobs = [("candidate", (q, c, self._recipe)) for q in questions for c in q.candidates]
        outcomes = iter(run_apart(jobs) if jobs else ())
        return [[next(outcomes) for _ in question.candidates] for question in questions]

    def _measure(self, question: Question, outcomes: list) -> Answer | None:
        """None if the model's own choice does not run: compiling the region says why."""
        if isinstance(outcomes[0], Exception):
            logger.debug("%s is not tuned: %s", question.name, outcomes[0])
            return None
        given = random_arguments(outcomes[0][0])
        trials: list[tuple[str, Trial]] = []
        for choice, outcome in zip(question.candidates, outcomes, strict=True):
            trial = self._trial(outcome, given)
            if trial is not None and (
                not trials or same_numbers(trial.outputs, trials[0][1].outputs)
            ):
                trials.append((choice, trial))
                continue
            cause = outcome if isinstance(outcome, Exception) else "it computes something else"
            logger.warning("%s: candidate %s is rejected: %s", question.name, choice, cause)
        result = contest([trial.run for _, trial in trials], self._evict)
        rejected = len(question.candidates) - len(trials)
        chosen = trials[result.winner][0]
        answer = Answer(chosen, result.winner > 0, result.before, result.after, rejected)
        logger.debug("%s: %s", question.name, answer)
        return answer

    def _trial(self, outcome: Any, given: list[torch.Tensor]) -> Trial | None:
        """After one call; None if it cannot be called."""
        if isinstance(outcome, Exception):
            return None
        signature, code = outcome
        try:
            trial = Trial(code, signature, given, self.threads)
        except KernelLinkError:
            return None
        trial.run()
        return trial

    def _evict(self) -> None:
        """What a kernel reads was used a while ago, in a network: it is not in the cache."""
        self._other.add_(1)
