"""What every test shares: a cache of its own, one thread, and the real data where it lies beside
the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

SHARED = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache or the keys of whoever runs it, and none counts looks at
    test data unless it is about that."""
    os.environ["PRIVET_LOOKS"] = "off"
    before = {name: os.environ.get(name) for name in ("PRIVET_CACHE", "PRIVET_HOME")}
    os.environ["PRIVET_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["PRIVET_HOME"] = str(tmp_path_factory.mktemp("home"))
    yield
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Small networks are slower on several threads, and figures would depend on how many there
    are."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def _exported_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Exporting graphs took more time than anything else in tests (exported_once.py). All processes
    of one run of pytest share them."""
    try:
        import torch.onnx
    except ImportError:
        yield
        return
    import exported_once

    room = tmp_path_factory.getbasetemp()
    folder = (room.parent if "PYTEST_XDIST_WORKER" in os.environ else room) / "exports"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.onnx, "export", exported_once.remembering(torch.onnx.export, folder))
        exported_once.one_table_of_operators(patch)
        yield


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests that share something costly, a module's fixture or one learned release, go to the same
    process.

    xdist's own `loadgroup` does nothing with pytest 9.2, which names tests in another way than
    xdist 3.8 expects.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            path, _, rest = nodeid.partition("::")
            return (
                f"{path} {rest.partition('[')[2]}"
                if path.endswith("test_contract_methods.py")
                else path
            )

    return Together(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, which is no part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"the real data is not on this machine: {SHARED} is absent")
    return SHARED
