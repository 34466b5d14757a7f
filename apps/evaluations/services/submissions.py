"""One result of a batch as it came over the wire: what is taken from it, in which spellings, and when it is dropped."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from apps.core.api.bodies import is_number
from apps.core.ids import is_id
from apps.datasets.questions import clean

KEY_LIMIT = 500
CASE_ID_LIMIT = 300
METADATA_BYTES = 4_000
TRACE_BYTES = 20_000
# These stay when metadata is too large: the model groups results, the other says where an output came from.
_KEPT_FIRST = ("model", "reusedFromRun")
_CASE = re.compile(r"case-(\d{1,9})(?:$|::)")
_INTEGER = re.compile(r"\s*\d{1,9}\s*")


@dataclass(frozen=True, slots=True)
class Submission:
    """The usable content of one result (source 1:1429-1462), cleaned for the store."""

    idempotency_key: str
    case_id: str
    question_index: int | None
    run_number: int
    input: dict[str, Any] | None
    output: dict[str, Any] | None
    error: dict[str, Any] | None
    latency_ms: float | None
    input_tokens: int | None
    output_tokens: int | None
    trace_id: str | None
    retrieval_context: str | list[str] | None
    metadata: dict[str, Any] | None
    observable_trace: dict[str, Any] | None
    is_variant: bool
    variant_text: str | None

    def columns(self) -> dict[str, Any]:
        """The columns of the result row."""
        return {name: getattr(self, name) for name in Submission.__slots__}


def parse(value: Any) -> Submission | None:
    """What a result says; None when it counts as failed validation.

    Dropped are results without a usable `idempotencyKey`, and those with neither an error nor a non-blank answer
    (EVAL-063). Tolerated beside the published client's keys: `caseIndex`, a top-level `query`, a plain text `output`
    (EVAL-048). Everything else that is unusable counts as absent.
    """
    if not isinstance(value, dict):
        return None
    key = value.get("idempotencyKey")
    if not isinstance(key, str) or not key.strip() or len(key) > KEY_LIMIT or clean(key) != key:
        return None
    error = _error(value.get("error"))
    output = _output(value.get("output"))
    text = output.get("text") if output else None
    if error is None and not (isinstance(text, str) and text.strip()):
        return None
    case_id = value.get("caseId")
    case_id = clean(case_id)[:CASE_ID_LIMIT] if isinstance(case_id, str) and case_id.strip() else None
    index = _index(value.get("questionIndex"))
    if index is None:
        index = _index(value.get("caseIndex"))
    if index is None and case_id and (named := _CASE.match(case_id)):
        index = int(named.group(1))
    timings = value.get("timings")
    timings = timings if isinstance(timings, dict) else {}
    variant = value.get("isSmokeTestVariant") is True
    variant_text = value.get("smokeTestVariantText")
    return Submission(
        idempotency_key=key,
        case_id=case_id or f"case-{index if index is not None else 0}",
        question_index=index,
        run_number=max(_index(value.get("runNumber")) or 1, 1),
        input=_input(value),
        output=output,
        error=error,
        latency_ms=_number(timings.get("latencyMs")),
        input_tokens=_count(timings.get("inputTokens")),
        output_tokens=_count(timings.get("outputTokens")),
        trace_id=_trace_id(value.get("traceId")),
        retrieval_context=_context(value.get("retrievalContext")),
        metadata=cut_object(value.get("metadata"), METADATA_BYTES),
        observable_trace=_events(value.get("observableTrace")),
        is_variant=variant,
        variant_text=clean(variant_text) if isinstance(variant_text, str) else None,
    )


def cut_object(value: Any, limit: int) -> dict[str, Any] | None:
    """An object of at most `limit` bytes of JSON: trailing keys are dropped, the ones that name model and source last."""
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = clean(value)
    if _size(found) <= limit:
        return found
    kept: dict[str, Any] = {}
    used = 2
    for key in [*(k for k in _KEPT_FIRST if k in found), *(k for k in found if k not in _KEPT_FIRST)]:
        used += _size(key) + _size(found[key]) + 2
        if used > limit:
            break
        kept[key] = found[key]
    return kept


def _events(value: Any) -> dict[str, Any] | None:
    """`{ events: [...] }` of at most TRACE_BYTES: trailing events are dropped."""
    if not isinstance(value, dict):
        return None
    found: dict[str, Any] = clean(value)
    if _size(found) <= TRACE_BYTES:
        return found
    events = found.get("events")
    kept: list[Any] = []
    used = len('{"events":[]}')
    for event in events if isinstance(events, list) else []:
        used += _size(event) + 1
        if used > TRACE_BYTES:
            break
        kept.append(event)
    return {"events": kept}


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def _error(value: Any) -> dict[str, Any] | None:
    """An error as sent; a plain text becomes its message. Null, false and blank texts are no error."""
    if isinstance(value, dict):
        found: dict[str, Any] = clean(value)
        return found or {"type": "Exception", "message": "The agent failed without saying why"}
    if isinstance(value, str) and value.strip():
        return {"type": "Exception", "message": clean(value)}
    if value is True:
        return {"type": "Exception", "message": "The agent failed without saying why"}
    return None


def _output(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str):
        return {"text": clean(value)}
    return clean(value) if isinstance(value, dict) else None


def _input(value: dict[str, Any]) -> dict[str, Any] | None:
    given = value.get("input")
    if isinstance(given, dict):
        found: dict[str, Any] = clean(given)
        return found
    for text in (given, value.get("query")):
        if isinstance(text, str):
            return {"query": clean(text)}
    return None


def _index(value: Any) -> int | None:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        return int(value)
    if is_number(value) and 0 <= value < 10**9 and float(value).is_integer():
        return int(value)
    return None


def _number(value: Any) -> float | None:
    return float(value) if is_number(value) and value >= 0 else None


def _count(value: Any) -> int | None:
    return int(value) if is_number(value) and 0 <= value < 2**62 else None


def _trace_id(value: Any) -> str | None:
    return value if isinstance(value, str) and is_id(value) else None


def _context(value: Any) -> str | list[str] | None:
    if isinstance(value, str):
        return clean(value) if value.strip() else None
    if isinstance(value, list):
        return [clean(item) if isinstance(item, str) else json.dumps(clean(item)) for item in value if item is not None]
    return None
