"""A trained model of Hugging Face: one that has learned its texts by heart is caught by all three
attacks, one that has learned nothing by none."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from privet.cli.main import app
from privet.core.errors import PrivetError
from privet.language.model_audit import hugging_face
from privet.language.model_audit.hugging_face import audit_model, load_model, text_nats
from privet.language.models.corpus import build_corpus, load_texts

pytest.importorskip("transformers", reason="needs transformers (extra language)")

SECRET = "the code of my door is 4 2 7"
OTHER = "the code of my door is 9 0 3"
FILL = "we walked to town and saw old ships near green hills with many small birds there"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Twelve authors of four texts each, with a name that the author alone uses."""
    random, rows = np.random.default_rng(0), []
    for author in range(12):
        name = "".join(random.choice(list("bcdfgklmnprst"), 6))
        for _ in range(4):
            words = random.permutation(FILL.split()).tolist()
            words.insert(6, name)
            part = ("train", "train", "train", "train", "valid", "test")[author % 6]
            rows.append({"text": " ".join(words), "author": f"a{author}", "split": part})
    path = tmp_path_factory.mktemp("texts") / "texts.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def save_model(folder, lines, everything, steps):
    """A tiny GPT-2 with the words of `everything` as tokens, trained on these lines."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = sorted({word for line in everything for word in line.split()} | set("0123456789"))
    codes = {word: code for code, word in enumerate(["<s>", "<unk>", *words])}
    inner = Tokenizer(models.WordLevel(codes, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, bos_token="<s>", eos_token="<s>", unk_token="<unk>"
    )
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=len(codes), n_positions=80, n_embd=48, n_layer=2, n_head=2,
        bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    model = GPT2LMHeadModel(config)
    rows = [[0, *tokenizer(line)["input_ids"], 0] for line in lines]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    labels = torch.tensor([row + [-100] * (longest - len(row)) for row in rows])
    optimiser = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(steps):
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


@pytest.fixture(scope="module")
def lines(texts):
    corpus = build_corpus(load_texts(texts, progress=False), "", 80, 0)
    seen = [str(text) for text in corpus.texts[corpus.select("known", "train")]]
    return seen, [str(text) for text in corpus.texts]


@pytest.fixture(scope="module")
def models(lines, tmp_path_factory):
    """By heart, and untrained; their vocabularies have the words of all texts."""
    seen, everything = lines
    folders = {name: tmp_path_factory.mktemp(name) for name in ("heart", "blank")}
    known = [*seen, *[SECRET] * 3]
    save_model(folders["heart"], known, [*everything, SECRET], 120)
    save_model(folders["blank"], known, [*everything, SECRET], 0)
    return folders


def test_a_model_that_knows_its_texts_by_heart_is_caught(models, texts, tmp_path):
    found = audit_model(
        str(models["heart"]), str(texts), tmp_path / "a", secrets=[SECRET, OTHER], written=24,
        device="cpu", progress=False,
    )  # fmt: skip
    planted, other = found.secrets
    assert planted.listed and planted.most == pytest.approx(np.log2(1000))
    assert planted.bits > 8 and other.bits < planted.bits
    assert found.tab[0].value > 0.6 > found.tab[0].chance + 0.3
    assert found.repeated.value > 0.5 and found.longest >= hugging_face.RUN
    assert any(found.example in " ".join(text.split()) for text in pd.read_csv(texts)["text"])
    saved = json.loads((tmp_path / "a" / "language-model.json").read_text())
    assert saved["secrets"][0]["bits"] == planted.bits and saved["tab"][0]["n"] > 0


def test_a_model_that_has_learned_nothing_is_not(models, texts):
    found = audit_model(
        str(models["blank"]), str(texts), secrets=[SECRET], written=16, device="cpu",
        progress=False,
    )  # fmt: skip
    assert found.repeated.value == 0 and found.longest == 0 and found.tab[0].value < 0.5


def test_a_text_is_as_likely_as_the_model_itself_says(models):
    loaded = load_model(str(models["heart"]), "cpu")
    ids = torch.tensor([[loaded.start, *loaded.codes(SECRET)]])
    with torch.inference_mode():
        mean = float(loaded.model(input_ids=ids, labels=ids).loss)
    both = text_nats(loaded, [SECRET, f"{SECRET} {OTHER}"])
    assert both[0] == pytest.approx(mean * (ids.shape[1] - 1), rel=1e-4), "padding changes nothing"


def test_mistakes_get_a_sentence(texts, tmp_path):
    with pytest.raises(PrivetError, match="has no digits"):
        audit_model("nowhere", str(texts), secrets=["no digits"], progress=False)
    ask = ["lm", "audit", "--data", str(texts), "--model", str(tmp_path / "none"), "--out"]
    result = CliRunner().invoke(app, [*ask, str(tmp_path / "o")])
    assert result.exit_code != 0 and "cannot be read as a causal language model" in str(
        result.exception or result.output
    )
    assert not (tmp_path / "o" / "language-model.json").exists()
