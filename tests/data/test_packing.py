"""Pictures are decoded once, in order, in little memory, and a half-written cache is never
believed."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps

from privet.core.errors import PrivetError
from privet.data import cache, packing
from privet.data.images import read_picture, read_pixels
from privet.data.packing import Picture, pack
from privet.data.schema import Inputs
from privet.data.sources import load
from privet.train.feed import Feed

Draw = Callable[..., bytes]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PRIVET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the pictures that were decoded."""
    names: list[str] = []
    plain = packing.read_pixels

    def read(source: str | bytes, size: tuple[int, int] | None, name: str) -> np.ndarray:
        names.append(name)
        return plain(source, size, name)

    monkeypatch.setattr(packing, "read_pixels", read)
    return names


def test_pictures_come_out_in_order_and_as_pillow_reads_them(
    pictures: Path, own_cache: Path
) -> None:
    data = load(pictures)
    for i in range(24):
        with Image.open(pictures / "img" / f"{i}.png") as picture:
            assert np.array_equal(data.records[i].transpose(1, 2, 0), np.asarray(picture))
    assert (
        isinstance(data.records, np.memmap)
        and data.attributes["person"].kind == "identity"
        and set(data.attributes) == {"id", "person", "smiling"}
    )


def test_many_chunks_keep_their_order(draw: Draw, own_cache: Path) -> None:
    encoded = [draw(i, 4, 4) for i in range(40)]
    packed = pack(
        lambda: (Picture(str(i), encoded[i % 40]) for i in range(1000)),
        1000,
        "many",
        progress=False,
    )
    wanted = np.stack([read_picture(picture) for picture in encoded])
    assert all(np.array_equal(packed[i], wanted[i % 40]) for i in range(1000))


def test_a_second_reading_decodes_nothing_and_a_changed_picture_everything(
    pictures: Path, own_cache: Path, decoded: list[str], draw: Draw
) -> None:
    first = load(pictures)
    assert len(decoded) >= 24
    decoded.clear()
    again = load(pictures)
    assert (
        not decoded
        and again.fingerprint == first.fingerprint
        and np.array_equal(again.records, first.records)
    )
    (pictures / "img" / "7.png").write_bytes(draw(33))
    changed = load(pictures)
    assert decoded and changed.fingerprint != first.fingerprint
    assert [i for i in range(24) if not np.array_equal(changed.records[i], first.records[i])] == [7]


def test_touched_files_are_looked_at_again_and_not_decoded(
    pictures: Path, own_cache: Path, decoded: list[str]
) -> None:
    first = load(pictures)
    decoded.clear()
    for path in pictures.glob("img/*.png"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert load(pictures).fingerprint == first.fingerprint and not decoded


def test_settled_files_are_not_even_read_again(
    pictures: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (*pictures.glob("img/*.png"), pictures / "labels.csv"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    first = load(pictures)

    def refuse(*_: object) -> str:
        raise AssertionError("read again")

    monkeypatch.setattr(cache, "_hash", refuse)
    assert load(pictures).fingerprint == first.fingerprint


def test_a_change_within_the_same_tick_of_the_clock_is_seen(
    pictures: Path, own_cache: Path, draw: Draw
) -> None:
    path = pictures / "img" / "3.png"
    first, state = load(pictures), path.stat()
    content = bytearray(path.read_bytes())
    path.write_bytes(draw(3, 12, 10, "BMP"))
    load(pictures)
    path.write_bytes(bytes(content))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert load(pictures).fingerprint == first.fingerprint


def test_a_cache_that_was_cut_short_is_made_again(
    pictures: Path, own_cache: Path, decoded: list[str]
) -> None:
    first = np.array(load(pictures).records)
    (packed,) = own_cache.glob("*.npy")
    packed.write_bytes(packed.read_bytes()[:-100])
    decoded.clear()
    assert np.array_equal(load(pictures).records, first) and decoded


def test_a_killed_run_leaves_nothing_that_is_believed(
    pictures: Path, own_cache: Path, decoded: list[str]
) -> None:
    script = f"""
        import os, signal
        from pathlib import Path
        from privet.data import images, packing
        from privet.data import schema_file as layout
        from privet.data.folders import read_folder
        packing._CHUNK = 2
        plain, calls = images.read_pixels, []
        def read(*given, **named):
            calls.append(0)
            if len(calls) > 15:
                os.kill(os.getpid(), signal.SIGKILL)
            return plain(*given, **named)
        packing.read_pixels = read
        read_folder(Path({str(pictures)!r}), layout.Layout())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], check=False, capture_output=True
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    assert list(own_cache.glob(".*.npy.*")) and not list(own_cache.glob("*.npy"))
    data = load(pictures)
    assert len(decoded) >= 24 and np.array_equal(
        data.records[23], read_picture(pictures / "img" / "23.png")
    )


def test_what_a_killed_run_left_is_cleared_away_once_it_is_old(
    pictures: Path, own_cache: Path
) -> None:
    own_cache.mkdir()
    old, young = own_cache / ".a.npy.x", own_cache / ".b.npy.y"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1_000_000_000, 1_000_000_000))
    load(pictures)
    assert not old.exists() and young.exists()


def anonymous_megabytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) // 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["files", "parquet"])
def test_packing_never_holds_all_pictures(
    kind: str, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """150 MB of pictures, encoded and decoded, in less than a third of both."""
    file = io.BytesIO()
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (256, 256, 3), dtype=np.uint8)).save(
        file, "BMP"
    )
    content, n, used = file.getvalue(), 800, [anonymous_megabytes()]
    plain = packing.read_pixels

    def read(source: str | bytes, size: tuple[int, int] | None, name: str) -> np.ndarray:
        used.append(anonymous_megabytes())
        return plain(source, size, name)

    monkeypatch.setattr(packing, "read_pixels", read)
    if kind == "files":
        packed = pack(
            lambda: (Picture(str(i), content[:-1] + bytes([i % 256])) for i in range(n)),
            n,
            "big",
            progress=False,
        )
    else:
        with pq.ParquetWriter(
            tmp_path / "big.parquet",
            pa.schema([("image", pa.binary())]),
            compression="none",
            use_dictionary=False,
            write_batch_size=8,
        ) as writer:
            writer.write_table(
                pa.table({"image": pa.array([content] * n, pa.binary())}), row_group_size=n
            )  # one group, as large files often have
        pa.default_memory_pool().release_unused()
        used[:] = [anonymous_megabytes()]
        packed = load(tmp_path / "big.parquet", progress=False).records
    assert packed.nbytes > 150e6 and max(used) - used[0] < 100


def test_a_picture_is_turned_upright_covered_and_cut_in_the_middle() -> None:
    array = np.zeros((20, 40, 3), dtype=np.uint8)
    array[:, 10:30] = 200
    file = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(array).save(file, "PNG", exif=exif)
    turned = read_picture(file.getvalue())
    assert (
        turned.shape == (3, 40, 20) and turned[:, 10:30].min() == 200 and turned[:, :10].max() == 0
    )
    cut = read_picture(file.getvalue(), (10, 10))
    assert cut.shape == (3, 10, 10) and cut[:, 1:-1].min() == 200
    assert read_picture(file.getvalue(), (10, 10), channels=1).shape == (1, 10, 10)


@pytest.mark.parametrize("mode", ["L", "RGBA", "P", "1", "LA", "CMYK"])
def test_every_mode_becomes_colour(mode: str) -> None:
    file = io.BytesIO()
    Image.new("RGB", (6, 5), (10, 20, 30)).convert(mode).save(
        file, "JPEG" if mode == "CMYK" else "PNG"
    )
    assert read_picture(file.getvalue()).shape == (3, 5, 6)


@pytest.mark.parametrize("height", [3, 7, 64, 250])
@pytest.mark.parametrize("width", [3, 100, 333])
def test_any_size_becomes_the_one_asked_for(height: int, width: int, draw: Draw) -> None:
    assert read_picture(draw(1, height, width, "JPEG"), (48, 31)).shape == (3, 48, 31)


JPEGS: dict[str, dict[str, Any]] = {
    "baseline": {},
    "progressive": {"progressive": True},
    "all colours": {"subsampling": 0},
    "restarts": {"restart_marker_blocks": 2},
    "not YCbCr": {"keep_rgb": True},
    "comment": {"comment": b"by nobody"},
    "turned": {"exif": b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"},
    "turned by XMP": {"xmp": b'<rdf tiff:Orientation="6"/>'},
}


def jpeg(how: str, mode: str = "RGB") -> bytes:
    file = io.BytesIO()
    coarse = np.random.default_rng(5).integers(0, 255, (7, 9, 3), dtype=np.uint8)
    Image.fromarray(coarse).resize((37, 29)).convert(mode).save(file, "JPEG", **JPEGS[how])
    return file.getvalue()


def by_pillow(content: bytes) -> np.ndarray:
    with Image.open(io.BytesIO(content)) as picture:
        return np.asarray(ImageOps.exif_transpose(picture).convert("RGB"))


@pytest.mark.parametrize(
    "how,mode",
    [
        pair
        for pair in product(JPEGS, ["RGB", "L", "CMYK"])
        if pair[0] != "not YCbCr" or pair[1] == "RGB"
    ],
)
def test_jpegs_of_every_kind_are_as_pillow_reads_them(how: str, mode: str, tmp_path: Path) -> None:
    content, path = jpeg(how, mode), tmp_path / "a.jpg"
    path.write_bytes(content)
    wanted = by_pillow(content)
    assert wanted.shape == ((37, 29, 3) if how.startswith("turned") else (29, 37, 3))
    for read in (
        read_pixels(content),
        read_pixels(str(path)),
        read_picture(content).transpose(1, 2, 0),
        read_pixels(path, wanted.shape[:2]),
    ):
        assert np.array_equal(read, wanted)
    large = content + bytes(1 << 16)
    path.write_bytes(large)
    assert np.array_equal(read_pixels(path), wanted)


@given(
    how=st.sampled_from(list(JPEGS)),
    cut=st.integers(2, 900),
    changes=st.lists(st.tuples(st.integers(2, 700), st.integers(0, 255)), max_size=3),
)
@settings(max_examples=150, deadline=None)
def test_a_broken_jpeg_gives_what_pillow_gives_or_a_sentence(
    how: str, cut: int, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(jpeg(how))
    for place, byte in changes:
        content[place % len(content)] = byte
    broken = bytes(content[: cut if cut % 3 == 0 else len(content)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wanted = by_pillow(broken)
        except Exception:
            with contextlib.suppress(PrivetError):
                assert read_pixels(broken).size
        else:
            assert np.array_equal(read_pixels(broken), wanted)


def test_pixels_lie_on_disk_as_they_are_decoded_and_reach_a_network_without_a_move(
    pictures: Path, own_cache: Path
) -> None:
    records = load(pictures).records
    (file,) = own_cache.glob("*.npy")
    on_disk = np.load(file)
    assert on_disk.shape == (24, *records.shape[2:], 3) and np.array_equal(
        on_disk.transpose(0, 3, 1, 2), records
    )
    batch = (
        Feed(Inputs(records, np.arange(24)), {}, torch.device("cpu")).batch(np.array([5, 3, 5])).x
    )
    assert batch.is_contiguous(memory_format=torch.channels_last) and np.array_equal(
        batch.numpy(), records[[5, 3, 5]]
    )


def test_what_an_older_version_packed_is_packed_again(
    draw: Draw, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = draw(1, 6, 5)

    def packed() -> np.ndarray:
        return pack(lambda: iter([Picture("a", content)]), 1, "one", progress=False)

    with monkeypatch.context() as before:
        before.setattr(packing, "_VERSION", packing._VERSION - 1)
        packed()
    assert (
        np.array_equal(packed()[0], read_picture(content))
        and len(list(own_cache.glob("*.npy"))) == 2
    )


def test_fewer_pictures_than_promised_are_never_kept(draw: Draw, own_cache: Path) -> None:
    with pytest.raises(RuntimeError, match="bytes were written"):
        pack(lambda: iter([Picture("a", draw(1))]), 2, "two", progress=False)
    assert not list(own_cache.glob("*.npy"))
