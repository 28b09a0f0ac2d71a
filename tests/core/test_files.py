"""A reader never sees half a file, and what fails leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from privet.core.errors import PrivetError
from privet.core.files import replacing, writable_folder, write_bytes, write_text


def test_the_file_is_replaced_only_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old" and temporary.parent == tmp_path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, "old"])
def test_an_exception_leaves_what_was_there(
    tmp_path: Path, error: type[BaseException], old: str | None
) -> None:
    path = tmp_path / "card.json"
    if old is not None:
        path.write_text(old)
    with pytest.raises(error), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == (
        {} if old is None else {"card.json": old}
    )


def test_a_killed_writer_leaves_the_old_file_whole(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text("old")
    program = (
        "import os, sys; from pathlib import Path; from privet.core.files import replacing\n"
        "with replacing(Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", program, str(path)], check=False).returncode == -9
    assert path.read_text() == "old"


def test_a_reader_sees_one_whole_version_or_the_other(tmp_path: Path) -> None:
    path = tmp_path / "weights"
    versions = [bytes([letter]) * 200_000 for letter in b"ab"]
    write_bytes(path, versions[0])
    writer = threading.Thread(
        target=lambda: [write_bytes(path, versions[i % 2]) for i in range(30)]
    )
    writer.start()
    while writer.is_alive():
        assert path.read_bytes() in versions
    writer.join()
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_is_read_and_readable_by_others(tmp_path: Path) -> None:
    write_text(tmp_path / "text", "Liguster, 女貞\n")
    write_bytes(tmp_path / "bytes", b"\x00\xff")
    assert (tmp_path / "text").read_text(encoding="utf-8") == "Liguster, 女貞\n"
    assert (tmp_path / "bytes").read_bytes() == b"\x00\xff"
    assert (tmp_path / "text").stat().st_mode & 0o777 == 0o644


def test_undoing_removes_the_folders_that_were_made_and_no_others(tmp_path: Path) -> None:
    undo = writable_folder(tmp_path / "a" / "b" / "c")
    assert (tmp_path / "a" / "b" / "c").is_dir() and not list(
        (tmp_path / "a" / "b" / "c").iterdir()
    )
    undo()
    assert tmp_path.is_dir() and not list(tmp_path.iterdir())
    undo()


def test_undoing_keeps_what_was_there_or_has_been_filled(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    writable_folder(tmp_path / "mine")()
    assert (tmp_path / "mine").is_dir()
    undo = writable_folder(tmp_path / "a" / "b")
    (tmp_path / "a" / "result").write_text("kept")
    undo()
    assert (tmp_path / "a" / "result").read_text() == "kept" and not (tmp_path / "a" / "b").exists()


@pytest.mark.parametrize("below", [".", "sub", "sub/deeper"])
def test_a_path_at_or_below_a_regular_file_is_refused(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(PrivetError, match=r"Cannot write to .*--out"):
        writable_folder(tmp_path / "file" / below)
    assert (tmp_path / "file").read_text() == "mine" and [p.name for p in tmp_path.iterdir()] == [
        "file"
    ]


@pytest.mark.parametrize("mode", [0o500, 0o000], ids=["not written to", "not even looked into"])
def test_a_folder_without_permission_is_refused(tmp_path: Path, mode: int) -> None:
    """Root may write anywhere, so root takes the test as nobody."""
    (tmp_path / "locked").mkdir(mode=mode)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(PrivetError, match="Permission denied"):
            writable_folder(tmp_path / "locked" / "out")
    finally:
        os.seteuid(me)


def test_a_name_too_long_leaves_no_half_made_parents(tmp_path: Path) -> None:
    with pytest.raises(PrivetError, match="Cannot write"):
        writable_folder(tmp_path / "made" / ("n" * 300))
    assert not list(tmp_path.iterdir())
