"""Request bodies: single JSON spans of about 2 KB and OTLP batches of 50 spans, as agents of a support team send them.

Bodies are made once. What must differ from request to request (ids, sessions, times) lies in slots of fixed width
that are overwritten in a copy, so that the generator costs little beside the server it measures.
"""

from __future__ import annotations

import json
import random
import struct
import time
from dataclasses import dataclass, field

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

WORDS = [
    "the",
    "a",
    "customer",
    "order",
    "refund",
    "invoice",
    "shipping",
    "policy",
    "account",
    "status",
    "please",
    "review",
    "latest",
    "update",
    "model",
    "context",
    "retrieval",
    "document",
    "answer",
    "question",
    "agent",
    "tool",
    "search",
    "result",
    "warehouse",
    "delivery",
    "priority",
    "ticket",
    "issue",
    "payment",
    "method",
    "charge",
    "subscription",
    "plan",
    "renewal",
    "date",
    "region",
    "service",
    "limit",
    "quota",
    "usage",
    "report",
    "summary",
    "analysis",
    "step",
    "next",
    "action",
    "confirm",
    "cancel",
    "request",
    "response",
    "data",
    "record",
    "field",
    "value",
    "check",
    "verify",
    "eligible",
    "within",
    "days",
    "after",
    "receipt",
]
AGENTS = (
    *(f"support-agent-{number}" for number in range(6)),
    "research-bot",
    "billing-triage",
    "code-reviewer",
    "sales-qa",
    "kb-search",
    "ops-copilot",
)
MODELS = (
    ("openai", "gpt-4o-mini"),
    ("openai", "gpt-4o"),
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("gemini", "gemini-2.5-flash"),
)
TOOLS = ("lookup_order", "search_kb", "issue_refund", "get_customer", "policy_lookup")
SPANS_PER_SESSION = 5
_NS_PER_SECOND = 1_000_000_000


def prose(rng: random.Random, length: int) -> str:
    """Words up to about this many characters."""
    words: list[str] = []
    size = 0
    while size < length:
        word = rng.choice(WORDS)
        words.append(word)
        size += len(word) + 1
    return " ".join(words)


@dataclass(slots=True)
class Stencil:
    """A body and where its slots are: name to offsets (a value may stand in several places) and width."""

    body: bytes
    slots: dict[str, tuple[int, list[int]]] = field(default_factory=dict)

    @classmethod
    def cut(cls, body: bytes, marks: dict[str, bytes]) -> Stencil:
        """Find every mark in the body. Raises ValueError for one that is not there."""
        stencil = cls(body)
        for name, mark in marks.items():
            offsets = []
            at = body.find(mark)
            while at >= 0:
                offsets.append(at)
                at = body.find(mark, at + 1)
            if not offsets:
                raise ValueError(f"no slot for {name}")
            stencil.slots[name] = (len(mark), offsets)
        return stencil

    def fill(self, values: dict[str, bytes]) -> bytes:
        """A copy with the slots overwritten; each value is as wide as its slot."""
        copy = bytearray(self.body)
        for name, value in values.items():
            width, offsets = self.slots[name]
            for at in offsets:
                copy[at : at + width] = value
        return bytes(copy)


class JsonSpans:
    """An endless series of single-span bodies for POST /ingest/traces; ids are unique to `run` (32 bits)."""

    spans_per_body = 1

    def __init__(self, *, run: int, templates: int = 400, seed: int = 7) -> None:
        rng = random.Random(seed)
        marks = {"span": b"<span-id-16-ch>.", "session": b"<session-16-ch>.", "time": b"1111111111111111111"}
        self._stencils = [Stencil.cut(json.dumps(_json_span(rng, marks)).encode(), marks) for _ in range(templates)]
        self._run = f"{run & 0xFFFFFFFF:08x}"
        self.count = 0
        self.mean_bytes = round(sum(len(stencil.body) for stencil in self._stencils) / templates)

    def next(self) -> bytes:
        """The next body."""
        number = self.count
        self.count += 1
        return self.body(number, time.time_ns())

    def body(self, number: int, start_ns: int) -> bytes:
        """The body with this number: the same number gives the same span id again (a replay)."""
        return self._stencils[number % len(self._stencils)].fill(
            {
                "span": f"{self._run}{number:08x}".encode(),
                "session": f"{self._run}{number // SPANS_PER_SESSION:08x}".encode(),
                "time": b"%019d" % start_ns,
            }
        )


def _json_span(rng: random.Random, marks: dict[str, bytes]) -> dict[str, object]:
    provider, model = rng.choice(MODELS)
    system, question = prose(rng, rng.randint(150, 300)), prose(rng, rng.randint(150, 450))
    span: dict[str, object] = {
        "name": rng.choice(AGENTS),
        "input": {
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": question}],
        },
        "output": prose(rng, rng.randint(420, 1150)),
        "latency_ms": rng.randint(200, 9000),
        "framework": provider,
        "model": model,
        "tool_calls": [
            {
                "name": rng.choice(TOOLS),
                "input": {"id": f"ord_{rng.randint(1, 10**6)}", "verbose": True},
                "output": prose(rng, rng.randint(80, 250)),
                "success": rng.random() > 0.03,
            }
            for _ in range(rng.randint(0, 2))
        ],
        "metadata": {
            "env": "prod",
            "version": f"1.{rng.randint(0, 9)}.{rng.randint(0, 9)}",
            "user_id": f"u_{rng.randint(1, 5000)}",
            "promptName": "support-main",
            "tags": ["eu", "tier-1"],
            "request_id": f"{rng.getrandbits(64):016x}",
        },
        "input_tokens": rng.randint(200, 3000),
        "output_tokens": rng.randint(50, 800),
        "session_id": marks["session"].decode(),
        "span_id": marks["span"].decode(),
        "started_at_unix_nano": marks["time"].decode(),
    }
    if rng.random() < 0.02:
        span["error"] = "RateLimitError: 429 from provider"
    return span


class OtlpBatches:
    """An endless series of OTLP protobuf batches: traces of five spans with GenAI attributes.

    `spread_seconds` lays the traces out over the past instead of the present (for seeding a history).
    """

    def __init__(
        self, *, run: int, batch: int = 50, templates: int = 20, seed: int = 11, spread_seconds: int = 0
    ) -> None:
        rng = random.Random(seed)
        self.spans_per_body = batch
        self._templates = [_OtlpTemplate(rng, batch) for _ in range(templates)]
        self._run = struct.pack(">I", run & 0xFFFFFFFF)
        self._spread = spread_seconds
        self._rng = random.Random(run)
        self._traces = self._spans = 0
        self.count = 0
        self.mean_bytes = round(sum(len(template.stencil.body) for template in self._templates) / templates)

    def next(self) -> bytes:
        """The next body."""
        template = self._templates[self.count % len(self._templates)]
        self.count += 1
        now = time.time_ns() - 5 * _NS_PER_SECOND
        values: dict[str, bytes] = {}
        for trace in range(template.traces):
            number = self._traces
            self._traces += 1
            values[f"trace{trace}"] = self._run + b"\xbe\xef\xca\xfe" + struct.pack(">Q", number)
            values[f"session{trace}"] = f"s{self._run.hex()}{number // 2:07x}".encode()
            ago = self._rng.randrange(self._spread) * _NS_PER_SECOND if self._spread else 0
            for name, offset, duration in template.times[trace]:
                start = now - ago + offset
                values[f"start{name}"] = struct.pack("<Q", start)
                values[f"end{name}"] = struct.pack("<Q", start + duration)
                values[f"span{name}"] = self._run + struct.pack(">I", self._spans)
                self._spans += 1
        return template.stencil.fill(values)


class _OtlpTemplate:
    def __init__(self, rng: random.Random, batch: int) -> None:
        self.traces = batch // SPANS_PER_SESSION
        self.times: list[list[tuple[str, int, int]]] = []
        request = ExportTraceServiceRequest()
        resource = request.resource_spans.add()
        for key, value in (
            ("service.name", "bench-agent"),
            ("telemetry.sdk.language", "python"),
            ("deployment.environment", "prod"),
        ):
            _attribute(resource.resource.attributes.add(), key, value)
        scope = resource.scope_spans.add()
        scope.scope.name, scope.scope.version = "opentelemetry.instrumentation.openai_v2", "2.1"
        marks: dict[str, bytes] = {}
        for trace in range(self.traces):
            marks[f"trace{trace}"] = rng.randbytes(16)
            marks[f"session{trace}"] = f"<s{rng.getrandbits(52):013x}>".encode()
            agent = rng.choice(AGENTS)
            self.times.append([])
            for step in range(SPANS_PER_SESSION):
                name = f"{trace}.{step}"
                marks |= {
                    f"span{name}": rng.randbytes(8),
                    f"start{name}": rng.randbytes(8),
                    f"end{name}": rng.randbytes(8),
                }
                self.times[trace].append((name, (trace * 40 + step * 5) * 1_000_000, rng.randint(5, 3000) * 1_000_000))
                span = scope.spans.add()
                span.trace_id, span.span_id = marks[f"trace{trace}"], marks[f"span{name}"]
                if step:
                    span.parent_span_id = marks[f"span{trace}.0"]
                (span.start_time_unix_nano,) = struct.unpack("<Q", marks[f"start{name}"])
                (span.end_time_unix_nano,) = struct.unpack("<Q", marks[f"end{name}"])
                _describe(span, rng, step, agent, marks[f"session{trace}"].decode())
        self.stencil = Stencil.cut(request.SerializeToString(), marks)


def _attribute(target: KeyValue, key: str, value: object) -> None:
    target.key = key
    if isinstance(value, int):
        target.value.int_value = value
    elif isinstance(value, float):
        target.value.double_value = value
    else:
        target.value.string_value = str(value)


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _describe(span: Span, rng: random.Random, step: int, agent: str, session: str) -> None:
    provider, model = rng.choice(MODELS)
    values: dict[str, object] = {"session.id": session}
    if step == 0:
        span.name, span.kind = agent, Span.SPAN_KIND_INTERNAL
        values |= {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.provider.name": provider,
            "gen_ai.conversation.id": session,
            "gen_ai.input.messages": json.dumps([_message("user", prose(rng, rng.randint(150, 400)))]),
            "gen_ai.output.messages": json.dumps([_message("assistant", prose(rng, rng.randint(300, 700)))]),
        }
    elif step % 2:
        span.name, span.kind = f"chat {model}", Span.SPAN_KIND_CLIENT
        question = [_message("system", prose(rng, 200)), _message("user", prose(rng, rng.randint(150, 500)))]
        answer = _message("assistant", prose(rng, rng.randint(300, 700))) | {"finish_reason": "stop"}
        values |= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.max_tokens": 1024,
            "gen_ai.response.id": f"chatcmpl-{rng.getrandbits(64):x}",
            "gen_ai.usage.input_tokens": rng.randint(200, 3000),
            "gen_ai.usage.output_tokens": rng.randint(50, 800),
            "gen_ai.input.messages": json.dumps(question),
            "gen_ai.output.messages": json.dumps([answer]),
        }
    else:
        tool = rng.choice(TOOLS)
        span.name, span.kind = f"execute_tool {tool}", Span.SPAN_KIND_INTERNAL
        values |= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.id": f"call_{rng.getrandbits(48):x}",
            "gen_ai.tool.call.arguments": json.dumps({"id": f"ord_{rng.randint(1, 10**6)}"}),
            "gen_ai.tool.call.result": prose(rng, rng.randint(80, 250)),
        }
    if rng.random() < 0.02:
        span.status.code = 2
        span.status.message = "timeout calling provider"
    for key, value in values.items():
        _attribute(span.attributes.add(), key, value)
