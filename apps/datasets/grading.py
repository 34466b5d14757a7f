"""The grading config a dataset keeps for itself, and its CI settings (DATA-023..028, EVAL-103..105).

Stored under the wire's own keys; what is unset is absent. Null and blank texts mean unset.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.core.api.bodies import is_number
from apps.core.api.errors import APIError
from apps.core.ids import new_id
from apps.core.outbound import OutboundRefused, check_url
from apps.datasets.questions import clean
from apps.tracing.ingest.cleaning import clean_text

TEXT_KEYS = ("acceptanceCriteria", "rejectionCriteria", "evaluationCriteria", "judgePrompt", "judgeModel")
METRIC_KEYS = ("vectorSimilarity", "jaccardSimilarity", "bleuScore", "rougeScore")
GRADING_KEYS = (*TEXT_KEYS[:3], *METRIC_KEYS, "codeScorers", *TEXT_KEYS[3:], "sovereigntyIndex")
THRESHOLD_KEYS = ("rating", *METRIC_KEYS)
_ID_LIMIT = 100
_NAME_LIMIT = 300


@dataclass(frozen=True)
class CISettings:
    """What hosted-style CI runs of a dataset hold to; the defaults are those of a dataset that says nothing."""

    enabled: bool = False
    webhook_url: str | None = None
    pass_rate_threshold: float = 1.0
    fail_fast: bool = False
    expose_test_inputs: bool = True
    thresholds: dict[str, float] = field(default_factory=lambda: {"rating": 7.0})


def apply(grading: dict[str, Any], sent: dict[str, Any]) -> dict[str, Any]:
    """The grading config after the keys that were sent; keys that were not sent stay.

    Raises 400 naming a key of the wrong kind: to take it for unset would silently clear what grades the runs.
    """
    result = dict(grading)
    for key in GRADING_KEYS:
        if key not in sent:
            continue
        value = _usable(key, sent[key], grading)
        if value is None:
            result.pop(key, None)
        else:
            result[key] = value
    return result


def _usable(key: str, value: Any, stored: dict[str, Any]) -> Any:
    if key in TEXT_KEYS:
        return text_or_none(key, value)
    if key in METRIC_KEYS:
        return _metric(value)
    if key == "codeScorers":
        if value is not None and not isinstance(value, list):
            raise APIError("codeScorers must be a list")
        return code_scorers(value, stored.get("codeScorers") or ()) or None
    if value is not None and not isinstance(value, dict):
        raise APIError("sovereigntyIndex must be an object")
    return _sovereignty(value)


def text_or_none(key: str, value: Any) -> str | None:
    """A text as stored, None for null and blank ones; raises 400 naming the key for any other kind of value."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise APIError(f"{key} must be text")
    return clean_text(value) if value.strip() else None


def _metric(value: Any) -> dict[str, Any] | None:
    """A metric that is on; only exactly `"enabled": true` switches it on (DATA-024)."""
    if not isinstance(value, dict) or value.get("enabled") is not True:
        return None
    cleaned = clean(value)
    return {key: item for key, item in cleaned.items() if item is not None}


def _sovereignty(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    found = {key: item for key, item in clean(value).items() if item is not None}
    if "models" in found:
        models = found["models"] if isinstance(found["models"], list) else []
        found["models"] = [model for model in models if isinstance(model, str) and model.strip()]
    return found or None


def code_scorers(value: Any, stored: Sequence[dict[str, Any]] = ()) -> list[dict[str, Any]]:
    """Code scorers as stored: `{ id, name, code, enabled }`; entries without code are dropped (DATA-025).

    A missing id is made, so is one that an earlier entry has taken; a missing name becomes `Code scorer <n>`. An entry
    without id whose code is among the `stored` ones keeps that one's id: the same edit twice is one edit.
    """
    if not isinstance(value, list):
        return []
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    sent = {str(entry.get("id")) for entry in value if isinstance(entry, dict) and entry.get("id")}
    known = [(item["id"], item["code"]) for item in stored if item["id"] not in sent]
    for entry in value:
        if not isinstance(entry, dict):
            continue
        code = entry.get("code")
        if not isinstance(code, str) or not code.strip():
            continue
        identity = entry.get("id")
        if not isinstance(identity, str) or not identity.strip() or len(identity) > _ID_LIMIT:
            identity = next((pk for pk, text in known if text == clean_text(code) and pk not in taken), new_id())
        identity = clean_text(identity)
        if identity in taken:
            identity = new_id()
        taken.add(identity)
        name = entry.get("name")
        named = isinstance(name, str) and name.strip()
        found.append(
            {
                "id": identity,
                "name": clean_text(str(name))[:_NAME_LIMIT] if named else f"Code scorer {len(found) + 1}",
                "code": clean_text(code),
                "enabled": entry.get("enabled") is not False,
            }
        )
    return found


def ci(value: Any) -> dict[str, Any] | None:
    """The `ci` of a body as stored, None when unset; raises 400 naming the key that is not usable (DATA-028).

    A gate that silently ignored a threshold would pass what it should stop, so nothing here is guessed.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise APIError("ci must be an object")
    found: dict[str, Any] = {}
    for key in ("enabled", "failFast", "exposeTestInputs"):
        if value.get(key) is not None:
            if not isinstance(value[key], bool):
                raise APIError(f"ci.{key} must be true or false")
            found[key] = value[key]
    if value.get("passRateThreshold") is not None:
        found["passRateThreshold"] = _number(value["passRateThreshold"], "ci.passRateThreshold", 0, 1)
    url = value.get("webhookUrl")
    if url is not None and url != "":
        if not isinstance(url, str):
            raise APIError("ci.webhookUrl must be text")
        try:
            check_url(url)
        except OutboundRefused as error:
            raise APIError(f"ci.webhookUrl is not usable: {error}") from None
        found["webhookUrl"] = url
    if value.get("thresholds") is not None:
        found["thresholds"] = _thresholds(value["thresholds"])
    return found or None


def _thresholds(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise APIError("ci.thresholds must be an object")
    found = {}
    for key, minimum in value.items():
        if key not in THRESHOLD_KEYS:
            raise APIError(f"ci.thresholds knows only {', '.join(THRESHOLD_KEYS)}")
        if minimum is not None:
            found[key] = _number(minimum, f"ci.thresholds.{key}", 0, 10 if key == "rating" else 1)
    return found


def _number(value: Any, name: str, low: float, high: float) -> int | float:
    if not is_number(value) or not low <= value <= high:
        raise APIError(f"{name} must be a number from {low} to {high}")
    number: int | float = value
    return number


def ci_settings(stored: dict[str, Any] | None) -> CISettings:
    """A dataset's CI settings with the defaults for what it does not say."""
    stored = stored or {}
    thresholds = stored.get("thresholds")
    defaults = CISettings()
    return CISettings(
        enabled=stored.get("enabled", defaults.enabled),
        webhook_url=stored.get("webhookUrl"),
        pass_rate_threshold=float(stored.get("passRateThreshold", defaults.pass_rate_threshold)),
        fail_fast=stored.get("failFast", defaults.fail_fast),
        expose_test_inputs=stored.get("exposeTestInputs", defaults.expose_test_inputs),
        thresholds={key: float(item) for key, item in thresholds.items()} if thresholds else defaults.thresholds,
    )


def repetitions(value: Any) -> int:
    """`numberOfRequests`: at least 1; anything that is no whole number is 1 (DATA-004)."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return 1
    if isinstance(value, float) and not value.is_integer():
        return 1
    return int(min(max(value, 1), 2**31 - 1))
