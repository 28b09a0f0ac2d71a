"""Words of the command line: what is wrong is said before anything runs."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from privet import METHODS
from privet.cli import main as cli
from privet.core.errors import PrivetError
from privet.studies.command_line import read_budgets, read_seconds, read_settings, read_study
from privet.studies.study import Study
from small import small

DATA = [
    "compare",
    "--data",
    "portraits:300",
    "--private",
    "beard",
    "--utility",
    "smiling",
    "--device",
    "cpu",
]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--methods", "tiprdc", "--budgets", "0.5,1.5"], "between 0"),
        (["--methods", "tiprdc,hedge", "--budgets", "0.5"], "Say whose budgets these are"),
        (
            ["--methods", "tiprdc", "--budgets", "hedge=0.5"],
            "There is no method in this comparison 'hedge'",
        ),
        (["--methods", "tiprdc", "--budgets", "many"], "A budget is a number"),
        (["--methods", "tiprdx"], "There is no method 'tiprdx'; did you mean 'tiprdc'"),
        (["--methods", "encoder", "--budgets", "0.5"], "has no budget"),
        (
            ["--methods", "tiprdc", "--set", "tiprdc.wdith=1"],
            "There is no setting of tiprdc 'wdith'",
        ),
        (["--methods", "tiprdc", "--set", "width"], "has no '='"),
        (["--methods", "tiprdc", "--set", "budget=0.5"], "give it with  --budgets"),
        (["--methods", "tiprdc", "--set", "width=-1"], "width of tiprdc"),
        (["--methods", "tiprdc", "--seeds", "0"], "number of seeds"),
        (["--methods", "tiprdc", "--battery", "heavy"], "There is no battery 'heavy'"),
        (["--methods", "tiprdc", "--workers", "0"], "At least one worker"),
        (["--methods", "tiprdc", "--time-limit", "soon"], "--time-limit takes seconds"),
        (["--methods", "tiprdc", "--size", "small"], "--size is for recipes"),
        (["--methods", "tiprdc", "--private", "beart"], "beart"),
        (["--methods", "tiprdc", "--utility", ""], "at least one task"),
        (["--goal", "hat=0.6"], "There is no private attribute of this comparison 'hat'"),
        (["--goal", "60"], "write 0.6 for 60 %"),
        (["--recipe", "tiprdc-figure-6"], "A recipe says itself what is private"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_nothing_is_written(tmp_path, words, said):
    result = CliRunner().invoke(cli.app, [*DATA, *words, "--out", str(tmp_path / "c")])
    assert isinstance(result.exception, PrivetError) and said in str(result.exception)
    assert not (tmp_path / "c").exists()


def test_a_recipe_that_is_not_there_and_data_that_is_not():
    with pytest.raises(PrivetError, match="There is no recipe 'tiprdc-figure-8'; did you mean"):
        read_study("tiprdc-figure-8", "small", None, [], [])
    with pytest.raises(PrivetError, match="There is no size 'tiny'"):
        read_study("tiprdc-figure-6", "tiny", None, [], [])
    with pytest.raises(PrivetError, match=r"needs celeba64.parquet.*--size small"):
        read_study("gap-regimes", "full", None, [], [])
    with pytest.raises(PrivetError, match="Say which data"):
        read_study(None, "full", None, ["a"], ["b"])


def test_budgets_settings_and_times():
    assert read_budgets("tiprdc = 0.5, 0.5,1 ;", ["tiprdc", "hedge"]) == {"tiprdc": (0.5, 1.0)}
    assert read_settings(["epochs=2", "hedge.width=0.5"], ["tiprdc", "hedge", "leace"]) == {
        "tiprdc": {"epochs": "2"},
        "hedge": {"epochs": "2", "width": "0.5"},
    }
    assert read_seconds("90s") == 90 and read_seconds("0.5m") == 30
    for wrong in ("-3", "inf", "", "3 weeks"):
        with pytest.raises(PrivetError):
            read_seconds(wrong)


def test_all_methods_that_take_the_data_and_why_others_do_not(monkeypatch):
    monkeypatch.setattr("privet.studies.study.load", lambda *words: small("table", 200))
    cells, refused = Study.of("a table", ["u"], ["y"]).cells("cpu")
    there = {cell.method for cell in cells} - {"raw"}
    assert {"tiprdc", "hedge", "leace"} <= there <= set(METHODS)
    assert len(there) + len(refused) == len(METHODS) and all(
        "is left out: " in one.said for one in refused
    )
    for own in there:
        turned = [cell.budget for cell in cells if cell.method == own]
        assert turned == list(METHODS[own].sweep or (None,))
    raw = [cell for cell in cells if cell.method == "raw"]
    assert cells[0] is raw[0] and len(raw) == 1
    assert len({cell.method for cell in cells[1 : 1 + len(there)]}) == len(there), (
        "one of each comes before the second of any"
    )
    for cell in cells:
        known = cell.method != "raw" and METHODS[cell.method].tasks != "none"
        assert (cell.tasks, cell.without) == ((("y",), ()) if known else ((), ("y",)))


def test_seeds_and_budgets_make_the_cells(monkeypatch):
    monkeypatch.setattr("privet.studies.study.load", lambda *words: small("table", 200))
    made = Study.of(
        "a table",
        ["u"],
        ["y"],
        methods=["tiprdc"],
        budgets={"tiprdc": [0.5, 1]},
        seeds=2,
        settings={"tiprdc": {"width": 0.1}},
    )
    cells, _ = made.cells("cpu")
    assert [(c.budget, c.seed, c.settings["width"]) for c in cells[1:]] == [
        (0.5, 0, 0.1),
        (1, 0, 0.1),
        (0.5, 1, 0.1),
        (1, 1, 0.1),
    ]
    assert len({c.key for c in cells}) == 5 and [c.key for c in made.cells("cpu")[0]] == [
        c.key for c in cells
    ]
    with pytest.raises(PrivetError, match="named both private and a task"):
        Study.of("a table", ["u"], ["u"], methods=["hedge"]).cells("cpu")
    with pytest.raises(PrivetError, match="no method in this comparison 'hedge'"):
        Study.of("a table", ["u"], ["y"], methods=["leace"], budgets={"hedge": [0.5]})
