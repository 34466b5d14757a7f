"""The arithmetic of groups, and the checks without a model."""

from __future__ import annotations

import pytest

from apps.scorers.arithmetic import MemberScore, group_score, of_external, of_judge, of_pattern
from apps.scorers.deterministic import context_match, trajectory_match


def blend(*members):
    return group_score([MemberScore(f"m{n}", *member) for n, member in enumerate(members)]).score


def test_goodness_of_each_kind():
    assert of_judge(7) == pytest.approx(0.7)
    assert of_judge(None) is None
    assert [of_pattern(m, p) for m in (True, False) for p in ("failure", "proper")] == [0.0, 1.0, 1.0, 0.0]
    assert of_external(0.4, True, invert=False) == 0.4
    for score in (7.5, -0.1, float("nan"), None):
        assert of_external(score, True, invert=False) == 0.0
        assert of_external(score, False, invert=False) == 1.0
        assert of_external(score, True, invert=True) == 1.0


def test_the_score_is_the_weighted_mean_times_ten():
    assert blend((0.8, 3), (0.4, 1)) == pytest.approx(7.0)
    assert blend((0.8, 1), (0.4, 0)) == pytest.approx(8.0)


def test_members_without_a_score_leave_the_mean():
    assert blend((0.8, 1), (None, 5)) == pytest.approx(8.0)
    assert blend((None, 1), (None, 1)) is None
    assert blend() is None
    told = group_score([MemberScore("Tone", 0.8), MemberScore("Safety", None)]).explanation
    assert told == "Weighted blend: Tone 8/10 (weight 1); Safety not scored."


def test_without_weights_there_is_no_score_but_gates_act():
    assert blend((0.8, 0), (0.9, 0)) is None
    assert blend((0.8, 0, True), (0.9, 0)) is None
    assert blend((0.4, 0, True), (0.9, 0)) == 0.0


def test_a_gate_below_a_half_zeroes_the_group():
    assert blend((0.49, 1, True), (1.0, 9)) == 0.0
    assert blend((0.5, 1, True), (1.0, 1)) == pytest.approx(7.5)
    assert blend((None, 1, True), (0.9, 1)) == pytest.approx(9.0)


@pytest.mark.parametrize(
    ("expected", "actual", "passing"),
    [
        (["a", "b"], ["a", "b"], {"strict", "unordered", "superset", "subset"}),
        (["a", "b"], ["b", "a"], {"unordered", "superset", "subset"}),
        (["a", "b"], ["a", "b", "c"], {"superset"}),
        (["a", "b"], ["a"], {"subset"}),
        (["a", "b"], ["a", "c"], set()),
        (["a", "a"], ["a"], {"subset"}),
        (["a"], ["a", "a"], {"superset"}),
        ([], [], {"strict", "unordered", "superset", "subset"}),
        ([], ["a"], {"superset"}),
    ],
)
def test_trajectory_modes(expected, actual, passing):
    for mode in ("strict", "unordered", "superset", "subset"):
        row = trajectory_match({"tools": expected, "mode": mode}, actual)
        assert row["name"] == f"Trajectory match ({mode})"
        assert row["score"] == (1.0 if mode in passing else 0.0), mode


def test_a_trajectory_row_names_both_lists():
    row = trajectory_match({"tools": ["a", "b"]}, [])
    assert row == {
        "name": "Trajectory match (strict)",
        "score": 0.0,
        "reasoning": "Expected: a, b. Actual: no tool call.",
    }


def test_no_trace_is_no_score_and_no_expectation_no_row():
    row = trajectory_match({"tools": [], "mode": "subset"}, None)
    assert (row["score"], "linked trace" in row["error"]) == (None, True)
    for nothing in (None, {}, {"mode": "strict"}, {"tools": "a"}, []):
        assert trajectory_match(nothing, ["a"]) is None


def test_context_match():
    assert context_match("Refunds within 30 days", ["refunds WITHIN 30 days"]) == {
        "name": "Context match (jaccard)",
        "score": 1.0,
    }
    assert context_match(["alpha", "beta"], ["gamma"])["score"] == 0.0
    assert context_match(["alpha"], [])["score"] == 0.0
    assert context_match(["alpha"], None) == {
        "name": "Context match (jaccard)",
        "score": None,
        "error": "No retrieved context was sent or recorded.",
    }
    for nothing in (None, "", [], [""]):
        assert context_match(nothing, ["a"]) is None
