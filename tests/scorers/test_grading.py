"""Who grades a run, frozen (EVAL-010, EVAL-011, EVAL-017..021, EVAL-032..034, EVAL-103..108)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.core.api.errors import APIError, NotFound
from apps.core.ids import new_id
from apps.datasets.models import Dataset
from apps.llm.selectors import default_judge_model
from apps.scorers.grading import resolve_grader
from apps.scorers.models import JudgeScorer, ScorerGroup
from apps.scorers.services.judge_scorers import create_judge_scorer, delete_judge_scorer, update_judge_scorer

OFF = {"vector": False, "vectorModel": None, "jaccard": False, "bleu": False, "rouge": False}
CODE = [{"id": "c", "name": "n", "code": "return 1", "enabled": True}]


@pytest.fixture
def dataset(project):
    """A dataset with grading of its own."""
    return Dataset.objects.create(
        project=project,
        name="Golden",
        number_of_requests=2,
        grading={
            "acceptanceCriteria": "own",
            "judgeModel": "claude-opus-4-8",
            "jaccardSimilarity": {"enabled": True},
            "codeScorers": CODE,
            "sovereigntyIndex": {"enabled": True, "models": ["m1"]},
        },
    )


@pytest.fixture
def scorer(project):
    """Makes judge scorers."""

    def make(name="Judge", **body: Any) -> JudgeScorer:
        return create_judge_scorer(project=project, body={"name": name, **body})

    return make


def resolve(dataset, settings=None, extras=None, group=None):
    """The frozen grader."""
    return resolve_grader(
        dataset.project,
        evaluation_settings_id=settings,
        additional_scorer_ids=extras,
        scorer_group_id=group,
        dataset=dataset,
    )


def test_the_datasets_own_grading(dataset, scorer):
    """Without a grader in the request; a project's default scorer changes nothing (EVAL-018)."""
    scorer(offline={"isDefault": True})
    grader = resolve(dataset)
    assert json.loads(json.dumps(grader)) == {
        "primary": {
            "id": dataset.grading_id,
            "name": "Golden",
            "kind": "dataset",
            "acceptanceCriteria": "own",
            "rejectionCriteria": None,
            "evaluationCriteria": None,
            "judgePrompt": None,
            "judgeModel": "claude-opus-4-8",
            "toolContext": "simple",
            "requiresExpected": False,
            "metrics": {**OFF, "jaccard": True},
            "codeScorers": CODE,
        },
        "extras": [],
        "group": None,
        "repetitions": 2,
        "comparisonModels": ["m1"],
        "thresholds": {},
        "evaluationSettingsId": None,
        "additionalScorerIds": None,
        "scorerGroupId": None,
    }


def test_a_judge_scorer_in_place_of_it(dataset, scorer):
    """Its rubric, metrics, repetitions and code scorers, none of the dataset's (EVAL-017, EVAL-107)."""
    judge = scorer(
        judge={"acceptanceCriteria": "a", "judgePrompt": "p", "toolContext": "none", "requiresExpected": True},
        offline={
            "numberOfRequests": 3,
            "vectorSimilarity": {"enabled": True, "model": "e"},
            "rougeScore": {"enabled": True},
            "thresholds": {"rating": 8},
        },
    )
    grader = resolve(dataset, settings=judge.pk)
    primary = grader["primary"]
    assert (primary["id"], primary["name"], primary["kind"]) == (judge.pk, "Judge", "judge")
    assert (primary["acceptanceCriteria"], primary["judgePrompt"], primary["toolContext"]) == ("a", "p", "none")
    assert primary["requiresExpected"] is True
    assert primary["judgeModel"] == default_judge_model()
    assert primary["metrics"] == {**OFF, "vector": True, "vectorModel": "e", "rouge": True}
    assert primary["codeScorers"] == []
    assert (grader["repetitions"], grader["comparisonModels"], grader["thresholds"]) == (3, [], {"rating": 8})
    assert grader["evaluationSettingsId"] == judge.pk


def test_extras(dataset, scorer):
    """Up to four, without the primary and without repeats (EVAL-021)."""
    judges = [scorer(f"j{n}") for n in range(4)]
    ids = [judge.pk for judge in judges]
    grader = resolve(dataset, settings=ids[0], extras=[ids[1], ids[0], ids[2], ids[1]])
    assert [extra["name"] for extra in grader["extras"]] == ["j1", "j2"]
    assert grader["additionalScorerIds"] == ids[1:3]
    grader = resolve(dataset, extras=ids)
    assert (grader["primary"]["kind"], len(grader["extras"])) == ("dataset", 4)


def test_what_does_not_resolve(dataset, scorer, other_project):
    """Each refusal with its text (EVAL-032, EVAL-034)."""
    judge = scorer()
    foreign = create_judge_scorer(project=other_project, body={"name": "foreign"})
    for settings in (new_id(), foreign.pk, "nope", 5):
        with pytest.raises(NotFound, match="Evaluation settings not found"):
            resolve(dataset, settings=settings)
    for extra in (new_id(), foreign.pk, "nope\x00"):
        with pytest.raises(APIError, match="Unknown scorer: ") as raised:
            resolve(dataset, extras=[judge.pk, extra])
        assert raised.value.status_code == 400
    with pytest.raises(APIError, match="additionalScorerIds must not exceed 4"):
        resolve(dataset, settings=new_id(), extras=[new_id()] * 5)
    for extras in ("x", [1], {}):
        with pytest.raises(APIError, match="additionalScorerIds must be a list"):
            resolve(dataset, extras=extras)


def test_a_group_wins(dataset, scorer):
    """The other fields are ignored; only members judge, without metrics and code scorers (EVAL-019, 020, 108)."""
    judge = scorer(offline={"jaccardSimilarity": {"enabled": True}, "codeScorers": CODE})
    gone = scorer("gone")
    group = ScorerGroup.objects.create(
        project=dataset.project,
        name="Bar",
        members=[
            {"kind": "judge", "refId": judge.pk, "weight": 2, "gate": True},
            {"kind": "judge", "refId": gone.pk, "weight": 1, "gate": False},
        ],
    )
    delete_judge_scorer(project=dataset.project, scorer_id=gone.pk)
    grader = resolve(dataset, settings=new_id(), extras=["bad"] * 9, group=group.pk)
    assert (grader["primary"]["kind"], grader["primary"]["name"], grader["primary"]["id"]) == ("group", "Bar", group.pk)
    assert (grader["primary"]["metrics"], grader["primary"]["codeScorers"]) == (OFF, [])
    assert (grader["additionalScorerIds"], grader["evaluationSettingsId"]) == (None, None)
    assert (grader["scorerGroupId"], grader["repetitions"]) == (group.pk, 2)
    first, second = grader["group"]["members"]
    assert (first["name"], first["weight"], first["gate"], first["refId"]) == ("Judge", 2, True, judge.pk)
    assert (first["judge"]["metrics"], first["judge"]["codeScorers"]) == (OFF, [])
    assert second["judge"] is None
    assert second["name"].startswith("Deleted scorer")


def test_a_group_that_does_not_resolve(dataset, scorer):
    """Falls back to what else was sent; 404 when nothing was (EVAL-033)."""
    judge = scorer()
    assert resolve(dataset, settings=judge.pk, group=new_id())["primary"]["id"] == judge.pk
    assert resolve(dataset, extras=[judge.pk], group="nope")["primary"]["kind"] == "dataset"
    for group in (new_id(), "nope", 7):
        with pytest.raises(NotFound, match="Scorer group not found"):
            resolve(dataset, group=group)


def test_frozen_means_frozen(dataset, scorer, project):
    """Later edits do not reach a grader that was resolved before."""
    judge = scorer(judge={"acceptanceCriteria": "a"})
    grader = resolve(dataset, settings=judge.pk)
    kept = json.dumps(grader)
    update_judge_scorer(project=project, scorer_id=judge.pk, body={"judge": {"acceptanceCriteria": "b"}})
    assert json.dumps(grader) == kept


def test_a_fixed_number_of_queries(dataset, scorer, django_assert_num_queries):
    """One scorer or five, a group of one or of ten."""
    judges = [scorer(f"j{n}").pk for n in range(10)]
    with django_assert_num_queries(2):
        resolve(dataset, settings=judges[0], extras=judges[1:5])
    members = [{"kind": "judge", "refId": pk, "weight": 1, "gate": False} for pk in judges]
    group = ScorerGroup.objects.create(project=dataset.project, name="g", members=members)
    with django_assert_num_queries(3):
        resolve(dataset, group=group.pk)
