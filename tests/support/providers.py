"""A model provider on loopback that says what a test scripted, in the dialect it was asked in.

    with running_provider() as provider:
        provider.answer("Paris", Answer(tools=[ToolCall("lookup", {"city": "Paris"})], usage=Usage(120, 8, cached=100)))
        client = openai.OpenAI(base_url=provider.openai_url, api_key="sk-test")

One server speaks OpenAI (chat completions, responses, embeddings, models), Anthropic Messages and Gemini
(generateContent, streamGenerateContent, embedContent), streamed or not, at any prefix: the last part of the path
decides. The same `Answer` is put into the words of whichever is asked, so a test of several providers has one script.

Answers are taken in this order: the queue (`answer(...)`), then `respond` (a callable given the request), then
`Answer("ok")`. Every request is kept in `requests`. Faults: a status with `error`, `headers`, `delay`, a raw `body`
(garbage), `stall_after` (the connection stays open and silent) and `close_after` (it is cut).
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import itertools
import json
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

#: A stalled answer lets go after this, so that no test run hangs for one forgotten client timeout.
STALL_SECONDS = 60.0
EMBEDDING_SIZE = 8


@dataclass(frozen=True)
class Usage:
    """Token counts of an answer. `input` is the whole prompt; `cached` and `cache_write` are parts of it, as `reasoning` is of `output`."""

    input: int = 10
    output: int = 5
    cached: int = 0
    cache_write: int = 0
    reasoning: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A tool the model asks for; ids are numbered when not given."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""


@dataclass(frozen=True)
class Answer:
    """What the provider says once.

    `usage=None` leaves the counts out. `error` with a `status` is put into the provider's own error body. `body` (text,
    bytes or a JSON value) replaces everything the dialect would have said. `delay` waits before the first byte and
    `chunk_delay` before each further event of a stream, both in seconds. `stall_after` and `close_after` count what was
    sent before: events of a stream, else bytes of the body.
    """

    text: str | None = None
    tools: Sequence[ToolCall] = ()
    usage: Usage | None = field(default_factory=Usage)
    model: str | None = None
    finish: str | None = None
    status: int = 200
    error: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    delay: float = 0.0
    chunk_delay: float = 0.0
    stall_after: int | None = None
    close_after: int | None = None

    @classmethod
    def of_json(cls, value: Any, **rest: Any) -> Answer:
        """An answer whose text is this value as JSON, as a model in JSON mode gives it."""
        return cls(json.dumps(value), **rest)

    @classmethod
    def failure(cls, status: int, error: str = "scripted failure", **rest: Any) -> Answer:
        """A refusal with this status."""
        return cls(status=status, error=error, **rest)

    def pieces(self) -> list[str]:
        """The text cut into the deltas of a stream: words with their spaces."""
        words = (self.text or "").split(" ")
        return [word if n == 0 else f" {word}" for n, word in enumerate(words)] if self.text else []


@dataclass(frozen=True)
class ProviderRequest:
    """One request as it came in. `dialect` is chat, responses, messages, gemini, embeddings, models or unknown."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes
    dialect: str
    stream: bool
    model: str | None

    @property
    def json(self) -> Any:
        """The body as JSON; None when there is none."""
        return json.loads(self.body) if self.body else None


Script = Answer | str | Callable[[ProviderRequest], "Answer | str"]


class FakeProvider:
    """The script and the memory of a running provider; see the module."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.requests: list[ProviderRequest] = []
        self.respond: Callable[[ProviderRequest], Answer | str] | None = None
        self.models = ["test-model"]
        self.peak = 0
        self._queue: deque[Script] = deque()
        self._lock = threading.Lock()
        self._busy = 0
        self._closing = threading.Event()
        self._numbers = itertools.count(1)

    @property
    def openai_url(self) -> str:
        """The base URL OpenAI clients want, with /v1."""
        return f"{self.base_url}/v1"

    @property
    def anthropic_url(self) -> str:
        """The base URL Anthropic clients want; they add /v1/messages."""
        return self.base_url

    @property
    def gemini_url(self) -> str:
        """The base URL Gemini clients want; they add /v1beta/models/…"""
        return self.base_url

    @property
    def count(self) -> int:
        """How many requests came in."""
        return len(self.requests)

    @property
    def last(self) -> ProviderRequest:
        """The newest request."""
        return self.requests[-1]

    def answer(self, *answers: Script) -> None:
        """Queue answers, one a request, in this order. A callable is asked with the request when its turn comes."""
        with self._lock:
            self._queue.extend(answers)

    def forget(self) -> None:
        """Empty the queue, the memory and `respond`."""
        with self._lock:
            self._queue.clear()
            self.requests.clear()
            self.respond = None
            self.peak = 0

    def next_answer(self, request: ProviderRequest) -> Answer:
        """Remember the request and say what is answered to it."""
        with self._lock:
            self.requests.append(request)
            script: Script | None = self._queue.popleft() if self._queue else self.respond
        if callable(script):
            script = script(request)
        if script is None:
            return Answer("ok")
        return Answer(script) if isinstance(script, str) else script

    def number(self) -> int:
        """A running number for the ids of answers and tool calls."""
        return next(self._numbers)

    def wait(self, seconds: float) -> None:
        """Sleep, but no longer than the provider runs."""
        self._closing.wait(seconds)

    def close(self) -> None:
        """Let go of stalled answers."""
        self._closing.set()

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a request as under way; `peak` is the most there were at once."""
        with self._lock:
            self._busy += 1
            self.peak = max(self.peak, self._busy)
        try:
            yield
        finally:
            with self._lock:
                self._busy -= 1


@contextlib.contextmanager
def running_provider(port: int = 0) -> Iterator[FakeProvider]:
    """A provider on a free port of 127.0.0.1, gone at the end of the block."""

    class Handler(_Handler):
        pass

    server = _Server(("127.0.0.1", port), Handler)
    provider = Handler.provider = FakeProvider(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.close()
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is part of many tests."""


class _Handler(BaseHTTPRequestHandler):
    provider: FakeProvider
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the test's output."""

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = _request_of(self.command, self.path, dict(self.headers.items()), body)
        with self.provider.counted():
            answer = self.provider.next_answer(request)
            if answer.delay:
                self.provider.wait(answer.delay)
            self._send(request, answer)

    def _send(self, request: ProviderRequest, answer: Answer) -> None:
        dialect = DIALECTS[request.dialect]
        if answer.body is not None:
            raw = answer.body if isinstance(answer.body, bytes | str) else json.dumps(answer.body)
            self._whole(answer, raw.encode() if isinstance(raw, str) else raw)
        elif answer.error is not None or answer.status >= 400:
            self._whole(answer, json.dumps(dialect.error(answer)).encode())
        elif request.stream:
            self._events(answer, dialect.events(self.provider, request, answer))
        else:
            self._whole(answer, json.dumps(dialect.whole(self.provider, request, answer)).encode())

    def _head(self, answer: Answer, **headers: str) -> None:
        self.send_response(answer.status)
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def _whole(self, answer: Answer, raw: bytes) -> None:
        self._head(answer, Content_Type="application/json", Content_Length=str(len(raw)))
        cut = answer.stall_after if answer.stall_after is not None else answer.close_after
        self.wfile.write(raw if cut is None else raw[:cut])
        self.wfile.flush()
        if cut is not None:
            self._break_off(answer)

    def _events(self, answer: Answer, events: Iterator[bytes]) -> None:
        self._head(answer, Content_Type="text/event-stream", Transfer_Encoding="chunked", Cache_Control="no-cache")
        cut = answer.stall_after if answer.stall_after is not None else answer.close_after
        for number, event in enumerate(events):
            if number == cut:
                self._break_off(answer)
                return
            if number and answer.chunk_delay:
                self.provider.wait(answer.chunk_delay)
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _break_off(self, answer: Answer) -> None:
        if answer.stall_after is not None:
            self.provider.wait(STALL_SECONDS)
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _request_of(method: str, target: str, headers: Mapping[str, str], body: bytes) -> ProviderRequest:
    parts = urlsplit(target)
    path = parts.path.rstrip("/")
    dialect, stream, model = "unknown", False, None
    content: Any = None
    with contextlib.suppress(ValueError):
        content = json.loads(body) if body else None
    if isinstance(content, dict):
        stream, model = bool(content.get("stream")), content.get("model")
    if ":" in path.rsplit("/", 1)[-1]:
        model, _, verb = path.rsplit("/", 1)[-1].partition(":")
        dialect = "gemini" if verb.endswith("enerateContent") else "gemini_embeddings"
        stream = verb == "streamGenerateContent"
    else:
        for suffix, name in (
            ("/chat/completions", "chat"),
            ("/responses", "responses"),
            ("/messages", "messages"),
            ("/embeddings", "embeddings"),
            ("/models", "models"),
        ):
            if path.endswith(suffix):
                dialect = name
    lower = {name.lower(): value for name, value in headers.items()}
    return ProviderRequest(method, path, parse_qs(parts.query), lower, body, dialect, stream, model)


def _sse(value: Any, event: str | None = None) -> bytes:
    data = value if isinstance(value, str) else json.dumps(value)
    return (f"event: {event}\n" if event else "").encode() + f"data: {data}\n\n".encode()


def _numbered(provider: FakeProvider, answer: Answer, prefix: str) -> list[tuple[str, str, str]]:
    """(id, name, arguments as JSON text) of each tool call."""
    return [
        (call.id or f"{prefix}{provider.number()}", call.name, json.dumps(dict(call.arguments)))
        for call in answer.tools
    ]


def _model(request: ProviderRequest, answer: Answer) -> str:
    return answer.model or request.model or "test-model"


class Dialect:
    """How one kind of answer is worded; the base is what an unknown path gets."""

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        """The body of an answer that is not streamed."""
        return {"error": {"message": f"no such path: {request.path}", "type": "invalid_request_error"}}

    def events(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Iterator[bytes]:
        """The events of a streamed answer."""
        yield _sse(self.whole(provider, request, answer))

    def error(self, answer: Answer) -> Json:
        """The body of a refusal."""
        return {"error": {"message": answer.error or "", "type": "scripted", "param": None, "code": str(answer.status)}}


class ChatCompletions(Dialect):
    """OpenAI chat completions."""

    @staticmethod
    def usage(usage: Usage) -> Json:
        """The counts: cached tokens are part of the prompt's."""
        return {
            "prompt_tokens": usage.input,
            "completion_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
        }

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        calls = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id_, name, arguments in _numbered(provider, answer, "call_")
        ]
        message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
        if calls:
            message["tool_calls"] = calls
        body: Json = {
            "id": f"chatcmpl-{provider.number()}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": _model(request, answer),
            "choices": [
                {
                    "index": 0,
                    "message": message,
                    "logprobs": None,
                    "finish_reason": answer.finish or ("tool_calls" if calls else "stop"),
                }
            ],
        }
        if answer.usage:
            body["usage"] = self.usage(answer.usage)
        return body

    def events(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Iterator[bytes]:
        """Deltas; the counts come in a last chunk only if the request asked for them, as OpenAI does."""
        head = {
            "id": f"chatcmpl-{provider.number()}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": _model(request, answer),
        }

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            return _sse({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        yield chunk({"role": "assistant", "content": ""})
        for piece in answer.pieces():
            yield chunk({"content": piece})
        for index, (id_, name, arguments) in enumerate(_numbered(provider, answer, "call_")):
            function = {"name": name, "arguments": ""}
            yield chunk({"tool_calls": [{"index": index, "id": id_, "type": "function", "function": function}]})
            half = len(arguments) // 2
            for part in (arguments[:half], arguments[half:]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": part}}]})
        yield chunk({}, answer.finish or ("tool_calls" if answer.tools else "stop"))
        options = (request.json or {}).get("stream_options") or {}
        if answer.usage and options.get("include_usage"):
            yield _sse({**head, "choices": [], "usage": self.usage(answer.usage)})
        yield _sse("[DONE]")


class Responses(Dialect):
    """OpenAI responses."""

    @staticmethod
    def usage(usage: Usage) -> Json:
        """The counts: cached tokens are part of the input's."""
        return {
            "input_tokens": usage.input,
            "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
            "output_tokens": usage.output,
            "output_tokens_details": {"reasoning_tokens": usage.reasoning},
            "total_tokens": usage.input + usage.output,
        }

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        output: list[Json] = []
        if answer.text is not None:
            content = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
            item = {"type": "message", "id": f"msg_{provider.number()}", "status": "completed", "role": "assistant"}
            output.append({**item, "content": content})
        for id_, name, arguments in _numbered(provider, answer, "call_"):
            item = {"type": "function_call", "id": f"fc_{id_}", "call_id": id_, "status": "completed"}
            output.append({**item, "name": name, "arguments": arguments})
        asked = request.json or {}
        return {
            "id": f"resp_{provider.number()}",
            "object": "response",
            "created_at": int(time.time()),
            "status": "completed",
            "error": None,
            "incomplete_details": None,
            "instructions": asked.get("instructions"),
            "metadata": {},
            "model": _model(request, answer),
            "output": output,
            "parallel_tool_calls": True,
            "temperature": 1.0,
            "tool_choice": asked.get("tool_choice") or "auto",
            "tools": asked.get("tools") or [],
            "top_p": 1.0,
            "usage": self.usage(answer.usage) if answer.usage else None,
        }

    def events(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Iterator[bytes]:
        done = self.whole(provider, request, answer)
        numbers = itertools.count()

        def event(kind: str, **rest: Any) -> bytes:
            return _sse({"type": kind, "sequence_number": next(numbers), **rest}, kind)

        yield event("response.created", response={**done, "status": "in_progress", "output": [], "usage": None})
        for index, item in enumerate(done["output"]):
            place = {"output_index": index, "item_id": item["id"]}
            if item["type"] == "message":
                yield event("response.output_item.added", output_index=index, item={**item, "content": []})
                part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
                yield event("response.content_part.added", **place, content_index=0, part=part)
                for piece in answer.pieces():
                    yield event("response.output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
                yield event("response.output_text.done", **place, content_index=0, text=answer.text, logprobs=[])
                yield event("response.content_part.done", **place, content_index=0, part=item["content"][0])
            else:
                yield event("response.output_item.added", output_index=index, item={**item, "arguments": ""})
                yield event("response.function_call_arguments.delta", **place, delta=item["arguments"])
                yield event(
                    "response.function_call_arguments.done", **place, name=item["name"], arguments=item["arguments"]
                )
            yield event("response.output_item.done", output_index=index, item=item)
        yield event("response.completed", response=done)


class Messages(Dialect):
    """Anthropic Messages."""

    @staticmethod
    def usage(usage: Usage) -> Json:
        """The counts: here cached tokens stand beside the input's, not in them."""
        return {
            "input_tokens": usage.input - usage.cached - usage.cache_write,
            "cache_creation_input_tokens": usage.cache_write,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": usage.output,
        }

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        content: list[Json] = [{"type": "text", "text": answer.text}] if answer.text is not None else []
        for id_, name, arguments in _numbered(provider, answer, "toolu_"):
            content.append({"type": "tool_use", "id": id_, "name": name, "input": json.loads(arguments)})
        return {
            "id": f"msg_{provider.number()}",
            "type": "message",
            "role": "assistant",
            "model": _model(request, answer),
            "content": content,
            "stop_reason": answer.finish or ("tool_use" if answer.tools else "end_turn"),
            "stop_sequence": None,
            # The client's model has no way to say "no counts": zeroes are what such a gateway sends.
            "usage": self.usage(answer.usage or Usage(0, 0)),
        }

    def events(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Iterator[bytes]:
        done = self.whole(provider, request, answer)

        def event(kind: str, **rest: Any) -> bytes:
            return _sse({"type": kind, **rest}, kind)

        begun = {**done, "content": [], "stop_reason": None, "usage": {**done["usage"], "output_tokens": 1}}
        yield event("message_start", message=begun)
        for index, block in enumerate(done["content"]):
            if block["type"] == "text":
                yield event("content_block_start", index=index, content_block={"type": "text", "text": ""})
                deltas = [{"type": "text_delta", "text": piece} for piece in answer.pieces()]
            else:
                yield event("content_block_start", index=index, content_block={**block, "input": {}})
                text = json.dumps(block["input"])
                half = len(text) // 2
                deltas = [{"type": "input_json_delta", "partial_json": part} for part in (text[:half], text[half:])]
            for delta in deltas:
                yield event("content_block_delta", index=index, delta=delta)
            yield event("content_block_stop", index=index)
        delta = {"stop_reason": done["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=delta, usage={"output_tokens": done["usage"]["output_tokens"]})
        yield event("message_stop")

    def error(self, answer: Answer) -> Json:
        kind = {401: "authentication_error", 429: "rate_limit_error", 529: "overloaded_error"}.get(
            answer.status, "invalid_request_error" if answer.status < 500 else "api_error"
        )
        return {"type": "error", "error": {"type": kind, "message": answer.error or ""}}


class Gemini(Dialect):
    """Gemini generateContent."""

    def _part(self, request: ProviderRequest, answer: Answer, parts: list[Json], *, last: bool) -> Json:
        candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
        if last:
            candidate["finishReason"] = answer.finish or "STOP"
        body: Json = {"candidates": [candidate], "modelVersion": _model(request, answer)}
        if answer.usage and last:
            usage = answer.usage
            body["usageMetadata"] = {
                "promptTokenCount": usage.input,
                "candidatesTokenCount": usage.output,
                "totalTokenCount": usage.input + usage.output,
            }
            if usage.cached:
                body["usageMetadata"]["cachedContentTokenCount"] = usage.cached
        return body

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        parts: list[Json] = [{"text": answer.text}] if answer.text is not None else []
        parts += [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in answer.tools]
        return self._part(request, answer, parts, last=True)

    def events(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Iterator[bytes]:
        parts: list[Json] = [{"text": piece} for piece in answer.pieces()]
        parts += [{"functionCall": {"name": call.name, "args": dict(call.arguments)}} for call in answer.tools]
        for number, part in enumerate(parts or [{"text": ""}], 1):
            yield _sse(self._part(request, answer, [part], last=number >= len(parts)))

    def error(self, answer: Answer) -> Json:
        return {"error": {"code": answer.status, "message": answer.error or "", "status": "SCRIPTED"}}


class Embeddings(Dialect):
    """OpenAI embeddings: the same text gives the same unit vector, other texts other ones."""

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        asked = request.json or {}
        inputs = asked.get("input")
        texts = inputs if isinstance(inputs, list) and not (inputs and isinstance(inputs[0], int)) else [inputs]
        data = []
        for index, text in enumerate(texts):
            vector: Any = embedding_of(str(text), int(asked.get("dimensions") or EMBEDDING_SIZE))
            if asked.get("encoding_format") == "base64":
                vector = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
            data.append({"object": "embedding", "index": index, "embedding": vector})
        usage = answer.usage or Usage()
        counts = {"prompt_tokens": usage.input, "total_tokens": usage.input}
        return {"object": "list", "data": data, "model": _model(request, answer), "usage": counts}


class GeminiEmbeddings(Dialect):
    """Gemini embedContent and batchEmbedContents."""

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        asked = request.json or {}
        if "requests" in asked:
            texts = [json.dumps(one.get("content")) for one in asked["requests"]]
            return {"embeddings": [{"values": embedding_of(text)} for text in texts]}
        return {"embedding": {"values": embedding_of(json.dumps(asked.get("content")))}}


class Models(Dialect):
    """The list of `provider.models`, in the words of OpenAI, Anthropic and Gemini at once."""

    def whole(self, provider: FakeProvider, request: ProviderRequest, answer: Answer) -> Json:
        names = provider.models
        return {
            "object": "list",
            "data": [{"id": name, "object": "model", "type": "model", "display_name": name} for name in names],
            "has_more": False,
            "models": [{"name": f"models/{name}", "displayName": name} for name in names],
        }


def embedding_of(text: str, size: int = EMBEDDING_SIZE) -> list[float]:
    """A unit vector made from the text alone."""
    raw = b"".join(hashlib.sha256(f"{n}:{text}".encode()).digest() for n in range(-(-size // 32)))
    values = [byte / 127.5 - 1 for byte in raw[:size]]
    length = sum(value * value for value in values) ** 0.5 or 1.0
    return [value / length for value in values]


DIALECTS: dict[str, Dialect] = {
    "chat": ChatCompletions(),
    "responses": Responses(),
    "messages": Messages(),
    "gemini": Gemini(),
    "embeddings": Embeddings(),
    "gemini_embeddings": GeminiEmbeddings(),
    "models": Models(),
    "unknown": Dialect(),
}
