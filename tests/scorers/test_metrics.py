"""Similarity metrics against the reference implementations, and on texts those were not made for."""

from __future__ import annotations

import random
import string

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.scorers.metrics import bleu, cosine, jaccard, rouge_l, tokens

sacrebleu = pytest.importorskip("sacrebleu", reason="the BLEU oracle (extra `test`) is not installed")
rouge_scorer = pytest.importorskip(
    "rouge_score.rouge_scorer", reason="the ROUGE oracle (extra `test`) is not installed"
)

SENTENCES = [
    ("Refunds are possible within 30 days.", "You can get a refund within 30 days of delivery."),
    ("The cat sat on the mat.", "The cat sat on a mat, didn't it?"),
    ("No.", "Yes, of course you can."),
    ("It costs $4,500.00 - or 12-13 euros", "It costs 4,500.00 dollars, or 12-13 euros."),
    ("He said &quot;hello&quot; & left", 'He said "hello" and left'),
    ("a", "a b c d e f g"),
    ("a b c d e f g", "a"),
    ("snake_case and kebab-case", "snake case and kebab case"),
    ("line one\nline two", "line one line two"),
]


def _pairs() -> list[tuple[str, str]]:
    dice = random.Random(7)
    words = ["the", "refund", "order", "is", "not", "paid,", "within", "30", "days.", "Please", "contact", "us!", "a-b"]
    made = [
        (" ".join(dice.choices(words, k=dice.randint(1, 40))), " ".join(dice.choices(words, k=dice.randint(1, 40))))
        for _ in range(300)
    ]
    return SENTENCES + made


def test_bleu_equals_the_reference_implementation():
    for answer, reference in _pairs():
        expected = sacrebleu.sentence_bleu(answer, [reference]).score / 100
        assert bleu(answer, reference) == pytest.approx(expected, abs=1e-9), (answer, reference)


def test_rouge_l_equals_the_reference_implementation():
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    for answer, reference in _pairs():
        expected = scorer.score(reference, answer)["rougeL"].fmeasure
        assert rouge_l(answer, reference) == pytest.approx(expected, abs=1e-9), (answer, reference)


@settings(max_examples=200, deadline=None)
@given(st.text(string.ascii_letters + " .,-'0123456789"), st.text(string.ascii_letters + " .,-'0123456789"))
def test_rouge_l_equals_the_reference_implementation_on_any_latin_text(answer, reference):
    if answer.strip() == reference.strip():
        return
    expected = rouge_scorer.RougeScorer(["rougeL"]).score(reference, answer)["rougeL"].fmeasure
    assert rouge_l(answer, reference) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("metric", [jaccard, bleu, rouge_l])
@pytest.mark.parametrize(
    "text",
    ["Yes", "The answer is 42.", "退款在30天内可用。", "สวัสดีครับ", "नमस्ते दुनिया", "👍", "…", "Größe", "안녕하세요 세계"],
)
def test_identical_text_is_one(metric, text):
    assert metric(text, text) == 1.0


@pytest.mark.parametrize("metric", [jaccard, bleu, rouge_l])
def test_nothing_shared_is_zero(metric):
    assert metric("alpha beta", "gamma delta") == 0.0
    assert metric("", "gamma") == 0.0
    assert metric("你好", "再见") == 0.0


def test_jaccard_counts_each_token_once_whatever_case_and_width():
    assert jaccard("The cat, the CAT", "a cat") == pytest.approx(1 / 3)
    assert jaccard("ＡＢＣ déjà", "abc DÉJÀ") == 1.0


def test_scripts_without_spaces_are_compared_by_character():
    assert tokens("退款30天") == ["退", "款", "30", "天"]
    assert 0 < jaccard("可以退款", "不可以退款") < 1
    assert 0 < rouge_l("可以退款", "不可以退款") < 1
    assert 0 < bleu("今天可以退款吗", "今天不可以退款") < 1
    assert tokens("नमस्ते दुनिया") == ["नमस्ते", "दुनिया"]
    assert tokens("ok 👍") == ["ok", "👍"]


@settings(max_examples=200, deadline=None)
@given(st.text(), st.text())
def test_every_metric_stays_between_zero_and_one_on_any_text(left, right):
    for metric in (jaccard, bleu, rouge_l):
        assert 0.0 <= metric(left, right) <= 1.0


def test_a_text_of_a_megabyte_is_compared():
    long = "word and another one, " * 50_000
    assert rouge_l(long, long + "end") == 1.0  # the first 20,000 tokens are the same
    assert jaccard(long, long + "end") == pytest.approx(4 / 5)
    assert bleu(long, long + "end") > 0.99


def test_cosine_is_kept_between_zero_and_one():
    one = np.array([0.6, 0.8], dtype=np.float32)
    assert cosine(one, one) == 1.0
    assert cosine(one, -one) == 0.0
    assert cosine(one, np.zeros(2)) == 0.0
    assert cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(2**-0.5)
