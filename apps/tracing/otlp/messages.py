"""Message content that is not one attribute: span events, system instructions, documents, tool definitions."""

from __future__ import annotations

from typing import Any

from apps.tracing.otlp.conventions import CHOICE_EVENT, CONTENT_EVENTS, DETAILS_EVENT, MESSAGE_EVENTS
from apps.tracing.otlp.spans import OtelEvent, OtelSpan
from apps.tracing.otlp.values import payload, to_json, unwrapped


def _event_body(event: OtelEvent) -> dict[str, Any]:
    """A message event's attributes as a message; content that is JSON text is unpacked."""
    body: dict[str, Any] = {}
    for name, value in event.attributes.items():
        if name in ("gen_ai.system", "event.name", "gen_ai.provider.name"):
            continue
        body[name.removeprefix("gen_ai.event.")] = unwrapped(value) if isinstance(value, str) else value
    if set(body) == {"content"} and isinstance(body["content"], dict):
        return body["content"]
    return body


def from_events(span: OtelSpan) -> tuple[bytes | None, bytes | None, Any, list[dict[str, Any]]]:
    """Input, output and system instructions that instrumentations put into span events, and the other events."""
    messages: list[Any] = []
    choices: list[Any] = []
    given: dict[str, Any] = {}
    others: list[dict[str, Any]] = []
    for event in span.events:
        role = MESSAGE_EVENTS.get(event.name)
        if role is not None:
            messages.append({"role": role} | _event_body(event))
        elif event.name == CHOICE_EVENT:
            body = _event_body(event)
            message = body.pop("message", None)
            choices.append({"role": "assistant"} | (message if isinstance(message, dict) else {}) | body)
        elif event.name == DETAILS_EVENT or event.name in CONTENT_EVENTS:
            given.update(event.attributes)
        else:
            other: dict[str, Any] = {"name": event.name, "time": str(event.time_ns)}
            if event.attributes:
                other["attributes"] = event.attributes
            others.append(other)
    found_input = given.get("gen_ai.input.messages") or given.get("gen_ai.prompt") or messages or None
    found_output = given.get("gen_ai.output.messages") or given.get("gen_ai.completion") or choices or None
    return (
        None if found_input is None else payload(found_input),
        None if found_output is None else payload(found_output),
        given.get("gen_ai.system_instructions"),
        others,
    )


def with_system(system: Any, messages: bytes | None) -> bytes:
    """System instructions as the first message of the input (source 1:8652-8655)."""
    parts = payload(system)
    member = b"parts" if parts[:1] == b"[" else b"content"
    first = b'{"role":"system","' + member + b'":' + parts + b"}"
    if messages is None:
        return b"[" + first + b"]"
    stripped = messages.strip()
    if stripped[:1] == b"[":
        tail = stripped[1:].lstrip()
        return b"[" + first + (b"]" if tail[:1] == b"]" else b"," + tail)
    if stripped[:1] == b"{":
        return b"[" + first + b"," + stripped + b"]"
    return b"[" + first + b',{"role":"user","content":' + stripped + b"}]"


def documents_of(lists: dict[str, Any], name: str, metadata: dict[str, Any]) -> bytes | None:
    """Retrieved documents as a list of chunks; their ids and scores stay in the metadata."""
    documents = lists.pop(name, None)
    if not isinstance(documents, list):
        return None
    chunks: list[Any] = []
    details: list[Any] = []
    for document in documents:
        if isinstance(document, dict):
            chunks.append(unwrapped(document.pop("content", None)))
            document = {key: unwrapped(value) for key, value in document.items()}
        else:
            chunks.append(document)
            document = None
        details.append(document)
    metadata["doc_count"] = len(documents)
    if any(details):
        metadata[name] = details
    return to_json([chunk for chunk in chunks if chunk is not None]) if any(chunks) else None


def tool_definitions(value: Any) -> Any:
    """Tool definitions as `metadata.tools` wants them; each may itself be JSON text (OpenInference)."""
    value = unwrapped(value)
    if not isinstance(value, list):
        return value
    tools = []
    for tool in value:
        tool = unwrapped(tool)
        if isinstance(tool, dict) and set(tool) == {"json_schema"}:
            tool = unwrapped(tool["json_schema"])
        tools.append(tool)
    return tools
