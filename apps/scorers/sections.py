"""The three parts of a judge scorer, `judge`, `offline` and `online`, as they are sent and as they are stored.

Each function gives the whole section after the keys that were sent; keys that were not sent stay, unknown keys are
ignored. What could change a verdict unseen (a threshold nobody checks, a rate that is no rate) is a 400.
"""

from __future__ import annotations

from typing import Any

from apps.core.api.bodies import is_number
from apps.core.api.errors import APIError
from apps.datasets.grading import code_scorers, repetitions
from apps.projects.models import Project
from apps.tracing.ingest.cleaning import clean_text
from apps.tracing.models import Agent

TEXT_KEYS = ("acceptanceCriteria", "rejectionCriteria", "evaluationCriteria", "judgePrompt", "judgeModel")
TOOL_CONTEXTS = ("none", "simple", "detailed")
METRICS = ("vectorSimilarity", "jaccardSimilarity", "bleuScore", "rougeScore")
SEVERITIES = ("low", "medium", "high", "critical")
# What a threshold rule may be about, also by the names the documents use for it (source 1:2172-2174).
THRESHOLD_METRICS = {
    "rating": "rating",
    "judge": "rating",
    "cosine": "vectorSimilarity",
    "jaccard": "jaccardSimilarity",
    "bleu": "bleuScore",
    "rouge": "rougeScore",
    **{metric: metric for metric in METRICS},
}
TEXT_LIMIT = 100_000
_MAX_LIST = 200

JUDGE_DEFAULTS: dict[str, Any] = {**dict.fromkeys(TEXT_KEYS), "toolContext": "simple", "requiresExpected": False}
OFFLINE_DEFAULTS: dict[str, Any] = {
    "numberOfRequests": 1,
    "isDefault": False,
    "status": "published",
    **{metric: {"enabled": False} for metric in METRICS},
    "sovereigntyIndex": {"enabled": False, "models": []},
    "thresholds": {},
    "codeScorers": [],
}
ONLINE_DEFAULTS: dict[str, Any] = {
    "enabled": False,
    "sampleRate": 0.1,
    "scope": "trace",
    "alertThreshold": 5,
    "severity": "medium",
    "idleSeconds": 120,
    "scopeMode": "all",
    "agentIds": [],
}


def judge(stored: dict[str, Any], sent: Any) -> dict[str, Any]:
    """The rubric: three criteria, prompt and model (null = the server's), tool context, needs-a-reference."""
    sent = _section(sent, "judge")
    result = {key: stored.get(key, default) for key, default in JUDGE_DEFAULTS.items()}
    for key in TEXT_KEYS:
        if key in sent:
            result[key] = text_or_none(sent[key], key)
    if sent.get("toolContext", result["toolContext"]) is None:
        result["toolContext"] = "simple"
    elif "toolContext" in sent:
        result["toolContext"] = _one_of(sent["toolContext"], TOOL_CONTEXTS, "toolContext")
    if "requiresExpected" in sent:
        result["requiresExpected"] = _boolean(sent["requiresExpected"], "requiresExpected", default=False)
    return result


def offline(stored: dict[str, Any], sent: Any) -> dict[str, Any]:
    """How dataset runs grade: repetitions, similarity metrics, thresholds, code scorers, models to compare."""
    sent = _section(sent, "offline")
    result = {key: stored.get(key, default) for key, default in OFFLINE_DEFAULTS.items()}
    if "numberOfRequests" in sent:
        result["numberOfRequests"] = repetitions(sent["numberOfRequests"])
    if "isDefault" in sent:
        result["isDefault"] = _boolean(sent["isDefault"], "isDefault", default=False)
    if "status" in sent:
        status = sent["status"]
        if status is not None and (not isinstance(status, str) or not 0 < len(status) <= 20):
            raise APIError("status must be a text of at most 20 characters")
        result["status"] = clean_text(status) if status else "published"
    for key in METRICS:
        if key in sent:
            result[key] = _metric(sent[key], key)
    if "sovereigntyIndex" in sent:
        result["sovereigntyIndex"] = _sovereignty(sent["sovereigntyIndex"])
    if "thresholds" in sent:
        result["thresholds"] = thresholds(sent["thresholds"])
    if "codeScorers" in sent:
        if sent["codeScorers"] is not None and not isinstance(sent["codeScorers"], list):
            raise APIError("codeScorers must be a list")
        result["codeScorers"] = code_scorers(sent["codeScorers"], result["codeScorers"])
    return result


def online(project: Project, stored: dict[str, Any] | None, sent: dict[str, Any]) -> dict[str, Any]:
    """A live profile: the stored one, or the defaults, with what was sent."""
    base = {**ONLINE_DEFAULTS, **(stored or {})}
    result = {key: base[key] for key in ONLINE_DEFAULTS}
    if "enabled" in sent:
        result["enabled"] = _boolean(sent["enabled"], "enabled", default=base["enabled"])
    if "sampleRate" in sent:
        rate = sent["sampleRate"]
        if not is_number(rate) or not 0 <= rate <= 1:
            raise APIError("sampleRate must be a number between 0 and 1")
        result["sampleRate"] = rate
    if "scope" in sent:
        result["scope"] = _one_of(sent["scope"], ("trace", "session"), "scope")
    if "alertThreshold" in sent:
        threshold = sent["alertThreshold"]
        if threshold is not None and (not is_number(threshold) or not 0 <= threshold <= 10):
            raise APIError("alertThreshold must be null or a number between 0 and 10")
        result["alertThreshold"] = threshold
    if "severity" in sent:
        result["severity"] = _one_of(sent["severity"], SEVERITIES, "severity")
    if "idleSeconds" in sent:
        seconds = sent["idleSeconds"]
        if not is_number(seconds) or not 1 <= seconds <= 10**9 or int(seconds) != seconds:
            raise APIError("idleSeconds must be a whole number of at least 1")
        result["idleSeconds"] = int(seconds)
    if "scopeMode" in sent:
        result["scopeMode"] = _one_of(sent["scopeMode"], ("all", "selected"), "scopeMode")
    if "agentIds" in sent:
        result["agentIds"] = agent_ids(project, sent["agentIds"])
    return result


def agent_ids(project: Project, value: Any) -> list[str]:
    """Ids of the agents that a list of ids or names means (SCORE-009).

    A name nothing has reported under yet stays as it is: the scorer may be set up before its agent runs first.
    """
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > _MAX_LIST or not all(isinstance(item, str) for item in value):
        raise APIError(f"agentIds must be a list of at most {_MAX_LIST} agent ids or names")
    wanted = [clean_text(item).strip()[:500] for item in value if item.strip()]
    if not wanted:
        return []
    agents = Agent.objects.filter(project=project)
    known = set(agents.filter(pk__in=[item for item in wanted if len(item) == 21]).values_list("pk", flat=True))
    by_name: dict[str, list[str]] = {}
    for pk, name in agents.filter(name__in=[item for item in wanted if item not in known]).values_list("pk", "name"):
        by_name.setdefault(name, []).append(pk)
    found: dict[str, None] = {}
    for item in wanted:
        for pk in [item] if item in known else sorted(by_name.get(item, [item])):
            found[pk] = None
    return list(found)


def thresholds(value: Any) -> dict[str, float]:
    """Minimum per metric, from `{ metric: minimum }` or `[{ metric, threshold }]`; raises 400 for an unknown metric."""
    if value is None:
        return {}
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
        pairs = [(item.get("metric"), item.get("threshold")) for item in value]
    else:
        raise APIError("thresholds must be an object")
    found: dict[str, float] = {}
    for name, minimum in pairs:
        metric = THRESHOLD_METRICS.get(name) if isinstance(name, str) else None
        if metric is None:
            raise APIError(f"thresholds knows only rating, {', '.join(METRICS)}")
        if minimum is None:
            continue
        highest = 10 if metric == "rating" else 1
        if not is_number(minimum) or not 0 <= minimum <= highest:
            raise APIError(f"thresholds.{metric} must be a number between 0 and {highest}")
        found[metric] = minimum
    return found


def name_of(value: Any) -> str:
    """A scorer's or group's name; raises 400 when it is missing, blank or too long."""
    if not isinstance(value, str) or not value.strip():
        raise APIError("name is required")
    name = clean_text(value).strip()
    if len(name) > 300:
        raise APIError("name must be at most 300 characters")
    return name


def text_or_none(value: Any, field: str) -> str | None:
    """A text as it was sent, None for null or blank; raises 400 for anything else."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise APIError(f"{field} must be a string or null")
    if len(value) > TEXT_LIMIT:
        raise APIError(f"{field} must be at most {TEXT_LIMIT} characters")
    return clean_text(value) if value.strip() else None


def _section(value: Any, name: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise APIError(f"{name} must be an object")
    return value


def _boolean(value: Any, field: str, *, default: bool) -> bool:
    if value is None:
        return default
    if not isinstance(value, bool):
        raise APIError(f"{field} must be true or false")
    return value


def _one_of(value: Any, allowed: tuple[str, ...], field: str) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise APIError(f"{field} must be one of: {', '.join(allowed)}")
    return value


def _metric(value: Any, field: str) -> dict[str, Any]:
    """A similarity metric; only exactly `"enabled": true` switches it on (DATA-024)."""
    if value is None:
        return {"enabled": False}
    if not isinstance(value, dict):
        raise APIError(f"{field} must be an object")
    result: dict[str, Any] = {"enabled": value.get("enabled") is True}
    model = value.get("model")
    if field == "vectorSimilarity" and isinstance(model, str) and model.strip():
        result["model"] = clean_text(model).strip()[:200]
    return result


def _sovereignty(value: Any) -> dict[str, Any]:
    if value is None:
        return {"enabled": False, "models": []}
    if not isinstance(value, dict):
        raise APIError("sovereigntyIndex must be an object")
    models = value.get("models") or []
    if not isinstance(models, list) or len(models) > _MAX_LIST or not all(isinstance(item, str) for item in models):
        raise APIError("sovereigntyIndex.models must be a list of model ids")
    wanted = dict.fromkeys(clean_text(item).strip() for item in models if item.strip())
    return {"enabled": value.get("enabled") is True, "models": list(wanted)}
