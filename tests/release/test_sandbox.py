"""A stranger's graph runs in a child without files, network or programs, with limits on memory and
time; what it gives is what the graph gives in this process."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest

from hostile_graphs import HOSTILE, constant, graph, node
from privet.core.errors import PrivetError
from privet.release import sandbox
from privet.release.graph_verifier import verify_graph
from privet.release.runtime import session
from privet.release.sandbox import Child, Guarded
from privet.release.strangers import is_trusted, release_session, trust, what_is_missing

LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux holds processes in")
ROWS = {"x": np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)}
DOUBLE = graph([node("Add", ["x", "x"])])


def test_it_gives_what_the_graph_gives() -> None:
    run = Guarded(verify_graph(DOUBLE))
    np.testing.assert_array_equal(run.run(["z"], ROWS)[0], session(DOUBLE).run(["z"], ROWS)[0])
    assert [port.name for port in run.get_inputs()] == ["x"]
    assert run.get_inputs()[0].type == session(DOUBLE).get_inputs()[0].type
    run.close()


def test_threads_have_children_of_their_own() -> None:
    run = Guarded(verify_graph(DOUBLE))
    batches = [{"x": np.full((2, 4), k, np.float32)} for k in range(12)]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda batch: run.run(None, batch)[0], batches))
    assert [answer[0, 0] for answer in answers] == [2.0 * k for k in range(12)]
    assert 1 <= len(run._idle) <= 3
    run.close()


LOCKED = """
import socket, subprocess, os, sys
from privet.release.sandbox_child import lock
guards = lock(1 << 30)
print(sorted(guards.held))
def refused(action):
    try:
        action()
    except (OSError, MemoryError) as error:
        return True
    return False
print([
    refused(lambda: open("/etc/passwd").read()),
    refused(lambda: open("here.txt", "w")),
    refused(lambda: os.unlink(sys.argv[1])),
    refused(lambda: socket.socket()),
    refused(lambda: socket.create_connection(("127.0.0.1", 9), 1)),
    refused(lambda: subprocess.run(["true"])),
    refused(lambda: os.kill(os.getppid(), 0)),
    refused(lambda: bytearray(4 << 30)),
])
"""


@LINUX
def test_a_child_has_no_files_network_or_programs(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept")
    ran = subprocess.run(
        [sys.executable, "-c", LOCKED, str(tmp_path / "kept")],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    held, refused = ran.stdout.splitlines()
    if "other programs" not in held:
        pytest.skip("libseccomp is not installed here")
    assert refused == str([True] * 8), held
    assert (tmp_path / "kept").exists()


@LINUX
def test_an_endless_loop_is_ended() -> None:
    """The verifier refuses it; were one to get through, its time would be up."""
    child = Child(HOSTILE["an endless loop"][1])
    with pytest.raises(PrivetError, match="was ended"):
        child.run({"z": (1, (6, 4))}, ROWS, seconds=1.0)
    assert not child.alive


@LINUX
def test_a_bomb_runs_out_of_memory_and_this_process_does_not() -> None:
    child = Child(HOSTILE["one-hot of 2 ** 40 classes"][1])
    with pytest.raises(PrivetError, match=r"cannot be run|was ended"):
        child.run({"z": (1, (6, 4))}, ROWS, seconds=60.0)


@LINUX
def test_a_file_beside_it_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by a name in the current folder nor by an absolute one, also without the verifier."""
    (tmp_path / "secret.bin").write_bytes(np.full(4, 7, np.float32).tobytes())
    monkeypatch.chdir(tmp_path)
    for location in ("secret.bin", str(tmp_path / "secret.bin")):
        model = onnx.ModelProto.FromString(HOSTILE["a file that is only hinted at"][1])
        model.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
        model.graph.initializer[0].external_data[0].value = location
        with pytest.raises(PrivetError):
            Child(model.SerializeToString())


def test_a_child_that_lies_about_its_answer_is_ended() -> None:
    child = Child(DOUBLE)
    with pytest.raises(PrivetError, match="something else"):
        child.run({"z": (1, (5, 4))}, ROWS)
    assert not child.alive


def test_after_a_child_has_ended_another_one_runs() -> None:
    run = Guarded(verify_graph(DOUBLE))
    run._idle[0]._process.kill()
    with pytest.raises(PrivetError, match="was ended"):
        run.run(["z"], ROWS)
    assert run.run(["z"], ROWS)[0].shape == (6, 4)
    run.close()


def test_what_is_too_much_at_once_is_run_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sandbox.LIMITS, "total_numbers", 100)
    run = Guarded(verify_graph(graph([node("Add", ["x", "w"])], [constant("w", np.ones(4))])))
    many = {"x": np.arange(200, dtype=np.float32).reshape(50, 4)}
    np.testing.assert_array_equal(run.run(["z"], many)[0], many["x"] + 1)
    run.close()


def test_ones_own_graph_runs_here(tmp_path: Path) -> None:
    assert isinstance(release_session(DOUBLE, home=tmp_path), Guarded)
    trust(DOUBLE, tmp_path)
    trust(DOUBLE, tmp_path)
    assert is_trusted(DOUBLE, tmp_path) and not is_trusted(graph(), tmp_path)
    assert not isinstance(release_session(DOUBLE, home=tmp_path), Guarded)
    assert len((tmp_path / "trusted-graphs").read_text().split()) == 1


def test_a_system_that_cannot_hold_it_says_so() -> None:
    class Held:
        missing = ("files", "network", "other programs")

    assert what_is_missing(Held()).endswith("from: files, network and other programs.")
    assert what_is_missing(session(DOUBLE)) == ""
