"""The code scorers that the editor inserts: they run as they stand, and say what their names promise."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.conf import settings

from apps.scorers.sandbox.javascript import ABSENT, run_javascript

SCORES: dict[str, Any] = {
    "rating": 8,
    "judges": {"Safety": 3, "Tone": None},
    "vectorSimilarity": 0.5,
    "jaccardSimilarity": None,
    "bleuScore": None,
    "rougeScore": None,
}


def body_of(name: str) -> str:
    """The code of one template, out of the page's script."""
    script = (settings.BASE_DIR / "static" / "js" / "code-scorers.js").read_text("utf-8")
    found = re.search(rf'name: "{name}",\s*code: `(.*?)`', script, re.DOTALL)
    assert found is not None
    return found[1]


def run(code: str, scores: Any) -> Any:
    names = {"input": "q", "output": "a", "expected": ABSENT, "toolCalls": ABSENT, "scores": scores}
    outcome = run_javascript(code, names)
    assert outcome.error is None
    return outcome


def test_the_weighted_score_blends_what_is_there_and_inverts_what_is_bad_when_high():
    code = body_of("Weighted final score")
    assert run(code, SCORES).score == pytest.approx((0.5 * 0.8 + 0.2 * 0.5) / 0.7)
    with_judge = code.replace("const JUDGES = {};", "const JUDGES = { Safety: { weight: 1, higherIsBetter: false } };")
    assert run(with_judge, SCORES).score == pytest.approx((0.5 * 0.8 + 0.2 * 0.5 + 0.7) / 1.7)
    assert run(code, {**SCORES, "rating": None, "vectorSimilarity": None}).score is None
    assert run(code, ABSENT).score is None


def test_the_worst_judge_wins():
    code = body_of("Worst judge wins")
    outcome = run(code, SCORES)
    assert outcome.score == pytest.approx(0.3) and "Safety" in outcome.reasoning
    assert run(code, {**SCORES, "rating": None, "judges": {}}).score is None
    assert run(code, ABSENT).score is None
