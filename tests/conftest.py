"""What every test shares: a cache of its own, one thread, and the real data where it lies beside the repository."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.load_profile("fixed")

SHARED = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or fills the cache of whoever runs it."""
    before = os.environ.get("PRIVET_CACHE")
    os.environ["PRIVET_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["PRIVET_CACHE"]
    else:
        os.environ["PRIVET_CACHE"] = before


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    """Small networks are slower on several threads, and figures would depend on how many there are."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share something costly, a module's fixture or one value of it, go to the same process (`--dist loadgroup`)."""
    for item in items:
        learned = getattr(item, "callspec", None) and item.callspec.params.get("learned")  # type: ignore[attr-defined]
        name = item.path.name if learned is None else f"{item.path.name} {learned}"
        item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data, which is no part of the repository."""
    if not SHARED.is_dir():
        pytest.skip(f"the real data is not on this machine: {SHARED} is absent")
    return SHARED
