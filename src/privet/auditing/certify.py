"""Certify: what no adversary can beat when it sees a release, whatever its design; and the noise
that a wanted bound takes.

Two kinds of release can be certified from the codes c(x) of people who are new to c and to its
noise: z = c(x) + sigma N(0, I_d), and one symbol of a finite alphabet, which is replaced by a
random one with probability flip. evidence/certificate has the bounds and their proofs; here are the
release and the data. Noise acts after the code, so the least that meets a target is found without
learning anything again: on *select*, and then certified once, on *test*. What is called the noise
scale here is sigma or, of symbols, flip.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from privet.adversaries.adversary import silent
from privet.adversaries.linear import Logistic
from privet.adversaries.released import released_parts
from privet.adversaries.trees import Boosting
from privet.auditing.attribute_attack import AttackTarget, run_adversary
from privet.auditing.certificate_page import (
    Page,
    certify_page,
    coded_people,
    headline_confidence,
    mechanism,
)
from privet.auditing.certificate_targets import (
    GuessTarget,
    guess_targets,
    people_per_value,
    side_information,
)
from privet.auditing.certified_codes import (
    CertifiedCodes,
    about_data,
    about_release,
    all_new,
    certified_codes,
    graph_of,
)
from privet.auditing.sampled_people import refuse_learned_from
from privet.core.errors import PrivetError
from privet.core.progress import bar
from privet.data.dataset import PARTS, Array, Dataset
from privet.data.schema import Column, TableSchema
from privet.evidence.certificate import gaussian
from privet.evidence.certificate.coded_people import certify_people
from privet.evidence.certificate.sampling import balanced_slack, sampling_margin
from privet.evidence.certificate.smoothing import Draws
from privet.evidence.certificate.symbols import smallest_flip
from privet.evidence.certificate.values import Certification, Step
from privet.evidence.figures import Certified, Figure
from privet.nets.additive import Additive
from privet.nets.device import pick
from privet.nets.identity import Identity
from privet.nets.symbols import Symbols
from privet.release.graph_shape import read_shape
from privet.release.noise import Noise
from privet.release.release import Release

CONFIDENCE = 0.99
# Releases of the same record that an adversary may have collected.
RELEASES = (1, 4, 16)
# Records of a person that an adversary may have.
RECORDS = (2, 5)
# Noise levels of the curve: of Gaussian noise as multiples of the release's own, and of symbols.
FACTORS = tuple(2 ** (half / 2) for half in range(-4, 5))
FLIPS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9)


def why_not_certifiable(release: Release) -> str:
    """Why a release cannot be certified, as the end of a sentence; empty where it can."""
    law, shape = release.noise, release.shape
    if not release.is_random:
        return "the release adds no noise, and without noise some adversary may read everything"
    if law is None:
        return "its noise is drawn inside its program, where its law is not known"
    if type(release.module) is Symbols:
        uniform = law == Noise("uniform", (2,), law.scale)
        return "" if uniform else "its symbols are not replaced by uniform ones"
    if type(release.module) is not Additive:  # a subclass may do anything with the noise
        return "its noise is not simply added to its code"
    if law.law != "gaussian":
        return f"its noise law is {law.law}, and only gaussian noise can be certified"
    if None in shape:
        return "records are released at their own length, which no noise hides"
    if tuple(law.shape) != shape:
        return "its coordinates do not each have noise of their own"
    if (d := _dimensions(release)) > gaussian.DIMENSIONS:
        return (
            f"the code has {d:,} dimensions, and more than {gaussian.DIMENSIONS} cannot be "
            "certified from a sample"
        )
    return ""


def _dimensions(release: Release) -> int:
    """How many numbers are released; 0 where that differs between records."""
    return math.prod(size or 0 for size in release.shape)


def alphabet_size(release: Release) -> int:
    """How many symbols there are; 0 where what is released are numbers."""
    return int(release.shape[0] or 0) if type(release.module) is Symbols else 0


def noise_free_codes(
    release: Release, data: Dataset, device: torch.device, batch: int = 256
) -> Array:
    """What the network of a certifiable release adds noise to: (n, d), or symbols (n,), of each
    record. For choosing noise; what is certified are the codes of the graph."""
    body = release.to(device).module.get_submodule("body")
    inputs, parts = release.schema.inputs(data), []
    with torch.inference_mode():
        for start in range(0, len(inputs), batch):
            x = torch.from_numpy(np.ascontiguousarray(inputs[start : start + batch])).to(device)
            parts.append(body(x).flatten(1).float().cpu().numpy())
    codes = np.concatenate(parts)
    return codes.argmax(1) if alphabet_size(release) else codes


def noise_scale(release: Release) -> float:
    """The deviation that the exported graph multiplies unit noise with; of symbols, how often one
    is replaced."""
    return abs(float(_scale_buffer(release.module)))


def _scale_buffer(module: torch.nn.Module) -> torch.Tensor:
    return module.get_buffer("flip" if type(module) is Symbols else "scale")


def with_noise_scale(release: Release, scale: float) -> Release:
    """The same code with other noise on it."""
    assert release.noise is not None, "only a release with noise gets other noise"
    before, module = noise_scale(release), copy.deepcopy(release.module)
    _scale_buffer(module).fill_(scale)

    def changed(settings: dict[str, Any]) -> dict[str, Any]:
        # A setting of that name may be another thing, such as the noise in learning: only what is
        # the release's own changes.
        names = ("noise", "sigma", "scale", "flip")
        same = {key for key in names if _is_close(settings.get(key), before)}
        return settings | dict.fromkeys(same, scale)

    # These were said of the release with the noise it had before.
    stale = ("in_game", "chosen", "certificate", "sha256")
    card = {key: copy.deepcopy(value) for key, value in release.card.items() if key not in stale}
    if isinstance(card.get("settings"), dict):
        card["settings"] = changed(card["settings"])
    name, settings = release.network
    law = replace(release.noise, scale=scale)
    return Release(release.schema, (name, changed(settings)), module, law, card)


def certificates(
    release: Release,
    data: Dataset,
    *,
    private: Sequence[str] = (),
    given: Sequence[str] = (),
    confidence: float = CONFIDENCE,
    releases: Sequence[int] = RELEASES,
    records: Sequence[int] = RECORDS,
    device: str | torch.device = "auto",
    seed: int = 0,
) -> tuple[Certified, ...]:
    """Every statement about the *test* people: of each private attribute the bound for one record
    first, then the others; where there are several, also for all of them guessed at once.

    Parameters:
        release: What is certified.
        data: Its *test* people must be new to the release.
        private: What is guessed; what the release hides where it is not given.
        given: What an adversary may know beside the release: attributes, each by itself; several at
            once with + between them.
        confidence: How sure all statements are at once.
        releases: How many releases of the same record an adversary sees; a certificate for each.
        records: How many records of a person an adversary sees; a certificate for each.
        device: Where a network would run. The graph, which is what is certified, runs on the
            processor.
        seed: Of the Monte Carlo integral.
    """
    _check_share("confidence", confidence)
    names = list(private) or release.private
    targets, test = guess_targets(data, "test", names), data.part("test")
    sides = side_information(data, "test", given)
    coded = _codes(release, test)
    if coded.reason:
        return tuple(_refused(t, confidence, _dimensions(release), coded.reason) for t in targets)
    assert coded.shape is not None, "what is not known was refused"
    notes = (
        _other_data(release, data),
        _alphabet_note(coded.shape.symbols, coded.shape.scale),
        "" if data.sampled is None else data.sampled.sentence,
    )
    noted = [t._replace(note=" ".join(note for note in (t.note, *notes) if note)) for t in targets]
    page = Page(coded, test.people, noted, len(names), sides, releases, records, seed)
    return certify_page(page, confidence)


def _codes(release: Release, test: Dataset) -> CertifiedCodes:
    """The codes of these records by the release's graph, or why there are none."""
    why = why_not_certifiable(release)
    if why or release.noise is None:
        return CertifiedCodes(np.empty((0, 0)), None, "", why)
    inputs = release.schema.inputs(test)
    return certified_codes(graph_of(release), release.noise.shape, inputs)


def choose_noise_scale(
    release: Release,
    data: Dataset,
    target: float,
    *,
    confidence: float = CONFIDENCE,
    device: str | torch.device = "auto",
    seed: int = 0,
) -> float:
    """The smallest noise that should bring every private attribute to the bound `target` on *test*,
    chosen on *select*."""
    if why := why_not_certifiable(release):
        raise PrivetError(f"No noise can be chosen for this release: {why}.")
    select, test = data.part("select"), data.part("test")
    codes, size, scales = (
        noise_free_codes(release, select, pick(device)),
        alphabet_size(release),
        [],
    )
    on_test = guess_targets(data, "test", release.private, joint=False)
    confidence = headline_confidence(confidence, len(on_test))
    reach = read_shape(graph_of(release)).reach
    width = reach[1] - reach[0] if reach else None
    on_select = guess_targets(data, "select", release.private, joint=False)
    for guessed, later in zip(on_select, on_test, strict=True):
        blind = 1 / max(len(guessed.values), 1)
        if not blind < target < 1:
            raise PrivetError(
                f"A target for '{guessed.name}' lies between guessing, {blind:.2g}, and 1, and "
                f"{target:g} does not."
            )
        present, people = guessed.labels >= 0, people_per_value(later, test.people)
        among = (guessed.labels[present], select.people[present], guessed.values, target)
        shared: dict[str, Any] = {"people": people, "confidence": confidence}
        if size:
            scale = smallest_flip(codes[present], size, *among, **shared)
        else:
            scale = gaussian.smallest_sigma(
                codes[present], *among, draws=Draws(20_000, seed), width=width, **shared
            )
        if scale is None:
            here = people_per_value(guessed, select.people)
            raise PrivetError(_no_noise(guessed, target, people, here, confidence))
        scales.append(scale)
    return max(scales)


def _no_noise(
    guessed: GuessTarget, target: float, people: list[int], here: list[int], confidence: float
) -> str:
    """Why no noise certifies a target, and which target could be met."""
    values, (test, select) = len(guessed.values), ([max(n, 1) for n in p] for p in (people, here))
    least = 1 / values + balanced_slack(test, 1 - confidence) + sampling_margin(test, select)
    if least >= gaussian.VACUOUS:
        few = gaussian.too_few_for_any(sum(people), values, 1 - confidence)
        return f"No noise certifies '{guessed.name}': {few}."
    return (
        f"With {sum(people):,} test people no noise certifies '{guessed.name}' at {target:g}: ask "
        f"for {math.ceil(100 * least + 0.3) / 100:g} or more, add people, or lower --confidence."
    )


def certify(
    release: Release,
    data: Dataset,
    utility: Sequence[str] = (),
    *,
    given: Sequence[str] = (),
    records: Sequence[int] = RECORDS,
    confidence: float = CONFIDENCE,
    target: float | None = None,
    curve: bool = False,
    device: str = "auto",
    seed: int = 0,
    progress: bool = True,
) -> tuple[Release, Certification]:
    """Everything `privet certify` says, and the release it is said of: with a `target`, one with
    the noise chosen for it.

    *Test* is looked at for one noise scale only, whether it meets the target or not: choosing again
    would make the confidence a lie.

    Parameters:
        release: What is certified.
        data: Its *select* and *test* people must be new to the release.
        utility: Tasks, for the curve.
        given: What an adversary may know beside the release, as for `certificates`; the tasks that
            are classes where it is left out.
        records: How many records of a person an adversary sees; a certificate for each.
        confidence: How sure all statements are at once; each point of the curve is by itself.
        target: A bound to choose the noise for, on *select*.
        curve: Whether to compute bounds and task scores at other noise scales too.
        device: cpu, cuda or auto.
        seed: Of everything that is random.
        progress: Whether to show a bar.

    >>> import privet
    >>> data = privet.load("toy:gaussian")
    >>> release = privet.Noisy(sigma=3.0).fit(data, private=["u"])
    >>> _, found = certify(release, data, progress=False)
    >>> [(one.releases, round(one.bound, 2)) for one in found.certificates]
    [(1, 0.86), (4, 0.87), (16, 0.87)]
    """
    started, where = time.monotonic(), pick(device)
    _check_certifiable(release, data, utility, confidence, target)
    given = list(given) or [name for name in utility if data.attribute(name).is_class]
    options: dict[str, Any] = {
        "given": given,
        "releases": [*RELEASES],
        "records": [*records],
        "seed": seed,
    }
    shared: dict[str, Any] = {"confidence": confidence, "device": where, "seed": seed}
    if target is not None:
        scale = choose_noise_scale(release, data, target, **shared)
        release = with_noise_scale(release, scale)
    if not why_not_certifiable(release) and release.graph is None:
        release = replace(release, graph=graph_of(release))
    found = certificates(release, data, confidence=confidence, **options)
    steps = tuple[Step, ...]()
    if curve and not why_not_certifiable(release):
        steps = noise_curve(release, data, utility, progress=progress, **shared)
    seconds = round(time.monotonic() - started, 1)
    about = about_release(release), about_data(release, data)
    result = Certification(*about, found, seconds, target, steps, options=options)
    if target is not None:
        without = replace(result, curve=(), release={"private": []})
        release.card["certificate"] = {"met": result.met, **json.loads(without.to_json())}
    return release, result


def _check_certifiable(
    release: Release,
    data: Dataset,
    utility: Sequence[str],
    confidence: float,
    target: float | None,
) -> None:
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
    if all_new(data):
        _check_new(release, data, utility, target)
        return
    refuse_learned_from(release.card, data)
    data.require_records("attack", "select", "test")
    data.require_labels(release.private, "private", "attack")
    data.require_labels(utility, "utility", "attack")


def _check_new(
    release: Release, data: Dataset, utility: Sequence[str], target: float | None
) -> None:
    if target is not None or utility:
        raise PrivetError(
            "Where all people are new, noise cannot be chosen and tasks cannot be tried, which "
            "needs other people than those who are certified: leave out --target and --utility."
        )
    refuse_known(release, data)
    data.require_records("test")
    data.require_labels(release.private, "private", "test")


def refuse_known(release: Release, data: Dataset) -> None:
    """PrivetError where people who shall be new are those that the release was learned from."""
    card = release.card.get("data")
    learned = card if isinstance(card, dict) else {}
    same_files = bool(data.content) and learned.get("content") == data.content
    if same_files or learned.get("fingerprint") == data.fingerprint:
        raise PrivetError(
            "These are the people that the release was learned from: leave out --new-people, and "
            "the test part is certified."
        )


def noise_curve(
    release: Release,
    data: Dataset,
    utility: Sequence[str],
    *,
    confidence: float = CONFIDENCE,
    device: torch.device,
    seed: int = 0,
    progress: bool = True,
) -> tuple[Step, ...]:
    """What other noise scales would give: bounds on *test*, and per task the better of two quick
    models, chosen on *select*."""
    rest = data.take(np.flatnonzero(data.part_of != PARTS.index("fit")))
    codes, size, steps = noise_free_codes(release, rest, device), alphabet_size(release), []
    test = rest.part_of == PARTS.index("test")
    targets = guess_targets(data, "test", release.private, joint=False)
    scales = FLIPS if size else [factor * noise_scale(release) for factor in FACTORS]
    table = np.eye(size)[codes] if size else codes
    shape = read_shape(graph_of(release))
    people = [coded_people(t, codes[test], rest.people[test]) for t in targets]
    with bar("noise levels", len(scales), progress) as tick:
        for done, scale in enumerate(scales):
            noise = mechanism(replace(shape, scale=scale), 1, Draws(seed=seed))
            bounds = {
                t.name: certify_people(coded, noise, delta=1 - confidence).bound
                for t, coded in zip(targets, people, strict=True)
            }
            noisy = _noisy_table(table, scale, bool(size))
            scores = _task_scores(noisy, table, rest, utility, device, seed)
            steps.append(Step(scale, bounds, scores))
            tick(done + 1, f"noise {scale:.3g}")
    return tuple(steps)


def _noisy_table(table: Array, scale: float, symbols: bool) -> Release:
    """A release of a table of codes with this noise."""
    shape = table.shape[1:]
    body, law = Identity(shape), Noise("gaussian", shape, scale)
    module: torch.nn.Module = Additive(body, scale)
    if symbols:
        module, law = Symbols(body, scale), Noise("uniform", (2,), scale)
    schema = TableSchema(tuple(map(Column, _names(table))))
    return Release(schema, ("code", {}), module, law, {"private": []})


def _names(table: Array) -> list[str]:
    return [f"code {i}" for i in range(table.shape[1])]


def _task_scores(
    noisy: Release,
    table: Array,
    data: Dataset,
    utility: Sequence[str],
    device: torch.device,
    seed: int,
) -> dict[str, Figure]:
    """Scores of quick models for tasks on codes with noise."""
    if not utility:
        return {}
    coded = replace(
        data,
        modality="table",
        records=pd.DataFrame(table, columns=_names(table)),
        rows=np.arange(len(table)),
        person=data.people,
    )
    torch.manual_seed(seed)
    parts, scores = released_parts(noisy, coded, utility, device), {}
    for name in utility:
        target = AttackTarget(parts, data.attribute(name), "utility", "released")
        tries = [run_adversary(a, target, seed, silent).finding for a in (Logistic(), Boosting())]
        scores[name] = max(tries, key=lambda finding: finding.select).score
    return scores


def _refused(target: GuessTarget, confidence: float, d: int, why: str) -> Certified:
    nothing = (None, None, (), None, math.nan, math.nan, confidence, (), d, None, 1, "smoothed")
    return Certified(target.name, target.values, *nothing, why)


def _alphabet_note(size: int, flip: float) -> str:
    """What is released, where it is a symbol."""
    if not size:
        return ""
    often = "it is never replaced at random"
    if flip:
        often = f"in {100 * flip:.3g} % of releases it is replaced by one drawn at random"
    return f"What is released is one symbol of an alphabet of {size} symbols; {often}."


def _other_data(release: Release, data: Dataset) -> str:
    """A warning where the release was learned on other data: people in both would not be new to the
    code."""
    card = release.card.get("data")
    learned = card if isinstance(card, dict) else {}
    if learned.get("fingerprint") in (None, data.fingerprint):
        return ""
    return (
        f"The release was learned on other data ({learned.get('name') or 'unnamed'}): this holds "
        "only if none of the test people are in it."
    )


def _check_share(what: str, value: float) -> None:
    if not 0 < value < 1:
        raise PrivetError(f"A {what} lies between 0 and 1, and {value:g} does not.")


def _is_close(value: object, to: float) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return math.isclose(value, to, rel_tol=1e-6)
