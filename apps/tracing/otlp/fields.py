"""Reading the fields of one span out of its attributes: the best source of each, and what is left over."""

from __future__ import annotations

from typing import Any

from apps.tracing.ingest.kinds import fold_kind
from apps.tracing.otlp.conventions import ANONYMOUS_SCOPES, ENCODED_PREFIXES, KIND_SLOTS, PLAIN, TARGETS, USAGE_NAMES
from apps.tracing.otlp.spans import OtelEvent, OtelSource, OtelSpan, finite
from apps.tracing.otlp.values import payload, to_json, unwrapped

# slot -> (precedence, attribute, value)
Found = dict[str, tuple[int, str, Any]]

CACHE_MARK = "agentx.cacheTokensAdded"
_MAX_COUNT = 1 << 53
_NULL = b"null"
_SLOT_OF = TARGETS.get
_AI_SDK_KINDS = {"ai.toolCall": "tool", "ai.embed": "embedding", "ai.embedMany": "embedding"}
_ANONYMOUS_PREFIXES = tuple(f"{name}." for name in ANONYMOUS_SCOPES)


def sort_out(attributes: dict[str, Any]) -> tuple[Found, dict[str, Any]]:
    """The best source of each slot, and all attributes that fill none."""
    found: Found = {}
    rest: dict[str, Any] = {}
    for name, value in attributes.items():
        target = _SLOT_OF(name)
        if target is None:
            rest[name] = value
            continue
        if value is None or value == "":
            continue
        slot, rank = target
        held = found.get(slot)
        if held is None:
            found[slot] = (rank, name, value)
        elif rank < held[0]:
            if held[2] != value:
                rest[held[1]] = held[2]
            found[slot] = (rank, name, value)
        elif held[2] != value:
            rest[name] = value
    return found, rest


def as_text(value: Any) -> str | None:
    """An attribute as a name or id; None when blank or structured."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return str(value)


def take_text(found: Found, slot: str, rest: dict[str, Any]) -> str | None:
    """The slot's value as text; a value that is none goes to the rest."""
    held = found.get(slot)
    if held is None:
        return None
    value = held[2]
    if held[1].startswith("mlflow."):
        value = unwrapped(value)
    text = as_text(value)
    if text is None:
        rest[held[1]] = held[2]
    return text


def take_count(found: Found, slot: str, rest: dict[str, Any]) -> float | None:
    """The slot's value as a finite number; a value that is none goes to the rest."""
    held = found.get(slot)
    if held is None:
        return None
    number = finite(held[2])
    if number is None or number > _MAX_COUNT:
        rest[held[1]] = held[2]
        return None
    return number


def take_payload(found: Found, slot: str, type_slot: str) -> bytes | None:
    """The slot's value as JSON text; None when it is absent or null."""
    held = found.get(slot)
    if held is None:
        return None
    name, value = held[1], held[2]
    encoded = name.startswith(ENCODED_PREFIXES) and name not in PLAIN
    if name.endswith("put.value"):
        mime = found.get(type_slot)
        if mime is not None:
            encoded = "json" in str(mime[2])
            if not encoded and isinstance(value, str):
                return to_json(value)
    raw = payload(value, encoded=encoded)
    return None if raw == _NULL else raw


def _usage_counts(usage: dict[str, Any]) -> list[float | None]:
    """Input, output, cache read and cache write from a JSON object of counts (MLflow, Langfuse)."""

    def first(names: tuple[str, ...]) -> float | None:
        for name in names:
            number = finite(usage.get(name))
            if number is not None:
                return number
        return None

    return [first(names) for names in USAGE_NAMES]


def stated_kind(found: Found, rest: dict[str, Any], has_tool_name: bool) -> str | None:
    """The stated kind by the first source whose word is known (source 1:8910-8916); None leaves it to the ladder."""
    kind: str | None = None
    for slot in KIND_SLOTS:
        held = found.get(slot)
        if held is None:
            continue
        word = unwrapped(held[2])
        stated = None
        if isinstance(word, str) and kind is None:
            stated = fold_kind(word) if slot != "kind:5" else _AI_SDK_KINDS.get(word)
        if stated is None:
            rest[held[1]] = word
        else:
            kind = stated
    if kind is None and has_tool_name:
        return "tool"
    return kind


def _exception_text(events: list[OtelEvent]) -> str | None:
    for event in events:
        if event.name == "exception":
            for name in ("exception.message", "exception.type"):
                text = as_text(event.attributes.get(name))
                if text:
                    return text
            return "exception"
    return None


def error_text(span: OtelSpan) -> str | None:
    """The failure text: of the status when it is ERROR, else of an exception event, unless the status says OK."""
    if span.settled_ok:
        return None
    if not span.failed:
        return _exception_text(span.events) if span.events else None
    return (
        span.status_message.strip()
        or _exception_text(span.events)
        or as_text(span.attributes.get("error.message"))
        or as_text(span.attributes.get("error.type"))
        or "error"
    )


def framework_label(found: Found, source: OtelSource) -> str:
    """The platform label by its ladder (source 1:8659-8662)."""
    held = found.get("provider")
    if held is not None:
        label = as_text(held[2])
        if label:
            return label
    return source_label(source)


def source_label(source: OtelSource) -> str:
    """The label of spans that name no provider: scope, else service, else `otel`. A scope of the tracing library
    itself and the SDK's placeholder for a missing service name say nothing (source 1:6356-6359)."""
    if source.label is None:
        scope = source.scope_name.strip()
        service = as_text(source.resource.get("service.name"))
        if scope and scope not in ANONYMOUS_SCOPES and not scope.startswith(_ANONYMOUS_PREFIXES):
            source.label = scope
        elif service and not service.startswith("unknown_service"):
            source.label = service
        else:
            source.label = "otel"
    return source.label


def token_counts(found: Found, rest: dict[str, Any]) -> tuple[float | None, float | None, float | None, float | None]:
    """Input, output, cache read and cache write. By our contract the cache counts are part of the input; a producer
    whose input is smaller than they are counts them beside it, so they are added and the row says so."""
    input_tokens = take_count(found, "input_tokens", rest)
    output_tokens = take_count(found, "output_tokens", rest)
    cache_read = take_count(found, "cache_read", rest)
    cache_write = take_count(found, "cache_write", rest)
    held = found.get("usage")
    if held is not None:
        rest[held[1]] = usage = unwrapped(held[2])
        if input_tokens is None and output_tokens is None and isinstance(usage, dict):
            input_tokens, output_tokens, read, write = _usage_counts(usage)
            cache_read = read if cache_read is None else cache_read
            cache_write = write if cache_write is None else cache_write
    if cache_read or cache_write:
        cached = max(cache_read or 0, 0) + max(cache_write or 0, 0)
        counted = max(input_tokens or 0, 0)
        if counted < cached:
            input_tokens = counted + cached
            rest[CACHE_MARK] = True
    return input_tokens, output_tokens, cache_read, cache_write
