"""From a scripted turn to the spans an instrumented agent would have sent: a tree with times, tokens and mishaps."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec

from apps.operations.demo.scripts import AgentScript, Step, Turn, Wording
from apps.tracing.ingest.records import SpanIn

_NS_PER_MS = 1_000_000
LLM_ERRORS = (
    "RateLimitError: 429 Too Many Requests, please retry after 20 s",
    "APITimeoutError: the model did not answer within 60 s",
    "APIConnectionError: connection reset by peer",
    "BadRequestError: context length exceeded (131072 tokens)",
)


class Mishap(Enum):
    """What goes wrong in a turn, if anything."""

    NONE = "none"
    TOOL_FAILURE = "tool"
    MODEL_ERROR = "model"
    EMPTY_ANSWER = "empty"
    SLOW = "slow"


@dataclass(slots=True)
class Moment:
    """Everything that is decided about a turn before its spans are composed."""

    session_id: str
    start_ms: int
    wording: Wording
    model: str | None
    mishap: Mishap = Mishap.NONE
    source: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Usage:
    input: int = 0
    output: int = 0
    cached: int = 0

    def add(self, other: _Usage) -> None:
        self.input += other.input
        self.output += other.output
        self.cached += other.cached


@dataclass(slots=True)
class _Call:
    """A tool call as the root lists it."""

    name: str
    input: Any
    output: Any
    latency_ms: float
    error: str | None

    def wire(self, *, imported: bool) -> dict[str, Any]:
        if imported:
            # Exports of that platform say what was served, not whether it worked (source 1:6952-6954).
            return {"name": self.name, "input": self.input, "output": self.output, "served": True, "used": True}
        entry = {
            "name": self.name,
            "input": self.input,
            "output": self.output,
            "success": self.error is None,
            "latency_ms": self.latency_ms,
        }
        return entry if self.error is None else entry | {"error": self.error}


class TraceComposer:
    """Composes the spans of one turn; a clock runs along while steps are added."""

    def __init__(self, rng: random.Random, script: AgentScript, moment: Moment) -> None:
        self._rng = rng
        self._script = script
        self._moment = moment
        self._clock = float(moment.start_ms)
        self._root_id = self._new_id(32)
        self._children: list[SpanIn] = []
        self._calls: list[_Call] = []
        self._usage = _Usage()
        self._context_chars = 0
        self._llm_number = 0
        self._fallback: str | None = None
        self._pace = script.slow * script.fast * (rng.uniform(5, 12) if moment.mishap is Mishap.SLOW else 1)

    def compose(self, turn: Turn) -> list[SpanIn]:
        """The root first, then its descendants in the order they began."""
        moment, wording = self._moment, self._moment.wording
        question = wording.text(turn.user)
        messages = [*moment.history, {"role": "user", "content": question}]
        self._context_chars = sum(len(message["content"]) for message in messages)
        first_token: float | None = None
        error: str | None = None
        for step in turn.steps:
            if self._fallback is None:
                self._step(step, self._root_id)
        answer: str | None = wording.text(turn.answer) if self._fallback is None else self._fallback
        if moment.model is not None:
            failed = moment.mishap is Mishap.MODEL_ERROR
            error = self._rng.choice(LLM_ERRORS) if failed else None
            answer = None if failed else answer
            first_token = self._answer_call(messages, answer, error)
        if moment.mishap is Mishap.EMPTY_ANSWER:
            answer = ""
        root = self._root(messages, answer, error, first_token)
        if answer:
            moment.history.extend(({"role": "user", "content": question}, {"role": "assistant", "content": answer}))
        return [root, *sorted(self._children, key=lambda span: int(span.start_ns or 0))]

    @property
    def end_ms(self) -> float:
        """When the turn was over."""
        return self._clock

    # Steps

    def _step(self, step: Step, parent: str) -> None:
        if step.parallel:
            self._decide(step.parallel, parent)
            begin, ends = self._clock, []
            for part in step.parallel:
                self._clock = begin
                self._leaf(part, parent)
                ends.append(self._clock)
            self._clock = max(ends)
        elif step.agent is not None:
            self._sub_agent(step, parent)
        elif step.think is not None:
            self._model_call(parent, self._moment.wording.text(step.think))
        else:
            if step.tool is not None:
                self._decide([step], parent)
            self._leaf(step, parent)

    def _decide(self, tools: list[Step], parent: str) -> None:
        """The model call that asks for the tools."""
        if self._moment.model is None or self._script.flat:
            return
        wording = self._moment.wording
        wanted = [
            {"name": step.tool, "arguments": wording.value(step.input)} for step in tools if step.tool is not None
        ]
        if wanted:
            self._model_call(parent, {"role": "assistant", "tool_calls": wanted})

    def _leaf(self, step: Step, parent: str) -> None:
        wording = self._moment.wording
        if step.tool is not None:
            self._tool(step, parent)
        elif step.retrieve is not None or step.rerank is not None:
            self._documents(step, parent)
        elif step.embed is not None:
            query = wording.text(step.embed)
            tokens = max(4, len(query) // 4)
            begin = self._spend(self._rng.uniform(20, 90))
            self._child(
                parent, self._name("embed", "embedding"), "embedding", begin, input={"text": query},
                output={"dimensions": 1536}, metadata={"tokens": tokens},
            )  # fmt: skip
        elif step.memory is not None:
            begin = self._spend(self._rng.uniform(4, 30))
            self._child(
                parent, self._name("memory", "Memory read"), "memory", begin, input=wording.text(step.memory),
                output=wording.value(step.output), metadata={"kind": "memory", "operation": "read"},
            )  # fmt: skip
        elif step.guardrail is not None:
            begin = self._spend(self._rng.uniform(15, 80))
            self._child(
                parent, self._name("guardrail", "guardrail"), "guardrail", begin, input=wording.text(step.guardrail),
                output=wording.value(step.output),
            )  # fmt: skip

    def _tool(self, step: Step, parent: str) -> None:
        wording = self._moment.wording
        fails = self._moment.mishap is Mishap.TOOL_FAILURE and step.error is not None
        error = step.error if fails else None
        base = self._rng.lognormvariate(5.4, 0.7)
        begin = self._spend(30_000 + base if error and "30 s" in error else base)
        latency = round(self._clock - begin, 1)
        name = step.tool or ""
        given, result = wording.value(step.input), None if error else wording.value(step.output)
        self._calls.append(_Call(name, given, f"ERROR: {error}" if error else result, latency, error))
        if fails:
            self._fallback = wording.text(step.fallback or "I could not finish this, a tool failed.")
        if not self._script.flat:
            self._child(
                parent, self._name("tool", "{}").format(name), "tool", begin, input=given, output=result, error=error
            )
        self._context_chars += len(str(result)) + len(str(given))

    def _documents(self, step: Step, parent: str) -> None:
        wording = self._moment.wording
        query = wording.text(step.retrieve or step.rerank or "")
        documents = [wording.text(document) for document in step.documents]
        retrieval = step.retrieve is not None
        begin = self._spend(self._rng.lognormvariate(4.4, 0.5))
        self._child(
            parent,
            self._name("retrieval", "retriever") if retrieval else self._name("rerank", "reranker"),
            "retrieval" if retrieval else "reranker",
            begin,
            input={"query": query},
            output=documents,
            metadata={"kind": "retrieval", "doc_count": len(documents)} if retrieval else None,
        )
        self._context_chars += sum(len(document) for document in documents)

    def _sub_agent(self, step: Step, parent: str) -> None:
        wording = self._moment.wording
        span_id, begin = self._new_id(32), self._clock
        self._clock += self._rng.uniform(2, 15)
        before = _Usage(self._usage.input, self._usage.output, self._usage.cached)
        for inner in step.steps:
            if self._fallback is None:
                self._step(inner, span_id)
        output = wording.value(step.output)
        self._model_call(span_id, output)
        self._child(
            parent,
            step.agent or "",
            "agent",
            begin,
            span_id=span_id,
            input=wording.text(step.task or ""),
            output=output,
            usage=_Usage(self._usage.input - before.input, self._usage.output - before.output),
        )

    # Model calls

    def _model_call(
        self, parent: str, output: Any, *, messages: Any = None, error: str | None = None, stream: bool = False
    ) -> float | None:
        """One call of the model; returns the time to its first token in ms when it was streamed."""
        rng, script = self._rng, self._script
        usage = self._count(output, failed=error is not None)
        self._llm_number += 1
        begin = self._clock
        first = rng.lognormvariate(5.9, 0.35) * self._pace
        writing = usage.output * rng.uniform(7, 14) * self._pace
        self._clock += first + (rng.uniform(800, 20_000) if error else writing)
        metadata: dict[str, Any] = {"temperature": 0.2}
        if stream and error is None:
            metadata |= {"streaming": True, "timeToFirstTokenMs": round(first, 1)}
        self._usage.add(usage)
        name = self._name("llm", "LLM Call")
        if name == "LLM Call":
            name = f"LLM Call {self._llm_number}"
        self._child(
            parent,
            name,
            "llm",
            begin,
            input=messages if messages is not None else {"messages": [{"role": "system", "content": script.system}]},
            output=None if error else output,
            model=self._moment.model,
            usage=usage,
            metadata=metadata,
            error=error,
        )
        self._context_chars += len(str(output)) if output else 0
        return first if stream else None

    def _answer_call(self, messages: list[dict[str, str]], answer: str | None, error: str | None) -> float | None:
        stream = self._rng.random() < self._script.stream
        if not self._script.flat:
            prompt = {"messages": [{"role": "system", "content": self._script.system}, *messages]}
            return self._model_call(self._root_id, answer, messages=prompt, error=error, stream=stream)
        usage = self._count(answer, failed=error is not None)
        first = self._rng.lognormvariate(5.9, 0.35) * self._pace
        self._clock += first + usage.output * self._rng.uniform(7, 14) * self._pace
        self._usage.add(usage)
        return first if stream else None

    def _count(self, output: Any, *, failed: bool) -> _Usage:
        taken = self._script.prompt_tokens + self._context_chars // 4 + self._rng.randint(0, 40)
        cached = int(taken * 0.8) if self._rng.random() < self._script.cached else 0
        written = 0 if failed else max(8, int(len(str(output or "")) / 3.6))
        return _Usage(taken, written, cached)

    # Spans

    def _root(
        self, messages: list[dict[str, str]], answer: str | None, error: str | None, first_token: float | None
    ) -> SpanIn:
        script, moment = self._script, self._moment
        metadata: dict[str, Any] = dict(moment.metadata)
        if script.prompt:
            metadata |= {"promptName": script.prompt}
        if first_token is not None and script.flat:
            metadata |= {"streaming": True, "timeToFirstTokenMs": round(first_token, 1)}
        if not script.flat and moment.model is not None:
            self._clock += self._rng.uniform(1, 12)
        elif moment.model is None:
            self._clock += self._rng.uniform(900, 4000)
        return SpanIn(
            name=script.name,
            span_id=f"mw:{self._root_id[:16]}" if script.imported else self._root_id,
            session_id=moment.session_id,
            kind=None if script.flat else "agent",
            framework=script.framework,
            model=moment.model if script.flat else None,
            source=moment.source,
            monitor=False if moment.source is not None else None,
            error=error,
            latency_ms=round(self._clock - moment.start_ms, 1),
            start_ns=moment.start_ms * _NS_PER_MS,
            input_tokens=self._usage.input if moment.model else None,
            output_tokens=self._usage.output if moment.model else None,
            cache_read_tokens=self._usage.cached or None,
            input=_json(messages if len(messages) > 1 else messages[0]["content"]),
            output=None if answer is None else _json(answer),
            tool_calls=_json([call.wire(imported=script.imported) for call in self._calls]) if self._calls else None,
            metadata=_json(metadata),
        )

    def _child(
        self,
        parent: str,
        name: str,
        kind: str,
        begin: float,
        *,
        span_id: str | None = None,
        input: Any = None,
        output: Any = None,
        model: str | None = None,
        usage: _Usage | None = None,
        metadata: dict[str, Any] | None = None,
        error: str | None = None,
    ) -> None:
        self._children.append(
            SpanIn(
                name=name,
                span_id=span_id or self._new_id(32),
                parent_span_id=parent,
                session_id=self._moment.session_id,
                kind=kind,
                framework=self._script.framework,
                model=model,
                source=self._moment.source,
                error=error,
                latency_ms=round(self._clock - begin, 1),
                # A float cannot hold nanoseconds since 1970: only the offset is computed in one.
                start_ns=self._moment.start_ms * _NS_PER_MS + int((begin - self._moment.start_ms) * _NS_PER_MS),
                input_tokens=usage.input if usage else None,
                output_tokens=usage.output if usage else None,
                cache_read_tokens=(usage.cached or None) if usage else None,
                input=_json(input),
                output=None if output is None else _json(output),
                metadata=_json(metadata) if metadata else None,
            )
        )

    def _spend(self, milliseconds: float) -> float:
        begin = self._clock
        self._clock += milliseconds * (self._pace if self._moment.mishap is Mishap.SLOW else 1)
        return begin

    def _name(self, what: str, otherwise: str) -> str:
        return self._script.names.get(what, otherwise)

    def _new_id(self, length: int) -> str:
        return f"{self._rng.getrandbits(length * 4):0{length}x}"


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value)
