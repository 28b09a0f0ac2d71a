"""`privet audit`: attack a release, one's own or somebody else's, and write what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from privet.auditing.audit import audit as attack
from privet.auditing.batteries import Battery, find_battery
from privet.auditing.sampled_people import refuse_learned_from
from privet.commands.logs import audit_figures, open_log
from privet.commands.reading import PLAIN, read
from privet.core.errors import PrivetError, refuse_if
from privet.core.files import results_folder, write_text
from privet.core.progress import console
from privet.core.run_log import logged
from privet.core.settings import names
from privet.core.stores import Store, is_address
from privet.data.dataset import Array, Dataset, Sampled
from privet.data.labels_beside import add_labels
from privet.data.part_files import parts_as_file, sample_note
from privet.data.part_manifest import is_parts_folder
from privet.data.people_sample import Joined, TableFile, joined
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
        labels: A parquet file with the private attribute and the tasks of released records, which
            do not hold them.
        by: The column of both that says which record is which.
        sampled: Whose records a file of released records holds, where not everybody's.
        words: Words to ask for one by one in the texts that vectors stand for.
    """

    schema: str | Path | Layout | None = None
    card: Path | None = None
    text: str | None = None
    labels: str | Path | None = None
    by: str | None = None
    sampled: Sampled | None = None
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
    log: str | Path | None = None,
) -> Audit:
    """Attack `release` with people it has not seen, and report the strongest adversary.

    release: a Release, the folder of one, an ONNX file, records that are already released (a
        parquet file, or a folder that `privet.apply(parts=...)` wrote, here or in an object store),
        or a Python function from encoded records to numbers.
    data: the records to attack with, as `privet.load` takes them, or a Dataset; not for released
        records, which have their own labels.
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
    log: a file FILE.jsonl, or mlflow:URI: the figures with their intervals, and the files.

    >>> import privet
    >>> release = privet.LEACE().fit(privet.load("toy:gaussian"), private=["u"])
    >>> from privet.adversaries.linear import Logistic
    >>> battery = Battery((Logistic(),), people=False)
    >>> found = audit(release, "toy:gaussian", battery=battery)
    >>> found.private[0].attribute
    'u'
    """
    files = files or FileOptions()
    if isinstance(release, str | Path) and (table := _parts(release, files, progress)):
        _refuse_data(data, release)
        with table as (path, sampled):
            if sampled is not None:
                console.print(sample_note(sampled), **PLAIN)
            if files.labels is not None and files.by is not None:
                wanted = [*names(private), *names(utility)]
                console.print(add_labels(path, files.labels, files.by, wanted), **PLAIN)
            return audit(
                path,
                None,
                utility,
                battery,
                private=private,
                out=out,
                files=FileOptions(
                    _of_one_file(files), text=files.text, sampled=sampled, words=files.words
                ),
                raw_from=raw_from,
                seed=seed,
                device=device,
                progress=progress,
                rebuild=rebuild,
                keep=keep,
                goal=goal,
                log=log,
            )
    chosen, hidden, tasks = find_battery(battery), names(private), names(utility)
    if isinstance(raw_from, str | Path):
        raw_from = Audit.load(raw_from)
    bare = isinstance(release, str | Path) and Path(release).suffix == ".parquet"
    place = release if bare else data
    release, data = _release_and_data(release, data, hidden, tasks, files)
    goals = goals_for(_hidden(release, data, hidden), goal)
    texts = None
    # Of a sample of --data, nobody knows which texts are whose.
    whole = bare or data.sampled is None
    if whole and data.modality != "text" and isinstance(place, str | Path):
        texts = texts_of_vectors(place, data, files.text)
    keep = names(keep)
    leaves = what_leaves(Path(str(place))) if bare else None
    if leaves is not None:
        keep += [name for name in leaves.columns if name in data.attributes and name not in keep]
    notes = open_log(log)
    said = {
        "release": str((getattr(release, "card", {}).get("sha256") or {}).get("graph", "")),
        "private": hidden,
        "utility": tasks,
        "battery": chosen.name,
        "keep": keep,
        "data": data.name,
        "fingerprint": data.fingerprint,
        "seed": seed,
        "out": None if out is None else str(out),
    }
    room = results_folder(Path(out)) if out is not None else nullcontext()
    with logged(notes, "audit", said), room:
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
        if notes is not None:
            written = ("audit.json", "report.html", "summary.md") if out is not None else ()
            notes.end(audit_figures(result), [Path(str(out)) / name for name in written])
    return result


def _parts(
    release: str | Path, files: FileOptions, progress: bool
) -> AbstractContextManager[Joined] | None:
    """Released records that are read a little at a time into one file: a folder of parts, or a file
    of which some people are wanted. None of anything else."""
    layout = read_layout(files.schema)
    refuse_if(
        (files.labels is None) != (files.by is None),
        "--labels names a table and --by the column that it is joined by: give both.",
    )
    if is_address(release):
        return parts_as_file(Store(release), layout, progress)
    path = Path(release)
    if path.is_dir() and not (path / "card.json").exists() and is_parts_folder(Store(path)):
        return parts_as_file(Store(path), layout, progress)
    if path.suffix == ".parquet" and (layout.people is not None or files.labels is not None):
        return joined([TableFile(path.name, path)], path.stem, layout, progress)
    refuse_if(files.labels is not None, "--labels go with released records, not with a release.")
    return None


def _of_one_file(files: FileOptions) -> Layout:
    return replace(read_layout(files.schema), people=None)


def _refuse_data(data: object, release: str | Path) -> None:
    refuse_if(
        data is not None,
        f"{str(release).rstrip('/').rpartition('/')[2]} holds released records with their labels: "
        "leave out --data.",
    )


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
        _refuse_data(data, path)
        layout = read_layout(files.schema)
        made, found = from_vectors(path, private, utility, layout, files.text)
        return made, replace(found, sampled=files.sampled)
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
        refuse_learned_from(release.card, data)
    return release, data
