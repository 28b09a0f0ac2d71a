"""`privet audit`: attack a release, one's own or somebody else's, and write what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from privet.auditing.audit import audit as attack
from privet.auditing.batteries import Battery, find_battery
from privet.commands.reading import read
from privet.core.errors import PrivetError
from privet.core.files import writable_folder, write_text
from privet.core.settings import names
from privet.data.dataset import Array, Dataset
from privet.data.schema_file import Layout, read_layout
from privet.evidence.verdict import goals_for
from privet.release.drawn_records import draw_records
from privet.release.foreign import from_onnx, from_vectors, what_leaves
from privet.release.foreign_texts import texts_of_vectors
from privet.release.release import Release
from privet.reporting.markdown import summary
from privet.reporting.notebook import Audit
from privet.reporting.page import report

# Said of a file of released records that does not say itself what leaves.
TAKEN_AS_LABELS = (
    "Columns of the file were taken as labels, not as part of what is released: {}. Name those "
    "that leave with --keep."
)

AnyRelease = Release | Callable[[Array], Array]


class FileOptions(NamedTuple):
    """How `privet.audit` reads files, where their names do not say it.

    Parameters:
        schema: A TOML file that says what the columns are.
        card: A JSON file that says how an ONNX file takes its records.
        text: The column of texts that are released as they are, or that vectors stand for; of the
            latter it is asked too which words were in them.
        words: Words to ask for one by one in the texts that vectors stand for.
    """

    schema: str | Path | Layout | None = None
    card: Path | None = None
    text: str | None = None
    words: tuple[str, ...] = ()


def audit(  # noqa: PLR0913 - a verb has as many parameters as options
    release: str | Path | AnyRelease,
    data: str | Path | Dataset | None = None,
    utility: str | Iterable[str] = (),
    battery: str | Battery = "quick",
    *,
    private: str | Iterable[str] = (),
    out: str | Path | None = None,
    files: FileOptions | None = None,
    raw_from: str | Path | Audit | None = None,
    seed: int = 0,
    device: str = "auto",
    progress: bool = True,
    rebuild: bool = True,
    keep: str | Iterable[str] = (),
    goal: float | Mapping[str, float] | None = None,
) -> Audit:
    """Attack `release` with people it has not seen, and report the strongest adversary.

    release: a Release, the folder of one, an ONNX file, a parquet file of records that are already
        released, or a Python function from encoded records to numbers.
    data: the records to attack with, as `privet.load` takes them, or a Dataset; not for a parquet
        file, which holds its own labels.
    utility: tasks to try on the released records.
    battery: quick, lean, standard, strong, or a Battery of your own.
    private: what must not be readable, where the release's own card does not say.
    out: a folder for audit.json, report.html and summary.md.
    files: how to read files, where their names do not say it.
    raw_from: an earlier audit of the same data, to take the figures on raw records from.
    seed: on one machine's CPU the same seed gives the same figures.
    device: cpu, cuda or auto.
    progress: whether to show a bar.
    rebuild: whether decoders try to rebuild records.
    keep: columns that leave beside the released records, as `privet.apply(keep=...)` writes them:
        they are attacked alone and together with the released records. Of a file that
        `privet.apply` wrote, the columns that it says it keeps are among them.
    goal: what attackers should not exceed, for the verdict: a balanced accuracy for all private
        attributes, or one by name (of a number the share of variance explained).

    >>> import privet
    >>> release = privet.LEACE().fit(privet.load("toy:gaussian"), private=["u"])
    >>> from privet.adversaries.linear import Logistic
    >>> battery = Battery((Logistic(),), people=False)
    >>> found = audit(release, "toy:gaussian", battery=battery)
    >>> found.private[0].attribute
    'u'
    """
    chosen, hidden, tasks = find_battery(battery), names(private), names(utility)
    files = files or FileOptions()
    if isinstance(raw_from, str | Path):
        raw_from = Audit.load(raw_from)
    bare = isinstance(release, str | Path) and Path(release).suffix == ".parquet"
    place = release if bare else data
    release, data = _release_and_data(release, data, hidden, tasks, files)
    goals = goals_for(_hidden(release, data, hidden), goal)
    texts = None
    if data.modality != "text" and isinstance(place, str | Path):
        texts = texts_of_vectors(place, data, files.text)
    keep = names(keep)
    leaves = what_leaves(Path(str(place))) if bare else None
    if leaves is not None:
        keep += [name for name in leaves.columns if name in data.attributes and name not in keep]
    undo = writable_folder(Path(out)) if out is not None else lambda: None
    try:
        result = attack(
            release,
            data,
            tasks,
            chosen,
            private=hidden,
            seed=seed,
            device=device,
            progress=progress,
            raw_from=raw_from,
            raw=not bare,
            rebuild=rebuild and not bare,
            texts=texts,
            keep=keep,
            words=files.words,
        )
        if leaves is not None:
            kept = tuple(name for name in result.leaves.kept if name not in leaves.asked)
            result = replace(result, leaves=replace(leaves, kept=kept))
        elif bare and (labels := _only_labels(data, {*hidden, *tasks, *keep})):
            sentence = TAKEN_AS_LABELS.format(", ".join(labels))
            result = replace(result, limits=(*result.limits, sentence))
        result = replace(result, goals=goals)
        if out is not None:
            folder = Path(out)
            result.save(folder / "audit.json")
            drawn = draw_records(release, data) if isinstance(release, Release) else None
            report(result, folder / "report.html", pictures=drawn.files() if drawn else None)
            write_text(folder / "summary.md", summary(result))
    except BaseException:
        undo()
        raise
    return result


def _hidden(release: AnyRelease, data: Dataset, private: list[str]) -> dict[str, int]:
    """How many values each private attribute has; 0 for a number."""
    own = release.private if isinstance(release, Release) else ()
    known = [data.attributes[name] for name in private or own if name in data.attributes]
    return {one.name: len(one.values) for one in known}


def _only_labels(data: Dataset, named: set[str]) -> list[str]:
    """Columns of a file of released records of which nobody said that they leave, too."""
    kinds = {name: attribute.kind for name, attribute in data.attributes.items()}
    return [name for name, kind in kinds.items() if name not in named and kind != "identity"]


def _release_and_data(
    release: str | Path | AnyRelease,
    data: str | Path | Dataset | None,
    private: list[str],
    utility: list[str],
    files: FileOptions,
) -> tuple[AnyRelease, Dataset]:
    path = Path(release) if isinstance(release, str | Path) else Path()
    if path.suffix == ".parquet":
        if data is not None:
            raise PrivetError(
                f"{path.name} holds released records with their labels: leave out --data."
            )
        return from_vectors(path, private, utility, read_layout(files.schema), files.text)
    if data is None:
        raise PrivetError("Say which data to attack the release with: --data SPEC.")
    if not isinstance(data, Dataset):
        data = read(data, files.schema)
    if path.suffix == ".onnx":
        release = from_onnx(path, data, private, files.card, utility)
    elif files.card is not None:
        raise PrivetError(
            "--card is for an ONNX file from elsewhere; a release folder has its own card."
        )
    elif isinstance(release, str | Path):
        release = Release.load(path)
        if absent := set(private) - set(release.private):
            raise PrivetError(
                f"The release does not say that it hides '{min(absent)}': it hides "
                f"{', '.join(release.private) or 'nothing'}."
            )
    if isinstance(release, Release):
        release.schema.check(data)
    return release, data
