"""Who grades a run: the request's choice turned into one frozen grader (EVAL-017..021, EVAL-032..034, EVAL-106..108).

The frozen grader is JSON that a run keeps, so that editing or deleting a scorer later changes nothing about the run:

    {
      "primary": MEMBER,                  # whose rating fills the result's `rating`
      "extras": [MEMBER, ...],            # up to four more judges, kind "judge"
      "group": null | {"id", "name", "members": [{"kind", "refId", "name", "weight", "gate", "judge": MEMBER | null}]},
      "repetitions": 1,                   # runs of each question
      "comparisonModels": [],             # models each case runs once with
      "thresholds": {"rating": 7},        # minimum per metric of the grading config, {} when it has none
      "evaluationSettingsId": id | null, "additionalScorerIds": [id] | null, "scorerGroupId": id | null
    }

    MEMBER = {"id", "name", "kind": "judge" | "dataset" | "group", "acceptanceCriteria", "rejectionCriteria",
              "evaluationCriteria", "judgePrompt", "judgeModel", "toolContext", "requiresExpected",
              "metrics": {"vector": bool, "vectorModel": id | null, "jaccard": bool, "bleu": bool, "rouge": bool},
              "codeScorers": [{"id", "name", "code", "enabled"}]}

`judgeModel` is always a model id: a scorer that names none gets the default of that moment. With a group the primary
names the group and holds neither criteria nor metrics nor code scorers; only the members judge. A member that was
deleted stays listed with `judge` null and the name it can still be given, so that it shows as not scored.
"""

from __future__ import annotations

from typing import Any

from apps.core.api.errors import APIError, NotFound
from apps.datasets.models import Dataset
from apps.llm.selectors import default_judge_model
from apps.projects.models import Project
from apps.scorers import selectors, wire
from apps.scorers.models import JudgeScorer, ScorerGroup
from apps.scorers.services import references

MAX_EXTRAS = 4
_NO_METRICS: dict[str, Any] = {"vector": False, "vectorModel": None, "jaccard": False, "bleu": False, "rouge": False}


def resolve_grader(
    project: Project,
    *,
    evaluation_settings_id: Any,
    additional_scorer_ids: Any,
    scorer_group_id: Any,
    dataset: Dataset,
) -> dict[str, Any]:
    """The frozen grader of a run over `dataset`, shaped as this module says.

    A group wins over everything else; one that does not resolve falls back to the other fields. Without any of them
    the dataset's own grading applies. Raises 400 for more than four or unknown extras, 404 for unknown settings, and
    404 for an unknown group when nothing else was sent.
    """
    default_model = default_judge_model()
    group = selectors.get_group(project, scorer_group_id) if scorer_group_id else None
    if group is not None:
        return _of_group(project, group, dataset, default_model)
    extra_ids = _extra_ids(additional_scorer_ids)
    wanted = [*extra_ids, *([evaluation_settings_id] if isinstance(evaluation_settings_id, str) else [])]
    scorers = selectors.judge_scorers_by_id(project, wanted)
    for item in extra_ids:
        if item not in scorers:
            raise APIError(f"Unknown scorer: {item[:100]}")
    extras = [judge_member(scorers[item], default_model) for item in extra_ids if item != evaluation_settings_id]
    ids = [item["id"] for item in extras] or None
    if evaluation_settings_id:
        scorer = scorers.get(evaluation_settings_id) if isinstance(evaluation_settings_id, str) else None
        if scorer is None:
            raise NotFound("Evaluation settings not found")
        profile = wire.offline(scorer)
        return {
            "primary": judge_member(scorer, default_model),
            "extras": extras,
            "group": None,
            "repetitions": profile["numberOfRequests"],
            "comparisonModels": _models(profile["sovereigntyIndex"]),
            "thresholds": profile["thresholds"],
            "evaluationSettingsId": scorer.pk,
            "additionalScorerIds": ids,
            "scorerGroupId": None,
        }
    if scorer_group_id and not extras:
        raise NotFound("Scorer group not found")
    return {
        "primary": dataset_member(dataset, default_model),
        "extras": extras,
        "group": None,
        **_of_dataset(dataset),
        "evaluationSettingsId": None,
        "additionalScorerIds": ids,
        "scorerGroupId": None,
    }


def judge_member(scorer: JudgeScorer, default_model: str | None = None) -> dict[str, Any]:
    """A judge scorer frozen as a MEMBER, with its metrics and code scorers."""
    profile = wire.offline(scorer)
    return {
        "id": scorer.pk,
        "name": scorer.name,
        "kind": "judge",
        **_rubric(wire.judge(scorer), default_model),
        "metrics": _metrics(profile),
        "codeScorers": profile["codeScorers"],
    }


def dataset_member(dataset: Dataset, default_model: str | None = None) -> dict[str, Any]:
    """A dataset's own grading frozen as a MEMBER."""
    grading = dataset.grading or {}
    return {
        "id": dataset.grading_id,
        "name": dataset.name,
        "kind": "dataset",
        **_rubric(grading, default_model),
        "metrics": _metrics(grading),
        "codeScorers": grading.get("codeScorers") or [],
    }


def group_snapshot(project: Project, group: ScorerGroup, default_model: str | None = None) -> dict[str, Any]:
    """A group with its members as they are now; a member that is gone has `judge` null."""
    by_id = selectors.judge_scorers_by_id(project, [m["refId"] for m in group.members if m["kind"] == "judge"])
    names = references.names_of(project, [m for m in group.members if m["kind"] != "judge"])
    members = []
    for member in group.members:
        judge = None
        name = names.get((member["kind"], member["refId"]))
        if member["kind"] == "judge" and member["refId"] in by_id:
            scorer = by_id[member["refId"]]
            name = scorer.name
            # Inside a group a judge gives its verdict only (SCORE-167).
            judge = {**judge_member(scorer, default_model), "metrics": dict(_NO_METRICS), "codeScorers": []}
        members.append(
            {
                "kind": member["kind"],
                "refId": member["refId"],
                "name": name or f"Deleted scorer {member['refId'][-6:]}",
                "weight": member["weight"],
                "gate": member["gate"],
                "judge": judge,
            }
        )
    return {"id": group.pk, "name": group.name, "members": members}


def _of_group(project: Project, group: ScorerGroup, dataset: Dataset, default_model: str) -> dict[str, Any]:
    return {
        "primary": {
            "id": group.pk,
            "name": group.name,
            "kind": "group",
            **_rubric({}, default_model),
            "metrics": dict(_NO_METRICS),
            "codeScorers": [],
        },
        "extras": [],
        "group": group_snapshot(project, group, default_model),
        **_of_dataset(dataset),
        "evaluationSettingsId": None,
        "additionalScorerIds": None,
        "scorerGroupId": group.pk,
    }


def _of_dataset(dataset: Dataset) -> dict[str, Any]:
    """What a run takes from the dataset unless a scorer was chosen, as the published runner does too."""
    return {
        "repetitions": dataset.number_of_requests,
        "comparisonModels": _models((dataset.grading or {}).get("sovereigntyIndex")),
        "thresholds": {},
    }


def _rubric(stored: dict[str, Any], default_model: str | None) -> dict[str, Any]:
    return {
        "acceptanceCriteria": stored.get("acceptanceCriteria"),
        "rejectionCriteria": stored.get("rejectionCriteria"),
        "evaluationCriteria": stored.get("evaluationCriteria"),
        "judgePrompt": stored.get("judgePrompt"),
        "judgeModel": stored.get("judgeModel") or default_model or default_judge_model(),
        "toolContext": stored.get("toolContext") or "simple",
        "requiresExpected": bool(stored.get("requiresExpected")),
    }


def _metrics(stored: dict[str, Any]) -> dict[str, Any]:
    def on(key: str) -> bool:
        value = stored.get(key)
        return isinstance(value, dict) and value.get("enabled") is True

    return {
        "vector": on("vectorSimilarity"),
        "vectorModel": stored["vectorSimilarity"].get("model") if on("vectorSimilarity") else None,
        "jaccard": on("jaccardSimilarity"),
        "bleu": on("bleuScore"),
        "rouge": on("rougeScore"),
    }


def _models(value: Any) -> list[str]:
    return list(value.get("models") or []) if isinstance(value, dict) and value.get("enabled") is True else []


def _extra_ids(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise APIError("additionalScorerIds must be a list of scorer ids")
    if len(value) > MAX_EXTRAS:
        raise APIError(f"additionalScorerIds must not exceed {MAX_EXTRAS}")
    return list(dict.fromkeys(value))
