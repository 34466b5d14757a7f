"""Payload caps: what is longer than AGENTX_INGEST_MAX_FIELD_CHARS is stored cut, with a marker, never refused.

The forms (source 1:1774-1776): a text is cut and ends in ` [agentx.truncated]`; other input and output JSON becomes its cut
serialized text with that ending; of metadata the largest values are cut first, so that small keys survive, and the
object gains `"agentx.truncated": true`; tool calls keep every entry's `name` and `success` in order, and entries that
lost something carry `"agentx.truncated": true`.
"""

from __future__ import annotations

from typing import Any

from apps.tracing.ingest.cleaning import clean_value, dump, load

MARKER = "agentx.truncated"
ENDING = f" [{MARKER}]"
MAX_TOOL_CALLS = 50
# Members of metadata that mean something to readers (source 1:2591-2593, 1:2666-2667, 1:2771, 1:2921-2925).
KNOWN_KEYS = frozenset(
    {
        "promptName",
        "version",
        "systemPrompt",
        "system",
        "instructions",
        "retrievalContext",
        "tools",
        "evalRunId",
        "simulated",
        "kind",
        "doc_count",
        "operation",
        "streaming",
        "timeToFirstTokenMs",
    }
)
# Members of a tool call that a cut entry keeps whatever their size; name is bounded on its own.
_NAME_CHARS = 200
# Metadata this small is not cut down further, however low the limit: a marked member or two.
_LEAST_CHARS = 100


def _text(value: Any) -> str:
    return dump(value).decode("utf-8")


def cut_text(text: str, limit: int) -> str:
    """At most `limit` characters of a text, with the ending that says so."""
    return text[:limit] + ENDING


def cut_value(serialized: str, limit: int) -> str:
    """`input` or `output` longer than the limit, as JSON text."""
    value = clean_value(load(serialized)) if serialized.startswith('"') else serialized
    return _text(cut_text(value, limit))


def _cut_member(value: Any, limit: int) -> str:
    return cut_text(value if isinstance(value, str) else _text(value), limit)


def _cut_to(value: Any, size: int) -> str:
    """A metadata value as a cut text whose JSON form, with its escapes, is at most `size` characters (or bare)."""
    text = value if isinstance(value, str) else _text(value)
    room = max(0, size - len(ENDING) - 2)
    kept = text[:room]
    while kept and (length := len(_text(kept)) - 2) > room:
        kept = kept[: min(len(kept) - 1, len(kept) * room // length)]
    return kept + ENDING


def cut_metadata(serialized: str, limit: int) -> str:
    """Metadata longer than the limit, as JSON text of an object; the largest values are cut first."""
    value = clean_value(load(serialized))
    sizes = {key: len(_text(item)) for key, item in value.items()}
    overhead = sum(len(_text(key)) + 2 for key in value) + 2
    order = sorted(sizes, key=lambda key: (sizes[key], key))
    budget = max(0, limit - overhead)
    kept = len(order)
    result = dict(value)
    # The smallest values stay whole while an equal share of what is left for the others is at least their size; what
    # is no longer than the ending would only grow by it.
    for position, key in enumerate(order):
        share = budget // (kept - position)
        if sizes[key] <= max(share, len(ENDING) + 2):
            budget = max(0, budget - sizes[key])
        else:
            result[key] = _cut_to(value[key], share)
            budget -= share
    lengths = {key: len(_text(key)) + len(_text(item)) + 2 for key, item in result.items()}
    used = 2 + sum(lengths.values())
    most = max(limit, _LEAST_CHARS)
    if used > most:
        # More members than fit, however short their values: the largest go, of equal ones the last; what readers
        # look for goes last of all.
        places = {key: place for place, key in enumerate(result)}
        for key in sorted(lengths, key=lambda key: (key not in KNOWN_KEYS, lengths[key], places[key]), reverse=True):
            if used <= most:
                break
            used -= lengths[key]
            del result[key]
    result[MARKER] = True
    return _text(result)


def cut_tool_calls(serialized: str, limit: int) -> str:
    """Tool calls longer than the limit, as JSON text of a list of the same length."""
    calls = clean_value(load(serialized))
    total = len(serialized)
    # One allowance for every long member, lowered until the list fits; names and success always survive.
    allowance = max(16, limit // max(1, len(calls)))
    result = calls
    while total > limit:
        result = [_cut_call(call, allowance) for call in calls]
        total = len(_text(result))
        if allowance <= 16:
            break
        allowance = max(16, allowance // 2)
    return _text(result)


def _cut_call(call: dict[str, Any], allowance: int) -> dict[str, Any]:
    lost = False
    result: dict[str, Any] = {}
    for key, value in call.items():
        if key == "success":
            result[key] = value
        elif key == "name":
            result[key] = value[:_NAME_CHARS] if isinstance(value, str) else value
        elif len(_text(value)) > allowance:
            result[key] = _cut_member(value, max(0, allowance - len(ENDING)))
            lost = True
        else:
            result[key] = value
    if lost:
        result[MARKER] = True
    return result
