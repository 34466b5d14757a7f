"""How spans of each attribute convention become rows: fields, kinds, sessions, labels, tool folding."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.tracing.ingest.caps import MAX_TOOL_CALLS
from apps.tracing.ingest.records import SpanIn
from apps.tracing.otlp import jsonbody, mapping
from apps.tracing.otlp import protobuf as protobuf_reader
from tests.tracing.otlp import build
from tests.tracing.otlp.build import MS, ROOT_ID, START, TRACE_ID, span

MESSAGES = [{"role": "user", "parts": [{"type": "text", "content": "Where is my order?"}]}]
ANSWER = [{"role": "assistant", "parts": [{"type": "text", "content": "On its way."}], "finish_reason": "stop"}]


@pytest.fixture(params=["protobuf", "json"])
def rows_of(request: pytest.FixtureRequest) -> Any:
    """Map spans through one of the two encodings: every rule holds for both."""

    def rows(*spans: dict[str, Any], **options: Any) -> list[SpanIn]:
        if request.param == "protobuf":
            decoded = protobuf_reader.decode(build.protobuf(*spans, **options))
        else:
            decoded = jsonbody.decode(build.as_json(*spans, **options))
        assert decoded.rejected == []
        mapped, broken = mapping.map_spans(decoded.spans)
        assert broken == []
        return mapped

    return rows


def one(rows_of: Any, attributes: dict[str, Any], name: str = "step", **fields: Any) -> SpanIn:
    return rows_of(span(name=name, attributes=attributes, **fields))[0]


def loaded(raw: bytes | None) -> Any:
    return None if raw is None else json.loads(raw)


def metadata(row: SpanIn) -> dict[str, Any]:
    return loaded(row.metadata) or {}


class TestIdentity:
    def test_ids_name_start_and_latency(self, rows_of: Any) -> None:
        root, child = rows_of(span(), span("00f067aa0ba902b8", "step", ROOT_ID, end=START + 1_500_000))
        assert (root.span_id, root.parent_span_id, root.name) == (ROOT_ID, None, "agent")
        assert (root.start_ns, root.latency_ms) == (START, 250.0)
        assert (child.parent_span_id, child.latency_ms) == (ROOT_ID, 1.5)

    def test_an_end_before_the_start_is_no_negative_latency(self, rows_of: Any) -> None:
        assert one(rows_of, {}, end=START - MS).latency_ms == 0

    def test_a_parent_of_zeros_is_no_parent(self, rows_of: Any) -> None:
        assert rows_of(span(parent="0000000000000000"))[0].parent_span_id is None


class TestGenAI:
    def test_current_names(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "OpenAI",
                "gen_ai.request.model": "gpt-4o",
                "gen_ai.response.model": "gpt-4o-2024-08-06",
                "gen_ai.input.messages": json.dumps(MESSAGES),
                "gen_ai.output.messages": json.dumps(ANSWER),
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 20,
                "gen_ai.usage.cache_read.input_tokens": 60,
                "gen_ai.usage.cache_creation.input_tokens": 10,
                "gen_ai.request.temperature": 0.2,
            },
        )
        assert loaded(row.input) == MESSAGES
        assert loaded(row.output) == ANSWER
        assert (row.model, row.kind) == ("gpt-4o", "llm")
        assert (row.input_tokens, row.output_tokens) == (100, 20)
        assert (row.cache_read_tokens, row.cache_write_tokens) == (60, 10)
        assert metadata(row)["gen_ai.response.model"] == "gpt-4o-2024-08-06"
        assert metadata(row)["gen_ai.request.temperature"] == 0.2
        assert "gen_ai.input.messages" not in metadata(row)

    def test_older_names_and_response_model_alone(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "gen_ai.response.model": "claude-sonnet-4",
                "gen_ai.usage.prompt_tokens": 7,
                "gen_ai.usage.completion_tokens": 3,
                "gen_ai.usage.cache_read_input_tokens": 2,
                "gen_ai.usage.cache_creation_input_tokens": 1,
            },
        )
        assert row.model == "claude-sonnet-4"
        assert (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens) == (7, 3, 2, 1)

    def test_structured_messages(self, rows_of: Any) -> None:
        row = one(rows_of, {"gen_ai.input.messages": MESSAGES, "gen_ai.output.messages": ANSWER})
        assert loaded(row.input) == MESSAGES
        assert loaded(row.output) == ANSWER

    @pytest.mark.parametrize("structured", [True, False])
    def test_system_instructions_stand_before_the_input(self, rows_of: Any, structured: bool) -> None:
        parts = [{"type": "text", "content": "Be brief."}]
        row = one(
            rows_of,
            {
                "gen_ai.system_instructions": parts if structured else json.dumps(parts),
                "gen_ai.input.messages": json.dumps(MESSAGES),
            },
        )
        assert loaded(row.input) == [{"role": "system", "parts": parts}, *MESSAGES]

    @pytest.mark.parametrize(
        ("given", "rest"),
        [
            (None, []),
            ("[]", []),
            ("hello", [{"role": "user", "content": "hello"}]),
            ('{"role":"user"}', [{"role": "user"}]),
        ],
    )
    def test_system_instructions_before_any_input(self, rows_of: Any, given: str | None, rest: list[Any]) -> None:
        attributes = {"gen_ai.system_instructions": "Be brief."} | ({"gen_ai.input.messages": given} if given else {})
        assert loaded(one(rows_of, attributes).input) == [{"role": "system", "content": "Be brief."}, *rest]

    def test_messages_in_span_events(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {"gen_ai.operation.name": "chat"},
            events=[
                ("gen_ai.system.message", {"content": "Be brief."}),
                ("gen_ai.user.message", {"content": "Hi", "gen_ai.system": "openai"}),
                ("gen_ai.assistant.message", {"tool_calls": '[{"id":"c1"}]'}),
                ("gen_ai.tool.message", {"content": "42", "id": "c1"}),
                ("gen_ai.choice", {"index": 0, "finish_reason": "stop", "message": '{"content":"Hello"}'}),
                ("something.else", {"a": 1}),
            ],
        )
        assert loaded(row.input) == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "tool_calls": [{"id": "c1"}]},
            {"role": "tool", "content": "42", "id": "c1"},
        ]
        assert loaded(row.output) == [{"role": "assistant", "content": "Hello", "index": 0, "finish_reason": "stop"}]
        assert [event["name"] for event in metadata(row)["otel.events"]] == ["something.else"]

    def test_operation_details_event(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {},
            events=[
                (
                    "gen_ai.client.inference.operation.details",
                    {
                        "gen_ai.input.messages": MESSAGES,
                        "gen_ai.output.messages": json.dumps(ANSWER),
                        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
                    },
                )
            ],
        )
        assert [message["role"] for message in loaded(row.input)] == ["system", "user"]
        assert loaded(row.output) == ANSWER

    def test_content_events(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {},
            events=[
                ("gen_ai.content.prompt", {"gen_ai.prompt": '[{"role":"user","content":"Hi"}]'}),
                ("gen_ai.content.completion", {"gen_ai.completion": "Hello"}),
            ],
        )
        assert loaded(row.input) == [{"role": "user", "content": "Hi"}]
        assert loaded(row.output) == "Hello"

    def test_time_to_first_token_and_streaming(self, rows_of: Any) -> None:
        found = metadata(one(rows_of, {"gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.request.stream": True}))
        assert (found["timeToFirstTokenMs"], found["streaming"]) == (250, True)
        assert metadata(one(rows_of, {"gen_ai.server.time_to_first_token": 1.5}))["timeToFirstTokenMs"] == 1500

    def test_tool_definitions_become_the_tools_of_the_call(self, rows_of: Any) -> None:
        tools = [{"type": "function", "name": "lookup", "parameters": {}}]
        assert metadata(one(rows_of, {"gen_ai.tool.definitions": json.dumps(tools)}))["tools"] == tools

    def test_retrieval(self, rows_of: Any) -> None:
        documents = [{"id": "d1", "score": 0.9}]
        row = one(
            rows_of,
            {
                "gen_ai.operation.name": "retrieval",
                "gen_ai.retrieval.query.text": "returns",
                "gen_ai.retrieval.documents": json.dumps(documents),
            },
        )
        assert (row.kind, loaded(row.input), loaded(row.output)) == ("retrieval", "returns", documents)
        assert metadata(row)["doc_count"] == 1


class TestOpenLLMetry:
    def test_indexed_names_in_index_order(self, rows_of: Any) -> None:
        attributes: dict[str, Any] = {f"gen_ai.prompt.{i}.content": f"m{i}" for i in (10, 2, 0, 1)}
        attributes |= {f"gen_ai.prompt.{i}.role": "user" for i in (2, 10, 1, 0)}
        attributes |= {
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": "done",
            "gen_ai.completion.0.finish_reason": "tool_calls",
            "gen_ai.completion.0.tool_calls.0.name": "lookup",
            "gen_ai.completion.0.tool_calls.0.arguments": '{"id":1}',
        }
        row = one(rows_of, attributes)
        assert [message["content"] for message in loaded(row.input)] == ["m0", "m1", "m2", "m10"]
        assert loaded(row.output) == [
            {
                "role": "assistant",
                "content": "done",
                "finish_reason": "tool_calls",
                "tool_calls": [{"name": "lookup", "arguments": '{"id":1}'}],
            }
        ]

    def test_unindexed_names(self, rows_of: Any) -> None:
        row = one(rows_of, {"gen_ai.prompt": "Hi", "gen_ai.completion": "Hello"})
        assert (loaded(row.input), loaded(row.output)) == ("Hi", "Hello")

    def test_entities_and_kind(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.input": '{"inputs":{"a":1}}',
                "traceloop.entity.output": '"text"',
            },
        )
        assert (row.kind, loaded(row.input), loaded(row.output)) == ("tool", {"inputs": {"a": 1}}, "text")

    def test_indexed_names_beat_lower_conventions_and_lose_to_current_ones(self, rows_of: Any) -> None:
        legacy = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "legacy"}
        row = one(rows_of, legacy | {"input.value": "other"})
        assert loaded(row.input) == [{"role": "user", "content": "legacy"}]
        assert metadata(row)["input.value"] == "other"
        row = one(rows_of, legacy | {"gen_ai.input.messages": json.dumps(MESSAGES)})
        assert loaded(row.input) == MESSAGES
        assert metadata(row)["gen_ai.prompt"] == [{"role": "user", "content": "legacy"}]


class TestOpenInference:
    def test_llm_span(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "openinference.span.kind": "LLM",
                "input.value": '{"messages":[]}',
                "input.mime_type": "application/json",
                "output.value": '{"looks":"like json"}',
                "output.mime_type": "text/plain",
                "llm.model_name": "gpt-4o",
                "llm.token_count.prompt": 9,
                "llm.token_count.completion": 4,
                "llm.token_count.prompt_details.cache_read": 3,
                "llm.token_count.prompt_details.cache_write": 2,
                "llm.invocation_parameters": '{"temperature":0}',
            },
        )
        assert (row.kind, row.model) == ("llm", "gpt-4o")
        assert loaded(row.input) == {"messages": []}
        assert loaded(row.output) == '{"looks":"like json"}'
        assert (row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens) == (9, 4, 3, 2)
        assert metadata(row)["llm.invocation_parameters"] == '{"temperature":0}'

    def test_flattened_messages_without_input_value(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "llm.input_messages.0.message.role": "user",
                "llm.input_messages.0.message.contents.0.message_content.type": "text",
                "llm.input_messages.0.message.contents.0.message_content.text": "Hi",
                "llm.output_messages.0.message.role": "assistant",
                "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "lookup",
                "llm.tools.0.tool.json_schema": '{"type":"function","function":{"name":"lookup"}}',
            },
        )
        assert loaded(row.input) == [{"role": "user", "contents": [{"type": "text", "text": "Hi"}]}]
        assert loaded(row.output) == [{"role": "assistant", "tool_calls": [{"function": {"name": "lookup"}}]}]
        assert metadata(row)["tools"] == [{"type": "function", "function": {"name": "lookup"}}]

    def test_retrieved_documents_are_chunks(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "openinference.span.kind": "RETRIEVER",
                "input.value": "returns?",
                "retrieval.documents.0.document.content": "Returns take 14 days.",
                "retrieval.documents.0.document.score": 0.8,
                "retrieval.documents.0.document.metadata": '{"source":"faq.md"}',
                "retrieval.documents.1.document.content": "Keep the receipt.",
            },
        )
        assert row.kind == "retrieval"
        assert loaded(row.output) == ["Returns take 14 days.", "Keep the receipt."]
        assert metadata(row)["doc_count"] == 2
        assert metadata(row)["retrieval.documents"] == [{"score": 0.8, "metadata": {"source": "faq.md"}}, {}]

    def test_reranker_and_embedding(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "openinference.span.kind": "RERANKER",
                "reranker.query": "q",
                "reranker.model_name": "rerank-3",
                "reranker.input_documents.0.document.content": "a",
                "reranker.output_documents.0.document.content": "b",
            },
        )
        assert (row.kind, row.model, loaded(row.input), loaded(row.output)) == ("reranker", "rerank-3", "q", ["b"])
        assert metadata(row)["reranker.input_documents"] == [{"content": "a"}]
        row = one(
            rows_of,
            {
                "openinference.span.kind": "EMBEDDING",
                "embedding.model_name": "text-embedding-3-small",
                "embedding.embeddings.0.embedding.text": "hello",
                "embedding.embeddings.0.embedding.vector": [0.5] * 1536,
            },
        )
        assert (row.kind, row.model) == ("embedding", "text-embedding-3-small")
        assert loaded(row.input) == [{"text": "hello", "vector": "[1536 numbers]"}]


class TestMLflow:
    def test_encoded_values_are_unwrapped(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "mlflow.spanType": '"CHAT_MODEL"',
                "mlflow.spanInputs": '{"messages":[{"role":"user","content":"Hi"}]}',
                "mlflow.spanOutputs": '"Hello"',
                "mlflow.chat.tokenUsage": '{"input_tokens":11,"output_tokens":5,"total_tokens":16}',
                "mlflow.spanFunctionName": '"predict"',
            },
            name="predict",
        )
        assert (row.kind, row.input_tokens, row.output_tokens) == ("llm", 11, 5)
        assert loaded(row.input) == {"messages": [{"role": "user", "content": "Hi"}]}
        assert loaded(row.output) == "Hello"
        assert metadata(row)["mlflow.spanFunctionName"] == "predict"

    @pytest.mark.parametrize(
        ("sent", "stored"), [("42", 42), ("null", None), ("plain", "plain"), ('{"x":NaN}', {"x": None})]
    )
    def test_odd_values(self, rows_of: Any, sent: str, stored: Any) -> None:
        assert loaded(one(rows_of, {"mlflow.spanOutputs": sent}).output) == stored

    def test_its_genai_form_reads_alike(self, rows_of: Any) -> None:
        native = span(
            "00000000000000a2",
            "get_weather",
            ROOT_ID,
            attributes={
                "mlflow.spanType": '"TOOL"',
                "mlflow.spanInputs": '{"city":"Oslo"}',
                "mlflow.spanOutputs": '"rain"',
            },
        )
        translated = span(
            "00000000000000a2",
            "execute_tool get_weather",
            ROOT_ID,
            attributes={
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "get_weather",
                "gen_ai.tool.call.arguments": '{"city":"Oslo"}',
                "gen_ai.tool.call.result": '"rain"',
            },
        )
        options: dict[str, Any] = {"scope": "mlflow.tracing.provider", "resource": {"service.name": "databricks-agent"}}
        (root, tool), (other_root, other_tool) = (rows_of(span(), one, **options) for one in (native, translated))
        assert root.framework == other_root.framework == "databricks-agent"
        assert root.tool_calls == other_root.tool_calls
        assert (tool.input, tool.output, tool.kind) == (other_tool.input, other_tool.output, other_tool.kind)


class TestOthers:
    def test_vercel_ai_sdk(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "ai.operationId": "ai.generateText",
                "ai.prompt": '{"messages":[]}',
                "ai.response.text": "Hello",
                "ai.model.id": "gpt-4o",
                "ai.usage.promptTokens": 5,
                "ai.usage.completionTokens": 6,
                "ai.response.msToFirstChunk": 120,
            },
        )
        assert (row.model, row.input_tokens, row.output_tokens) == ("gpt-4o", 5, 6)
        assert (loaded(row.input), loaded(row.output)) == ({"messages": []}, "Hello")
        assert metadata(row)["timeToFirstTokenMs"] == 120

    def test_langfuse(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "langfuse.observation.type": "generation",
                "langfuse.observation.input": '{"q":1}',
                "langfuse.observation.output": "Hello",
                "langfuse.observation.model.name": "gpt-4o",
                "langfuse.observation.usage_details": '{"input":3,"output":4}',
                "langfuse.session.id": "s1",
            },
        )
        assert (row.kind, row.model, row.session_id) == ("llm", "gpt-4o", "s1")
        assert (row.input_tokens, row.output_tokens) == (3, 4)
        assert (loaded(row.input), loaded(row.output)) == ({"q": 1}, "Hello")


class TestKind:
    @pytest.mark.parametrize(
        ("attributes", "kind"),
        [
            ({"openinference.span.kind": "GUARDRAIL", "gen_ai.operation.name": "chat"}, "guardrail"),
            ({"gen_ai.operation.name": "embeddings", "mlflow.spanType": "TOOL"}, "embedding"),
            ({"mlflow.spanType": '"AGENT"', "langfuse.observation.type": "tool"}, "agent"),
            ({"langfuse.observation.type": "retriever", "gen_ai.tool.name": "x"}, "retrieval"),
            ({"gen_ai.tool.name": "x", "gen_ai.request.model": "m"}, "tool"),
            ({"openinference.span.kind": "UNKNOWN", "gen_ai.operation.name": "invoke_agent"}, "agent"),
            ({"openinference.span.kind": "banana"}, None),
        ],
    )
    def test_the_first_known_word_wins(self, rows_of: Any, attributes: dict[str, Any], kind: str | None) -> None:
        assert one(rows_of, attributes).kind == kind

    def test_an_unknown_word_is_kept_in_the_metadata(self, rows_of: Any) -> None:
        assert metadata(one(rows_of, {"openinference.span.kind": "banana"}))["openinference.span.kind"] == "banana"


class TestFramework:
    @pytest.mark.parametrize(
        ("attributes", "scope", "resource", "label"),
        [
            ({"gen_ai.provider.name": "openai", "gen_ai.system": "azure"}, "s", {"service.name": "svc"}, "openai"),
            ({"gen_ai.system": "azure"}, "s", {"service.name": "svc"}, "azure"),
            ({}, "my.scope", {"service.name": "svc"}, "my.scope"),
            ({}, "mlflow", {"service.name": "svc"}, "svc"),
            ({}, "mlflow.tracing", {"service.name": "svc"}, "svc"),
            ({}, "mlflowish", {"service.name": "svc"}, "mlflowish"),
            ({}, "", {"service.name": "svc"}, "svc"),
            ({}, "", {}, "otel"),
            ({"gen_ai.provider.name": "  "}, "", {}, "otel"),
        ],
    )
    def test_ladder(
        self, rows_of: Any, attributes: dict[str, Any], scope: str, resource: dict[str, Any], label: str
    ) -> None:
        assert rows_of(span(attributes=attributes), scope=scope, resource=resource)[0].framework == label


class TestSession:
    @pytest.mark.parametrize(
        ("attributes", "session"),
        [
            ({"agentx.session_id": "a", "session.id": "b", "gen_ai.conversation.id": "c"}, "a"),
            ({"session.id": "b", "gen_ai.conversation.id": "c"}, "b"),
            ({"gen_ai.conversation.id": "c"}, "c"),
            ({"session.id": 42}, "42"),
            ({"session.id": ""}, TRACE_ID),
            ({}, TRACE_ID),
        ],
    )
    def test_ladder(self, rows_of: Any, attributes: dict[str, Any], session: str) -> None:
        assert one(rows_of, attributes).session_id == session


class TestMetadata:
    def test_prompt_identity(self, rows_of: Any) -> None:
        found = metadata(one(rows_of, {"agentx.prompt_name": "support", "agentx.version": 3}))
        assert (found["promptName"], found["version"]) == ("support", "3")

    def test_own_attributes_are_kept_under_their_names(self, rows_of: Any) -> None:
        found = metadata(
            one(rows_of, {"my.flag": True, "my.list": ["a", 1], "my.map": {"x": 1.5}, "my.bytes": b"\x00"})
        )
        assert found["my.flag"] is True
        assert found["my.list"] == ["a", 1]
        assert found["my.map"] == {"x": 1.5}
        assert found["my.bytes"] == "AA=="

    def test_resource_and_trace_id_stand_on_the_topmost_row(self, rows_of: Any) -> None:
        resource = {"service.name": "svc", "service.version": "1.2", "telemetry.sdk.name": "opentelemetry", "team": "x"}
        root, child = rows_of(
            span(attributes={"session.id": "s", "service.name": "own"}),
            span("00f067aa0ba902b8", "step", ROOT_ID),
            resource=resource,
        )
        found = metadata(root)
        assert (found["service.name"], found["service.version"], found["team"]) == ("own", "1.2", "x")
        assert found["otel.trace_id"] == TRACE_ID
        assert "telemetry.sdk.name" not in found
        assert child.metadata is None

    def test_numbers_that_json_lacks_become_text(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {"a": float("nan"), "b": float("inf"), "c": float("-inf"), "gen_ai.usage.input_tokens": float("nan")},
        )
        found = metadata(row)
        assert row.input_tokens is None
        assert {type(found[name]) for name in "abc"} == {str}
        assert json.loads(row.metadata or b"", parse_constant=lambda _: pytest.fail("not strict JSON"))


class TestTokens:
    def test_subset_producer(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "gen_ai.usage.input_tokens": 130213,
                "gen_ai.usage.cache_read_input_tokens": 128955,
                "gen_ai.usage.cache_creation_input_tokens": 1253,
            },
        )
        assert row.input_tokens == 130213
        assert row.metadata is None or "agentx.cacheTokensAdded" not in metadata(row)

    def test_additive_producer_gets_the_same_total(self, rows_of: Any) -> None:
        row = one(
            rows_of,
            {
                "gen_ai.usage.input_tokens": 5,
                "gen_ai.usage.cache_read_input_tokens": 128955,
                "gen_ai.usage.cache_creation_input_tokens": 1253,
            },
        )
        assert row.input_tokens == 130213
        assert metadata(row)["agentx.cacheTokensAdded"] is True

    def test_counts_as_text(self, rows_of: Any) -> None:
        row = one(rows_of, {"gen_ai.usage.input_tokens": "12", "gen_ai.usage.output_tokens": "many"})
        assert (row.input_tokens, row.output_tokens) == (12, None)
        assert metadata(row)["gen_ai.usage.output_tokens"] == "many"


class TestError:
    @pytest.mark.parametrize(
        ("status", "events", "error"),
        [
            ((2, "boom"), [("exception", {"exception.message": "other"})], "boom"),
            ((2, ""), [], "error"),
            ((2, ""), [("exception", {"exception.message": "why"})], "why"),
            ((0, ""), [("exception", {"exception.type": "ValueError"})], "ValueError"),
            ((1, ""), [("exception", {"exception.type": "ValueError"})], None),
            ((0, "ignored"), [], None),
        ],
    )
    def test_text(self, rows_of: Any, status: tuple[int, str], events: list[Any], error: str | None) -> None:
        row = one(rows_of, {}, status=status, events=events)
        assert row.error == error
        if events:
            assert metadata(row)["otel.events"][0]["name"] == "exception"


class TestToolFolding:
    def tool(self, span_id: str, parent: str, **fields: Any) -> dict[str, Any]:
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"} | fields.pop(
            "attributes", {}
        )
        return span(span_id, "execute_tool lookup", parent, attributes=attributes, **fields)

    def test_grandchild_goes_to_the_topmost_ancestor(self, rows_of: Any) -> None:
        root, step, tool = rows_of(
            span(),
            span("00000000000000a1", "step", ROOT_ID),
            self.tool(
                "00000000000000a2",
                "00000000000000a1",
                attributes={"gen_ai.tool.call.arguments": '{"id":1}', "gen_ai.tool.call.result": "found"},
            ),
        )
        assert loaded(root.tool_calls) == [
            {"name": "lookup", "input": {"id": 1}, "output": "found", "latency_ms": 250.0, "success": True}
        ]
        assert step.tool_calls is None
        assert (tool.kind, loaded(tool.input), loaded(tool.output)) == ("tool", {"id": 1}, "found")
        assert metadata(tool)["gen_ai.tool.name"] == "lookup"

    def test_failure_and_order_by_start(self, rows_of: Any) -> None:
        root, *_ = rows_of(
            span(),
            self.tool("00000000000000a2", ROOT_ID, start=START + 9, status=(2, "timed out")),
            self.tool("00000000000000a3", ROOT_ID, start=START + 3),
        )
        calls = loaded(root.tool_calls)
        assert [call["success"] for call in calls] == [True, False]
        assert calls[1]["error"] == "timed out"

    def test_mlflow_and_openinference_tools(self, rows_of: Any) -> None:
        root, *_ = rows_of(
            span(),
            span(
                "00000000000000a2",
                "get_weather",
                ROOT_ID,
                attributes={
                    "mlflow.spanType": '"TOOL"',
                    "mlflow.spanInputs": '{"city":"Oslo"}',
                    "mlflow.spanOutputs": '"rain"',
                },
            ),
            span(
                "00000000000000a3", "search", ROOT_ID, start=START + 1, attributes={"openinference.span.kind": "TOOL"}
            ),
        )
        first, second = loaded(root.tool_calls)
        assert (first["name"], first["input"], first["output"]) == ("get_weather", {"city": "Oslo"}, "rain")
        assert second["name"] == "search"

    def test_folded_calls_do_not_make_the_root_a_tool(self, rows_of: Any) -> None:
        assert rows_of(span(), self.tool("00000000000000a2", ROOT_ID))[0].kind == "chain"

    def test_a_tool_without_an_ancestor_in_the_batch_stays_alone(self, rows_of: Any) -> None:
        (row,) = rows_of(self.tool("00000000000000a2", ROOT_ID))
        assert row.tool_calls is None

    def test_a_deep_chain_of_tools(self, rows_of: Any) -> None:
        ids = [f"{i:016x}" for i in range(1, 3001)]
        chain = [self.tool(one, parent) for one, parent in zip(ids, [ROOT_ID, *ids], strict=False)]
        rows = rows_of(*chain, span())
        assert len(loaded(rows[-1].tool_calls)) == MAX_TOOL_CALLS

    def test_a_circle_of_parents_ends(self, rows_of: Any) -> None:
        rows = rows_of(
            self.tool("00000000000000a1", "00000000000000a2"), self.tool("00000000000000a2", "00000000000000a1")
        )
        assert len(rows) == 2


def test_monitor_switch(rows_of: Any, settings: Any) -> None:
    assert one(rows_of, {}).monitor is None
    settings.OTEL_MONITOR = False
    assert one(rows_of, {}).monitor is False
