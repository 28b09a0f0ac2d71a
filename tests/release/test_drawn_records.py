"""Before, after and as every value: what people are shown of a release of pictures."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

import privet
from privet.adversaries.linear import Logistic
from privet.auditing.batteries import Battery
from privet.methods.veil import Veil
from privet.release.drawn_records import GRID, SHOWN, draw_records
from privet.release.own_form import pixels
from privet.train.game import Run
from small import small

TINY = {"dims": 4, "width": 0.05, "lessons": 1, "epochs": 1, "batch": 16}
QUIET = Run(progress=False)


@pytest.mark.parametrize("output", ["code", "record"])
def test_a_picture_is_drawn_as_it_leaves_and_as_every_value(output):
    data = small("image", 160, people=40)
    release = Veil(**TINY, output=output, drawn_as="yes").fit(data, "u", run=QUIET)
    drawn = draw_records(release, data)
    assert drawn is not None and list(drawn.rows) == ["before", "after", "u: no", "u: yes"]
    raw = {picture.tobytes() for picture in data.part("test").records[data.part("test").rows]}
    assert len(drawn.before) == SHOWN and {one.tobytes() for one in drawn.before} <= raw
    np.testing.assert_array_equal(drawn.after, drawn.values["u: yes"])
    assert (drawn.after != drawn.values["u: no"]).any()


def test_what_is_no_picture_is_not_drawn():
    rows = small("table", 160)
    assert draw_records(Veil(**TINY).fit(rows, "u", run=QUIET), rows) is None
    pictures = small("image", 160)
    assert (
        draw_records(privet.TIPRDC(width=0.05, warmup=0, epochs=1).fit(pictures, "u"), pictures)
        is None
    )


def test_noise_on_pictures_is_shown_too():
    data = small("image", 160)
    release = privet.Noisy().fit(data, "u", run=QUIET)
    drawn = draw_records(release, data)
    assert drawn is not None and not drawn.values
    assert drawn.after.dtype == np.uint8 and (drawn.after != drawn.before).any()


def test_learning_and_auditing_show_them(tmp_path):
    data = small("image", 160)
    privet.learn(Veil(**TINY), data, "u", out=tmp_path / "r", run=QUIET)
    grid = Image.open(io.BytesIO((tmp_path / "r" / GRID).read_bytes()))
    assert grid.size == (2 * (SHOWN * 34 - 2), 2 * (4 * 34 - 2))
    battery = Battery((Logistic(),), people=False)
    privet.audit(
        tmp_path / "r", data, battery=battery, out=tmp_path / "a", rebuild=False, progress=False
    )
    page = (tmp_path / "a" / "report.html").read_text()
    assert "Before and after" in page and page.count(">u: no</figcaption>") == SHOWN
    assert "originals" not in (tmp_path / "a" / "audit.json").read_text()


def test_bytes_of_a_picture_are_its_values():
    assert pixels(np.array([-1.0, 0.0, 1.0, 3.0])).tolist() == [0, 128, 255, 255]
