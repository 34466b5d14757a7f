"""The field's OpenTelemetry instrumentors of the OpenAI client, exporting to the server: OpenInference and OpenLLMetry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tests.sdk.recording import Recording
from tests.support.providers import Answer, ToolCall, Usage

openai = pytest.importorskip("openai", reason="the openai package is not installed")

QUESTION = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Oslo?"}]


def _openinference() -> Any:
    module = pytest.importorskip(
        "openinference.instrumentation.openai", reason="openinference-instrumentation-openai is not installed"
    )
    return module.OpenAIInstrumentor()


def _openllmetry() -> Any:
    module = pytest.importorskip(
        "opentelemetry.instrumentation.openai", reason="opentelemetry-instrumentation-openai is not installed"
    )
    return module.OpenAIInstrumentor()


@pytest.fixture(params=[_openinference, _openllmetry], ids=["openinference", "openllmetry"])
def chat(request: pytest.FixtureRequest, recording: Recording, fake_provider) -> Iterator[Any]:
    """An instrumented client whose spans go to the server one by one, inside a span of the program's own."""
    instrumentor = request.param()
    provider = TracerProvider(resource=Resource({"service.name": "weather"}))
    exporter = OTLPSpanExporter(
        f"{recording.client.base_url}/otel/v1/traces", headers={"x-api-key": str(recording.client.api_key)}
    )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor.instrument(tracer_provider=provider)
    try:
        with (
            openai.OpenAI(base_url=fake_provider.openai_url, api_key="sk-x", max_retries=0) as client,
            provider.get_tracer("weather").start_as_current_span("weather-agent"),
        ):
            yield client
    finally:
        instrumentor.uninstrument()
        provider.shutdown()


def test_chat_completions(recording: Recording, fake_provider, chat):
    fake_provider.answer(
        Answer(tools=[ToolCall("lookup", {"city": "Oslo"})], usage=Usage(100, 10, cached=60)),
        Answer("It rains in Oslo.", usage=Usage(140, 8)),
        Answer.failure(429, "slow down"),
    )
    for _ in range(2):
        chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION)
    with pytest.raises(openai.RateLimitError):
        chat.chat.completions.create(model="gpt-4o-mini", messages=QUESTION)
    rows = sorted(recording.client.export.iter("traces"), key=lambda row: int(row["startedAtUnixNano"]))
    asked, said, refused = rows
    assert {row["spanKind"] for row in rows} == {"llm"}
    assert [row["model"] for row in rows[:2]] == ["gpt-4o-mini"] * 2
    assert (asked["inputTokens"], asked["outputTokens"], asked["cacheReadTokens"]) == (100, 10, 60)
    assert "lookup" in str(asked["output"])
    assert (said["inputTokens"], said["outputTokens"]) == (140, 8)
    assert "It rains in Oslo." in str(said["output"])
    assert "Weather in Oslo?" in str(said["input"])
    assert "slow down" in refused["error"]
    totals = recording.totals()
    assert (totals["inputTokens"], totals["outputTokens"]) == (240, 18)
