"""Who is certified: codes of test people before noise, and the attribute that is guessed; and the
plain certificate of them.

Nothing is left out. People may have records of several values: gaussian.py says what that costs,
and it is paid, since leaving out the records that contradict the others would leave out most
people of a rare value. Weighing says what the bound is an average over: people, each the same,
however many records; or records, each the same (sampling.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from privet.evidence import Array
from privet.evidence.certificate.gaussian import Certificate, conclude, too_few
from privet.evidence.certificate.mechanisms import Mechanism
from privet.evidence.certificate.sampling import Sample, Weighing, checked
from privet.evidence.certificate.smoothing import Value

# Share of delta that the bound on balanced accuracy gets; the rest is for plain accuracy.
BALANCED = 0.8


@dataclass(frozen=True)
class CodedPeople:
    """Codes of people who are new to the release, and what is guessed about them.

    Parameters:
        codes: (n, d) before noise, or symbols (n,); one row per record.
        labels: (n,), each an index into `values`.
        person: (n,), whose record it is.
        attribute: Name of the attribute that is guessed.
        values: What it can be.
        weighing: Whether every person of a value weighs the same, or every record.
    """

    codes: Array
    labels: Array
    person: Array
    attribute: str
    values: tuple[str, ...]
    weighing: Weighing = "people"

    def __post_init__(self) -> None:
        codes, labels, person = checked(self.codes, self.labels, self.person, self.values)
        for name, column in (("codes", codes), ("labels", labels), ("person", person)):
            object.__setattr__(self, name, column)
        object.__setattr__(self, "values", tuple(self.values))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Array) -> CodedPeople:
        """Some of the records."""
        return replace(
            self, codes=self.codes[rows], labels=self.labels[rows], person=self.person[rows]
        )

    def sample(self, codes: Array | None = None) -> Sample:
        """What the codes weigh; other codes of the same records where they are given."""
        codes = self.codes if codes is None else codes
        return Sample.of(codes, self.labels, self.person, len(self.values), self.weighing)

    def blank(self, mechanism: Mechanism, delta: float) -> Certificate:
        """A certificate that says nothing yet."""
        return Certificate.blank(
            self.attribute,
            self.values,
            1 - delta,
            mechanism.releases,
            self.codes.shape[1],
            mechanism.sigma,
            mechanism.method,
        )


def certify_people(
    people: CodedPeople,
    mechanism: Mechanism,
    *,
    delta: float = 0.01,
    prior: Sequence[float] | None = None,
) -> Certificate:
    """What no adversary beats that sees one release of a record and knows nothing else.

    Unlike in `gaussian.certify` and `symbols.certify_alphabet`, the bounds on balanced and on plain
    accuracy hold both at once with probability 1 - delta, and either weighing will do.

    >>> import numpy as np
    >>> from privet.evidence.certificate.mechanisms import GaussianNoise
    >>> sex = np.arange(4000) % 2
    >>> codes = np.random.default_rng(0).normal(size=(4000, 1)) + 0.2 * sex[:, None]
    >>> people = CodedPeople(codes, sex, np.arange(4000), "sex", ("f", "m"))
    >>> round(certify_people(people, GaussianNoise(1.0)).bound, 3)  # the exact value is 0.528
    0.553
    """
    codes, blank = mechanism.check(people.codes), people.blank(mechanism, delta)
    if len(people.values) < 2:
        return replace(blank, reason=too_few(people.values))
    sample = people.sample(codes)
    blank = replace(blank, people=sample.people, prior=sample.prior(prior))
    if reason := too_few(sample.people) or mechanism.refusal(codes):
        return replace(blank, reason=reason)
    tables = [sample.within / len(people.values), sample.at(prior)]
    (even, real), left = mechanism.integrals(sample.codes, tables, delta)
    spread = mechanism.spread(codes.shape[1])
    known = prior is not None
    return both_accuracies(blank, sample, (even, real), left, known_prior=known, spread=spread)


def both_accuracies(
    blank: Certificate,
    sample: Sample,
    values: tuple[Value, Value],
    delta: float,
    *,
    known_prior: bool = False,
    spread: float = 1.0,
) -> Certificate:
    """The certificate from V(P^) at equally likely values and at the prior, both holding at
    once."""
    return conclude(
        blank,
        sample,
        *values,
        BALANCED * delta,
        known_prior=known_prior,
        plain_delta=(1 - BALANCED) * delta,
        spread=spread,
    )
