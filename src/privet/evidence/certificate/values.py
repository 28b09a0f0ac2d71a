"""What `privet certify` says, as values: the layout of certificate.json."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from privet.core.errors import PrivetError
from privet.core.files import write_text
from privet.core.json_values import as_json, read
from privet.evidence.figures import Certified, Figure
from privet.evidence.signature import Signature


@dataclass(frozen=True)
class Step:
    """What one noise level would give.

    Parameters:
        sigma: The deviation of the noise; of symbols, how often one is replaced by another drawn at
            random.
        bounds: Per private attribute the certified bound; None: not certified.
        utility: Per task the score of a quick model.
    """

    sigma: float
    bounds: dict[str, float | None]
    utility: dict[str, Figure]


@dataclass(frozen=True)
class Certification:
    """What `privet certify` says: the layout of certificate.json.

    Parameters:
        release: From the card: method, title, settings, private; sha256 of the graph that was
            certified; and `runs`, the SHA-256 of all that decides what is released: graph, encoding
            of records and law of the noise.
        data: name, modality, fingerprint; `test`, the SHA-256 of the encoded test records, their
            people and private labels; new_people, whether all people of the data were counted.
        certificates: The statements, all of them right at once with their confidence.
        target: The bound that noise was chosen for, on *select*.
        curve: Each point holds with its confidence by itself: for looking, not for choosing.
        checks: What is wrong with the data, in plain sentences: to be read before any figure.
        looks: How often *test* of this data had been looked at before, where that is known.
        options: What it takes to compute the statements again: given, releases, records, seed.
        signature: Who signed it, where somebody did.
        version: Of this layout. Version 1 had no options, no signature, and a confidence for each
            statement by itself.
    """

    release: dict[str, Any]
    data: dict[str, Any]
    certificates: tuple[Certified, ...]
    seconds: float
    target: float | None = None
    curve: tuple[Step, ...] = ()
    version: int = 2
    options: dict[str, Any] = field(default_factory=dict)
    signature: Signature | None = None
    checks: tuple[str, ...] = ()
    looks: int | None = None

    @property
    def met(self) -> bool:
        """Whether every private attribute by itself came out at the target or below, one release of
        a record being seen."""
        own = {c.attribute: c.bound for c in self.certificates if c.releases == 1 and c.is_plain}
        found = [own.get(str(name)) for name in self.release["private"]]
        return self.target is not None and all(
            bound is not None and bound <= self.target for bound in found
        )

    def to_json(self) -> str:
        return as_json(self)

    def save(self, path: str | Path) -> None:
        write_text(Path(path), self.to_json() + "\n")

    @staticmethod
    def load(path: str | Path) -> Certification:
        try:
            found = cast(
                Certification,
                read(
                    Certification, json.loads(Path(path).read_text(encoding="utf-8")), "certificate"
                ),
            )
        except OSError as error:
            raise PrivetError(f"Cannot read the certificate {path}: {error.strerror}.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise PrivetError(f"{path} is not a certificate that Privet wrote: {error}.") from None
        return found
