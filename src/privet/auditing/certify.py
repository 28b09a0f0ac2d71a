"""Certify: what no adversary can beat when it sees a release, whatever its design; and the noise
that a wanted bound takes.

Two kinds of release can be certified from the codes c(x) of people who are new to c and to its
noise: z = c(x) + sigma N(0, I_d), and one symbol of a finite alphabet, which is replaced by a
random one with probability flip. evidence/certificate.py has the bound and its proof; here are the
release and the data. Noise acts after the code, so the least that meets a target is found without
learning anything again: on *select*, and then certified once, on *test*. What is called sigma here
is, of symbols, flip.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import torch

from privet.auditing.certificate_targets import Question, people_of_each, questions
from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.data.dataset import PARTS, Array, Dataset
from privet.data.schema import Column, TableSchema
from privet.evidence.certificate import gaussian as certificate
from privet.evidence.certificate.gaussian import DIMENSIONS, Certificate
from privet.evidence.certificate.smoothing import Draws
from privet.evidence.certificate.symbols import certify_alphabet, response, smallest_flip
from privet.evidence.certificate.values import Certification, Step
from privet.evidence.figures import Certified, Figure
from privet.nets.additive import Additive
from privet.nets.device import pick
from privet.nets.identity import Identity
from privet.nets.symbols import ROUNDING, Symbols
from privet.release.noise import Noise
from privet.release.release import Release

CONFIDENCE = 0.99
REPEATS = (1, 4, 16)
"""Releases of the same record that an adversary may have collected."""
FACTORS = tuple(2 ** (half / 2) for half in range(-4, 5))
"""Noise levels of the curve, as multiples of the release's own."""
FLIPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9)
"""The same for symbols."""


def why_not(release: Release) -> str:
    """Why a release cannot be certified, as the end of a sentence; empty where it can."""
    law, shape = release.noise, release.shape
    if not release.is_random:
        return "the release adds no noise, and without noise some adversary may read everything"
    if law is None:
        return "its noise is drawn inside its program, where its law is not known"
    if type(release.module) is Symbols:
        return (
            ""
            if law == Noise("uniform", (2,), law.scale)
            else "its symbols are not replaced by uniform ones"
        )
    if type(release.module) is not Additive:  # a subclass may do anything with the noise
        return "its noise is not simply added to its code"
    if law.law != "gaussian":
        return f"its noise law is {law.law}, and only gaussian noise can be certified"
    if any(size is None for size in shape):
        return "records are released at their own length, which no noise hides"
    if tuple(law.shape) != shape:
        return "its coordinates do not each have noise of their own"
    if (d := math.prod(size or 1 for size in shape)) > DIMENSIONS:
        return f"the code has {d:,} dimensions, and more than {DIMENSIONS} cannot be certified from a sample"
    return ""


def alphabet(release: Release) -> int:
    """How many symbols there are; 0 where what is released are numbers."""
    return int(release.shape[0] or 0) if type(release.module) is Symbols else 0


def codes(release: Release, data: Dataset, device: torch.device, batch: int = 256) -> Array:
    """What the release adds noise to: (n, d), or symbols (n,), of each record of `data`. Only for
    releases that `why_not` lets pass."""
    body = release.to(device).module.get_submodule("body")
    inputs = release.schema.inputs(data)
    found = []
    with torch.inference_mode():
        for start in range(0, len(inputs), batch):
            x = torch.from_numpy(np.ascontiguousarray(inputs[start : start + batch])).to(device)
            found.append(body(x).flatten(1).float().cpu().numpy())
    table = np.concatenate(found)
    return table.argmax(1) if alphabet(release) else table


def certify_release(
    release: Release,
    data: Dataset,
    *,
    private: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    releases: Sequence[int] = REPEATS,
    device: str | torch.device = "auto",
    seed: int = 0,
) -> tuple[Certified, ...]:
    """A certificate per private attribute and, where there are several, one for all of them at
    once, from the *test* people.

    Each is given for every number in `releases` of the same record that an adversary sees, and each
    holds with `confidence` by itself. `private` is what the release hides unless it is given.
    """
    _check_share("confidence", confidence)
    names = list(private) or release.private
    why, notes = why_not(release), _elsewhere(release, data)
    test = data.part("test")
    asked = questions(data, "test", names)
    if why:
        d = (
            0
            if any(size is None for size in release.shape)
            else math.prod(size or 1 for size in release.shape)
        )
        return tuple(_refused(q, confidence, d, why) for q in asked)
    table, sigma = codes(release, test, _place(device)), sigma_of(release)
    found = []
    for question in asked:
        for k in releases:
            one = _certificate(
                alphabet(release), table, sigma, question, test.people, confidence, seed, k
            )
            found.append(
                _certified(
                    one,
                    " ".join(note for note in (question.note, notes, _response(release)) if note),
                    release,
                )
            )
    return tuple(found)


def _certificate(
    size: int,
    table: Array,
    sigma: float,
    question: Question,
    people: Array,
    confidence: float,
    seed: int,
    releases: int = 1,
) -> Certificate:
    """Of codes or, with an alphabet of this size, of symbols."""
    there = question.labels >= 0
    asked = (question.labels[there], people[there], question.name, question.values)
    if size:
        rounding = (size + 1) * ROUNDING
        return certify_alphabet(
            table[there],
            size,
            response(size, sigma),
            *asked,
            confidence=confidence,
            releases=releases,
            rounding=rounding,
        )
    return certificate.certify(
        table[there],
        sigma,
        *asked,
        confidence=confidence,
        releases=releases,
        draws=Draws(seed=seed),
    )


def _response(release: Release) -> str:
    """What is released, where it is a symbol."""
    size, flip = alphabet(release), sigma_of(release)
    if not size:
        return ""
    often = (
        f"in {100 * flip:.3g} % of releases it is replaced by one drawn at random"
        if flip
        else "it is never replaced at random"
    )
    return f"What is released is one symbol of an alphabet of {size} symbols; {often}."


def sigma_of(release: Release) -> float:
    """The deviation that the exported graph multiplies unit noise with; of symbols, how often one
    is replaced."""
    return abs(float(_strength(release.module)))


def _strength(module: torch.nn.Module) -> torch.Tensor:
    return module.get_buffer("flip" if type(module) is Symbols else "scale")


def with_sigma(release: Release, sigma: float) -> Release:
    """The same code with other noise on it."""
    before = sigma_of(release)
    module = copy.deepcopy(release.module)
    _strength(module).fill_(sigma)
    assert release.noise is not None, "only a release with noise gets other noise"

    def changed(settings: dict[str, Any]) -> dict[str, Any]:
        # A setting of that name may be another thing, such as the noise in learning: only what is
        # the release's own changes.
        same = {
            key
            for key in ("noise", "sigma", "scale", "flip")
            if _is_close(settings.get(key), before)
        }
        return {key: sigma if key in same else value for key, value in settings.items()}

    stale = (
        "in_game",
        "chosen",
        "certificate",
        "sha256",
    )  # said of the release with the noise it had before
    card = {key: copy.deepcopy(value) for key, value in release.card.items() if key not in stale}
    if isinstance(card.get("settings"), dict):
        card["settings"] = changed(card["settings"])
    name, settings = release.network
    return Release(
        release.schema, (name, changed(settings)), module, replace(release.noise, scale=sigma), card
    )


def choose_sigma(
    release: Release,
    data: Dataset,
    target: float,
    *,
    confidence: float = CONFIDENCE,
    device: str | torch.device = "auto",
    seed: int = 0,
) -> float:
    """The smallest noise that should bring every private attribute to `target` on *test*, chosen on
    *select*."""
    if why := why_not(release):
        raise PrivetError(f"No noise can be chosen for this release: {why}.")
    select, test = data.part("select"), data.part("test")
    table = codes(release, select, _place(device))
    found = []
    there_too = {q.name: q for q in questions(data, "test", release.private, joint=False)}
    for question in questions(data, "select", release.private, joint=False):
        blind = 1 / max(len(question.values), 1)
        if not blind < target < 1:
            raise PrivetError(
                f"A target for '{question.name}' lies between guessing, {blind:.2g}, and 1, and {target:g} does not."
            )
        there = question.labels >= 0
        people = people_of_each(there_too[question.name], test)
        among = (question.labels[there], select.people[there], question.values, target)
        if size := alphabet(release):
            sigma = smallest_flip(table[there], size, *among, people=people, confidence=confidence)
        else:
            sigma = certificate.smallest_sigma(
                table[there],
                *among,
                people=people,
                confidence=confidence,
                draws=Draws(20_000, seed),
            )
        if sigma is None:
            there_error, here_error = (
                blind * math.sqrt(sum(1 / max(n, 1) for n in some))
                for some in (people, people_of_each(question, select))
            )
            least = (
                blind
                + there_error * math.sqrt(math.log(1 / (1 - confidence)) / 2)
                + math.hypot(there_error, here_error) / 2
            )
            if least >= certificate.VACUOUS:
                few = certificate.too_few_for_any(sum(people), len(question.values), 1 - confidence)
                raise PrivetError(f"No noise certifies '{question.name}': {few}.")
            raise PrivetError(
                f"With {sum(people):,} test people no noise certifies '{question.name}' at {target:g}: ask for "
                f"{math.ceil(100 * least + 0.3) / 100:g} or more, add people, or lower --confidence."
            )
        found.append(sigma)
    return max(found)


def certification(
    release: Release,
    data: Dataset,
    utility: Sequence[str] = (),
    *,
    confidence: float = CONFIDENCE,
    target: float | None = None,
    curve: bool = False,
    device: str = "auto",
    seed: int = 0,
    progress: bool = True,
) -> tuple[Release, Certification]:
    """Everything `privet certify` says, and the release it is said of: with a `target`, one with
    the noise chosen for it.

    *Test* is looked at for one sigma only, whether it meets the target or not: choosing again would
    make the confidence a lie.
    """
    started, where = time.monotonic(), pick(device)
    _check_share("confidence", confidence)
    if target is not None:
        _check_share("target", target)
    if not release.private:
        raise PrivetError(
            "This release does not say what it hides, so there is nothing to certify."
        )
    if both := set(release.private) & set(utility):
        raise PrivetError(f"The release hides '{min(both)}', so it cannot be a task as well.")
    release.schema.check(data)
    data.require_records("attack", "select", "test")
    data.require_labels(release.private, "private", "attack")
    data.require_labels(utility, "utility", "attack")
    if target is not None:
        release = with_sigma(
            release,
            choose_sigma(release, data, target, confidence=confidence, device=where, seed=seed),
        )
    found = certify_release(release, data, confidence=confidence, device=where, seed=seed)
    steps: tuple[Step, ...] = ()
    if curve and not why_not(release):
        steps = trade(
            release,
            data,
            utility,
            confidence=confidence,
            device=where,
            seed=seed,
            progress=progress,
        )
    card = {
        key: release.card.get(key)
        for key in ("method", "title", "settings", "private", "data", "sha256")
    }
    about = {"name": data.name, "modality": data.modality, "fingerprint": data.fingerprint}
    result = Certification(card, about, found, round(time.monotonic() - started, 1), target, steps)
    if target is not None:
        release.card["certificate"] = {
            "met": result.met,
            **json.loads(replace(result, curve=(), release={"private": []}).to_json()),
        }
    return release, result


def trade(
    release: Release,
    data: Dataset,
    utility: Sequence[str],
    *,
    confidence: float = CONFIDENCE,
    device: torch.device,
    seed: int = 0,
    progress: bool = True,
) -> tuple[Step, ...]:
    """What other noise levels would give: bounds on *test*, and per task the better of two quick
    models, chosen on *select*."""
    rest = data.take(np.flatnonzero(data.part_of != PARTS.index("fit")))
    table = codes(release, rest, device)
    test = rest.part_of == PARTS.index("test")
    asked = questions(data, "test", release.private, joint=False)
    steps = []
    size = alphabet(release)
    sigmas = list(FLIPS) if size else [factor * sigma_of(release) for factor in FACTORS]
    with bar("noise levels", len(sigmas), progress) as tick:
        for done, sigma in enumerate(sigmas):
            bounds = {
                q.name: _certificate(
                    size, table[test], sigma, q, rest.people[test], confidence, seed
                ).bound
                for q in asked
            }
            steps.append(
                Step(
                    sigma,
                    bounds,
                    _served(
                        np.eye(size)[table] if size else table,
                        rest,
                        sigma,
                        size,
                        utility,
                        device,
                        seed,
                    ),
                )
            )
            tick(done + 1, f"noise {sigma:.3g}")
    return tuple(steps)


def _served(
    table: Array,
    data: Dataset,
    sigma: float,
    size: int,
    utility: Sequence[str],
    device: torch.device,
    seed: int,
) -> dict[str, Figure]:
    """Scores of quick models for tasks on codes with this noise."""
    if not utility:
        return {}
    # An audit certifies, so what runs adversaries cannot be imported while this file is.
    import pandas as pd

    from privet.adversaries.adversary import silent
    from privet.adversaries.linear import Logistic
    from privet.adversaries.released import released_parts
    from privet.adversaries.trees import Boosting
    from privet.auditing.attribute_attack import attempt

    names, shape = [f"code {i}" for i in range(table.shape[1])], table.shape[1:]
    coded = replace(
        data,
        modality="table",
        records=pd.DataFrame(table, columns=names),
        rows=np.arange(len(table)),
        person=data.people,
    )
    module, law = (
        (Symbols, Noise("uniform", (2,), sigma))
        if size
        else (Additive, Noise("gaussian", shape, sigma))
    )
    schema = TableSchema(tuple(Column(name) for name in names))
    noisy = Release(schema, ("code", {}), module(Identity(shape), sigma), law, {"private": []})
    torch.manual_seed(seed)
    parts = released_parts(noisy, coded, utility, device)
    found = {}
    for name in utility:
        attribute = data.attribute(name)
        tries = [
            attempt(model, parts, attribute, "utility", "released", seed, silent).finding
            for model in (Logistic(), Boosting())
        ]
        found[name] = max(tries, key=lambda finding: finding.select).score
    return found


def _certified(found: Certificate, note: str, release: Release) -> Certified:
    shared = {f.name: getattr(found, f.name) for f in fields(Certified) if hasattr(found, f.name)}
    size = alphabet(release)
    return Certified(**shared | ({"d": size, "flip": sigma_of(release)} if size else {}), note=note)


def _refused(question: Question, confidence: float, d: int, why: str) -> Certified:
    return Certified(
        question.name,
        question.values,
        None,
        None,
        (),
        None,
        math.nan,
        math.nan,
        confidence,
        (),
        d,
        None,
        1,
        "smoothed",
        why,
    )


def _elsewhere(release: Release, data: Dataset) -> str:
    """A warning where the release was learned on other data: people in both would not be new to the
    code."""
    card = release.card.get("data")
    learned = card if isinstance(card, dict) else {}
    if learned.get("fingerprint") in (None, data.fingerprint):
        return ""
    return f"The release was learned on other data ({learned.get('name') or 'unnamed'}): this holds only if none of the test people are in it."


def _place(device: str | torch.device) -> torch.device:
    return pick(device) if isinstance(device, str) else device


def _check_share(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise PrivetError(f"A {what} lies between 0 and 1, and {value:g} does not.")


def _is_close(value: object, to: float) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isclose(value, to, rel_tol=1e-6)
    )
