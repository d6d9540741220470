"""Which configurations of a family were tried, what came of each, and which to try next: Optuna over a discrete space.

A study lies in one file of Optuna's journal storage, beside the run's seed. It survives a killed process: what was told
is kept, and what was under way is open again. It rests on the cost model, the log and the measurements; nothing here
knows a GPU.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from kbs.common.files import make_folder
from loop.search.variant import Config, Value, Variant

MOST = 4096
"""Configurations of a space that are ordered by their cost; of a larger one, so many are drawn."""
START = 4
"""Configurations that the cost model chooses, before what was measured does."""
FAILED_US = 1e12
"""What the sampler is told of a configuration that does not compile, or whose result is wrong: a value like any other,
and the worst."""
_DRAWS = 24
"""Suggestions of the sampler that may be known already, or impossible, before the cost model chooses again."""


@dataclass(frozen=True)
class Outcome:
    """What came of a configuration."""

    us: float | None
    """Median time; None where there is none."""
    why: str
    """Why not; empty where it is accepted."""
    seconds: float
    """What the measurement took."""


@dataclass(frozen=True)
class Candidate:
    """A configuration of a family, and its kernel."""

    variant: Variant
    config: Mapping[str, Value]
    text: str
    trial: int
    """Its number in the study of the family."""

    @property
    def hash(self) -> str:
        """SHA-256 of the kernel's text."""
        return digest(self.text)

    @property
    def shown(self) -> str:
        """`num_warps=8, block=1024`"""
        return ", ".join(f"{name}={value}" for name, value in self.config.items())


def digest(text: str) -> str:
    """SHA-256 of a kernel's text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Study:
    """All families of one run. A process at a time uses it: the one that holds the run."""

    def __init__(self, path: Path, seed: int = 0) -> None:
        make_folder(path.parent)
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._storage = JournalStorage(JournalFileBackend(str(path)))
        self._seed = seed
        self._studies: dict[str, optuna.Study] = {}
        for one in self._storage.get_all_studies():
            for trial in self._storage.get_all_trials(one._study_id, states=(TrialState.RUNNING,)):
                self._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)  # its process was ended

    def _of(self, key: str) -> optuna.Study:
        if key not in self._studies:
            seed = self._seed + int(digest(key)[:6], 16)
            self._studies[key] = optuna.create_study(
                storage=self._storage,
                sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=START, multivariate=False),
                study_name=key,
                load_if_exists=True,
            )
        return self._studies[key]

    def ask(self, variant: Variant, key: str, count: int, past: Iterable[Config] = ()) -> list[Candidate]:
        """At most so many configurations that were not tried, those first that did well in the past, then the cheapest
        by the model; once some were measured, those that the sampler suggests.

        `key` names the family's space: its name, and the parent's hash where its kernels are changes of the parent.
        Configurations that cannot work (their cost is infinite, or no kernel can be made of them) are left out.
        """
        order = ordered(variant, past, self._seed)
        study, found = self._of(key), list[Candidate]()
        tried = {_identity(trial.params) for trial in study.get_trials(deepcopy=False) if _told(trial)}
        left = [config for config in order if _identity(config) not in tried]
        measured = sum(_told(trial) for trial in study.get_trials(deepcopy=False))
        for _ in range(_DRAWS):
            if len(found) >= count or not left:
                break
            modelled = measured + len(found) < START
            trial = self._fixed(study, variant, left[0]) if modelled else self._suggested(study, variant)
            config = dict(trial.params)
            fits = any(_identity(config) == _identity(one) for one in left)
            text = _rendered(variant, config) if fits else None
            left = [one for one in left if _identity(one) != _identity(config)]
            if text is None or any(text == one.text for one in found):
                study.tell(trial, state=TrialState.FAIL)
                continue
            trial.set_user_attr("kernel", digest(text))
            found.append(Candidate(variant, config, text, trial.number))
        for config in left:
            if len(found) >= count:
                break
            text = _rendered(variant, config)
            if text is not None and all(text != one.text for one in found):
                trial = self._fixed(study, variant, config)
                trial.set_user_attr("kernel", digest(text))
                found.append(Candidate(variant, config, text, trial.number))
        return found

    def _fixed(self, study: optuna.Study, variant: Variant, config: Config) -> optuna.Trial:
        study.enqueue_trial(dict(config))
        return study.ask(_distributions(variant))

    def _suggested(self, study: optuna.Study, variant: Variant) -> optuna.Trial:
        return study.ask(_distributions(variant))

    def tell(self, key: str, candidate: Candidate, outcome: Outcome) -> None:
        """Keep what came of a configuration that was asked for."""
        study = self._of(key)
        trial = study.get_trials(deepcopy=False)[candidate.trial]
        self._storage.set_trial_user_attr(trial._trial_id, "seconds", outcome.seconds)
        self._storage.set_trial_user_attr(trial._trial_id, "why", outcome.why)
        study.tell(candidate.trial, FAILED_US if outcome.us is None or outcome.why else outcome.us)

    def let_go(self, key: str, candidate: Candidate) -> None:
        """A configuration that was asked for is not measured: it may be asked for again."""
        self._of(key).tell(candidate.trial, state=TrialState.FAIL)

    def seconds(self) -> float:
        """What all measurements took."""
        return sum(
            float(trial.user_attrs.get("seconds", 0.0))
            for one in self._storage.get_all_studies()
            for trial in self._storage.get_all_trials(one._study_id, deepcopy=False)
        )

    def trials(self, key: str) -> int:
        """Configurations of a family of which something is known."""
        return sum(_told(trial) for trial in self._of(key).get_trials(deepcopy=False))

    def results(self, key: str, variant: Variant) -> Iterator[tuple[float, Candidate]]:
        """(time, configuration) of all that worked, the fastest first."""
        told = [trial for trial in self._of(key).get_trials(deepcopy=False) if _told(trial)]
        for trial in sorted(told, key=lambda one: one.value or 0.0):
            if trial.value is not None and trial.value < FAILED_US and not trial.user_attrs.get("why"):
                text = _rendered(variant, trial.params)
                if text is not None and digest(text) == trial.user_attrs.get("kernel"):
                    yield trial.value, Candidate(variant, trial.params, text, trial.number)


def ordered(variant: Variant, past: Iterable[Config] = (), seed: int = 0) -> list[dict[str, Value]]:
    """The configurations of a space that can work: those of the past that it has, then by cost."""
    names = list(variant.space)
    size = math.prod(len(values) for values in variant.space.values())
    if size <= MOST:
        every = [dict(zip(names, values, strict=True)) for values in itertools.product(*variant.space.values())]
    else:
        draw = random.Random(seed)
        every = [variant.default]
        every += [{name: draw.choice(values) for name, values in variant.space.items()} for _ in range(MOST)]
        every = list({_identity(one): one for one in every}.values())
    costs = [(variant.cost(config), place) for place, config in enumerate(every)]
    order = [every[place] for cost, place in sorted(costs) if math.isfinite(cost)]
    first = [dict(one) for one in past if any(_identity(one) == _identity(config) for config in order)]
    known = {_identity(one) for one in first}
    return [*({_identity(one): one for one in first}.values()), *(one for one in order if _identity(one) not in known)]


_PAIR = re.compile(r"\b([A-Za-z_]\w*)=([\w.+-]*\w)")


def read_config(text: str, variant: Variant) -> dict[str, Value] | None:
    """The configuration that a sentence names, as `Candidate.shown` writes it; None where it names no whole one."""
    said = dict(_PAIR.findall(text))
    found: dict[str, Value] = {}
    for name, values in variant.space.items():
        value = next((one for one in values if str(one) == said.get(name)), None)
        if value is None:
            return None
        found[name] = value
    return found


def _distributions(variant: Variant) -> dict[str, BaseDistribution]:
    return {name: CategoricalDistribution(values) for name, values in variant.space.items()}


def _rendered(variant: Variant, config: Config) -> str | None:
    """The kernel of a configuration; None where the generator says that there is none."""
    try:
        return variant.render(config)
    except ValueError:
        return None


def _identity(config: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in config.items()))


def _told(trial: FrozenTrial) -> bool:
    return trial.state is TrialState.COMPLETE
