"""A collector that a real browser can visit, and a record of everything the browser sent to it."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import io
import json
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_from_bytes

import numpy as np
import onnx
import uvicorn
from onnx import TensorProto, helper, numpy_helper
from PIL import Image
from world import port

from privet.data.portraits.source import portraits
from privet.exchange.collector.app import create_app
from privet.exchange.collector.blobs import open_blobs
from privet.exchange.collector.collector import Collector
from privet.exchange.collector.database import Database
from privet.exchange.collector.limits import Limits
from privet.exchange.collector.monitor import Monitor
from privet.exchange.owner import campaigns
from privet.methods.hedge import Hedge

if TYPE_CHECKING:
    from playwright.sync_api import Page

WEB = Path(__file__).parents[2] / "web"
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)
QUIET = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
READY = "body[data-ready=yes]"
DIMS = 8
CAMERA = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")


def built(out: Path) -> Path:
    """The pages, as `make web` builds them."""
    spec = importlib.util.spec_from_file_location("build_pages", WEB / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.build(WEB / "node_modules", out)
    return out


@dataclass
class Site:
    url: str
    operator: str
    collector: Collector
    heard: list[bytes] = field(default_factory=list)
    """Every request as it came: method, address, headers, body."""


@contextlib.contextmanager
def site(folder: Path, pages: Path) -> Iterator[Site]:
    store = Database(f"sqlite:///{folder / 'collector.db'}")
    store.upgrade()
    collector = Collector(
        store,
        open_blobs(str(folder / "blobs")),
        Monitor(io.StringIO()),
        Limits(rate=0),
        pages=pages,
    )
    operator = store.operator_token(replace=True)
    assert operator is not None
    number = port()
    found = Site(f"http://127.0.0.1:{number}", operator, collector)
    server = uvicorn.Server(
        uvicorn.Config(_listening(create_app(collector), found.heard), port=number, log_config=None)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield found
    server.should_exit = True
    thread.join(30)


def _listening(app: Any, heard: list[bytes]) -> Callable[..., Any]:
    async def listen(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        head = b"\n".join(
            [
                scope["raw_path"] + b"?" + scope["query_string"],
                *(name + b": " + value for name, value in scope["headers"]),
            ]
        )
        heard.append(scope["method"].encode() + b" " + head + b"\n\n")
        place = len(heard) - 1

        async def hear() -> Any:
            message = await receive()
            heard[place] += message.get("body", b"")
            return message

        await app(scope, hear, send)

    return listen


def traces(content: bytes, many: int = 40, size: int = 18) -> set[bytes]:
    """Pieces of `content` as they would look raw, in hex, in base64 of either alphabet at any
    offset, and in an address."""
    found: set[bytes] = set()
    for start in np.linspace(0, len(content) - size, many).astype(int):
        piece = content[start : start + size]
        if len(set(piece)) < size // 2:
            continue  # a plain area is no trace of anybody
        found |= {
            piece,
            piece.hex().encode(),
            piece.hex().upper().encode(),
            quote_from_bytes(piece).encode(),
        }
        for offset in range(3):
            text = base64.b64encode(b"\0" * offset + piece)[4:-4]
            found |= {text, text.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def forms(pixels: np.ndarray) -> Iterator[bytes]:
    """A picture (channels, height, width) of bytes, in the orders and scales in which programs hold
    it."""
    rows = pixels.transpose(1, 2, 0)
    yield from (
        pixels.tobytes(),
        rows.tobytes(),
        np.dstack([rows, np.full(rows.shape[:2], 255, np.uint8)]).tobytes(),
    )
    for scaled in (pixels / np.float32(255), pixels / np.float32(127.5) - 1):
        yield from (
            scaled.astype("<f4").tobytes(),
            scaled.transpose(1, 2, 0).astype("<f4").tobytes(),
        )


def decoder(path: Path, dims: int, shape: tuple[int, int, int]) -> Path:
    """A graph that makes some picture of released numbers."""
    weights = (np.random.default_rng(0).standard_normal((dims, int(np.prod(shape)))) * 0.4).astype(
        np.float32
    )
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["z", "w"], ["a"]),
            helper.make_node("Tanh", ["a"], ["b"]),
            helper.make_node("Reshape", ["b", "s"], ["x"]),
        ],
        "decoder",
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, ["n", dims])],
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", *shape])],
        [
            numpy_helper.from_array(weights, "w"),
            numpy_helper.from_array(np.array([-1, *shape]), "s"),
        ],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path
    )
    return path


def audit(graph: str) -> dict[str, Any]:
    """As much of an audit.json as a page reads."""

    def finding(value: float) -> dict[str, Any]:
        score = {"value": value, "low": value - 0.02, "high": value + 0.02, "n": 800, "chance": 0.5}
        return {"adversary": "mlp", "score": score}

    reading = {
        "attribute": "beard",
        "role": "private",
        "values": ["no", "yes"],
        "best": 1,
        "best_raw": 0,
        "released": [finding(0.5)] + [finding(0.512)] * 13,
        "raw": [finding(0.97)],
    }
    proof = {
        "attribute": "beard",
        "values": ["no", "yes"],
        "bound": 0.5713,
        "confidence": 0.99,
        "releases": 1,
        "reason": "",
    }
    return {"release": {"sha256": {"graph": graph}}, "readings": [reading], "certificates": [proof]}


@dataclass
class Setting:
    """A release of portraits, a campaign for it, and a photo."""

    site: Site
    release: Path
    campaign: campaigns.CampaignFolder
    photo: Path
    folder: Path


@contextlib.contextmanager
def settle(folder: Path) -> Iterator[Setting]:
    data = portraits(60, seed=0)
    learned = Hedge(
        target=0.9, dims=DIMS, sigma=0.25, epochs=1, width=0.0625, batch=64, seed=0
    ).fit(data, ["beard"], ["hat"])
    learned.save(folder / "release")
    (folder / "audit.json").write_text(json.dumps(audit(learned.card["sha256"]["graph"])))
    photo = folder / "anna-at-home.jpg"
    picture = Image.fromarray(np.asarray(data.records[0]).transpose(1, 2, 0)).resize((150, 200))
    exif = picture.getexif()
    exif[0x0110], place = "Phone 7", exif.get_ifd(0x8825)
    place[1], place[2], place[3], place[4] = "N", (52.0, 31.0, 12.0), "E", (13.0, 24.0, 18.0)
    picture.save(photo, exif=exif, quality=95)
    with site(folder, built(folder / "pages")) as running:
        terms = campaigns.Terms(
            "<b>Hats</b>",
            "To <script>alert(1)</script> learn.",
            "Lab X",
            ["hat!=yes,no", "age"],
            30,
            100,
        )
        made = campaigns.create(
            running.url,
            folder / "release",
            folder / "mine",
            terms,
            running.operator,
            folder / "owner.key",
            decoder=decoder(folder / "decoder.onnx", DIMS, (3, 48, 48)),
            audit=folder / "audit.json",
        )
        yield Setting(running, folder / "release", made, photo, folder)


def choose(page: Page, photo: Path) -> None:
    page.set_input_files("#file", photo)
    page.wait_for_selector("#send:not([hidden])")


def send(page: Page) -> None:
    page.select_option("#label-0", "yes")
    page.check("#consent")
    page.click("#submit")


def in_page(page: Page, body: str, *given: Any) -> Any:
    """Run a piece of the page's own modules with given values; bytes and arrays travel as lists."""
    return page.evaluate(
        f"async (given) => {{ const load = (name) => import(`/static/${{name}}.js`); {body} }}",
        list(given),
    )


def nameless(page: Page) -> list[str]:
    """What a screen reader would have no words for."""
    found: list[str] = page.evaluate(
        """() => {
          const named = (e) => e.labels?.length || e.getAttribute('aria-label') || e.title
            || e.textContent.trim();
          const kinds = 'input, select, textarea, button, canvas, progress, iframe';
          return [...document.querySelectorAll(kinds)].filter((e) => !named(e))
            .map((e) => e.outerHTML);
        }"""
    )
    return found
