"""The client's importers: what agentx-moveworks and agentx-databricks replay, twice, from services on loopback."""

from __future__ import annotations

import json
import re
import sys
import types
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from agentx.integrations import databricks, moveworks
from werkzeug import Request, Response

from tests.sdk.recording import Recording

NOON = (datetime.now(UTC) - timedelta(days=2)).replace(hour=12, minute=0, second=0, microsecond=0)


def at(seconds: float) -> str:
    """An ISO time on that day."""
    return (NOON + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


TABLES: dict[str, list[dict[str, Any]]] = {
    "conversations": [{"conversation_id": "c1", "domain": "hr", "route": "web"}],
    "plugin-calls": [
        {"interaction_id": "i1", "plugin_name": "leave-balance", "served": True, "used": False},
        {"interaction_id": "i1", "plugin_name": "policy", "served": False},
    ],
    "interactions": [
        {
            "interaction_id": "i1",
            "conversation_id": "c1",
            "interaction_type": "chat",
            "user_id": "u7",
            "created_time": at(0),
            "resolved_time": at(2.5),
            "utterance": "How many days off?",
            "response": "Twelve.",
        },
        {"interaction_id": "i2", "conversation_id": "c1", "created_time": at(60), "utterance": "Thanks"},
        {"interaction_id": "i3", "interaction_type": "notification", "created_time": at(90)},
        {"interaction_id": "i4", "utterance": "no time at all"},
    ],
}


@pytest.fixture
def moveworks_api(httpserver) -> Any:
    """The Data API, two records a page."""

    def records(request: Request) -> Response:
        assert request.headers["Authorization"] == "Bearer mw-key"
        table = request.path.rsplit("/", 1)[-1]
        start = int(request.args.get("page", 0))
        body: dict[str, Any] = {"value": TABLES[table][start : start + 2]}
        if start + 2 < len(TABLES[table]):
            body["odata.nextlink"] = httpserver.url_for(f"/export/v1/records/{table}?page={start + 2}")
        return Response(json.dumps(body), content_type="application/json")

    httpserver.expect_request(re.compile(r"^/export/v1/records/.*")).respond_with_handler(records)
    return httpserver


def importer(recording: Recording, api: Any) -> moveworks.MoveworksImporter:
    """An importer into the test's project."""
    return moveworks.MoveworksImporter(
        moveworks.MoveworksDataAPIClient("mw-key", base_url=api.url_for("/export/v1")),
        agentx_api_key=str(recording.client.api_key),
        agentx_base_url=recording.client.base_url,
    )


def test_moveworks(recording: Recording, moveworks_api):
    report = importer(recording, moveworks_api).sync(since=NOON, monitor=True)
    assert (report.interactions, report.ingested, report.failed, report.skipped_no_time) == (4, 3, 0, 1)
    first, second, third = recording.roots()
    assert (first["name"], first["spanId"], first["sessionId"], first["framework"]) == (
        "moveworks-hr",
        "mw:i1",
        "mw_c1",
        "moveworks",
    )
    assert first["metadata"] == {
        "source": "moveworks",
        "conversationId": "c1",
        "interactionId": "i1",
        "interactionType": "chat",
        "domain": "hr",
        "route": "web",
        "userId": "u7",
    }
    assert first["toolCalls"] == [
        {"name": "leave-balance", "served": True, "used": False},
        {"name": "policy", "served": False},
    ]
    assert (first["latencyMs"], first["startedAt"], first["estimatedCostUSD"]) == (2500, _iso(0), None)
    assert (second["sessionId"], "output" in second, "latencyMs" in second) == ("mw_c1", False, False)
    assert (third["name"], third["input"]) == ("moveworks-assistant", '{"interaction_type": "notification"}')
    kpis = recording.client.monitor.kpis("7d")
    assert (kpis["totalRuns"], kpis["toolFailureRate"]) == (3, 0)
    spans = recording.client.monitor.sessions.spans("mw_c1")
    assert [span["spanId"] for span in spans] == ["mw:i1", "mw:i2"]


def _iso(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def test_a_second_moveworks_sync_adds_nothing(recording: Recording, moveworks_api):
    importer(recording, moveworks_api).sync(since=NOON)
    before = list(recording.client.export.iter("traces"))
    again = importer(recording, moveworks_api).sync(since=NOON, monitor=True, evaluate_against="any")
    assert (again.ingested, again.failed, again.trace_eval_skipped_deduped, again.traces_evaluated) == (3, 0, 3, 0)
    assert list(recording.client.export.iter("traces")) == before
    assert recording.totals("7d")["traces"] == 3


def test_the_moveworks_command_keeps_its_cursor_when_a_post_is_refused(
    recording: Recording, moveworks_api, monkeypatch, tmp_path, capsys
):
    """SDK-047: one refused post, the cursor stays, the next run stores what is missing and nothing twice."""
    cursor = tmp_path / "cursor.json"
    monkeypatch.setenv("MOVEWORKS_API_KEY", "mw-key")
    monkeypatch.setenv("AGENTX_API_KEY", str(recording.client.api_key))
    monkeypatch.setenv("AGENTX_API_BASE_URL", str(recording.client.base_url))
    command = [
        "sync",
        "--since",
        "7d",
        "--cursor-file",
        str(cursor),
        "--moveworks-base-url",
        moveworks_api.url_for("/export/v1"),
    ]
    broken = {**TABLES["interactions"][1], "interaction_id": "i2", "utterance": "Thanks"}
    monkeypatch.setitem(TABLES, "interactions", [TABLES["interactions"][0], broken, TABLES["interactions"][2]])
    # A name of spaces is refused by the server: the second record is such a one until the source repairs it.
    wire = moveworks.MoveworksImporter._interaction_wire

    def spoiled(self: Any, interaction: dict[str, Any], *rest: Any) -> Any:
        made = wire(self, interaction, *rest)
        return {**made, "name": ""} if made and interaction["interaction_id"] == "i2" else made

    with monkeypatch.context() as patch:
        patch.setattr(moveworks.MoveworksImporter, "_interaction_wire", spoiled)
        with pytest.raises(SystemExit) as ended:
            moveworks.cli_main(command)
    assert ended.value.code == 1
    assert not cursor.exists()
    assert [root["spanId"] for root in recording.roots()] == ["mw:i1", "mw:i3"]
    moveworks.cli_main(command)
    assert cursor.exists()
    assert [root["spanId"] for root in recording.roots()] == ["mw:i1", "mw:i2", "mw:i3"]
    assert "cursor ->" in capsys.readouterr().out


class MlflowClient:
    """The part of MLflow's client that the importer asks, over traces held in memory."""

    traces: list[Any] = []

    def __init__(self, tracking_uri: str | None = None) -> None:
        self.tracking_uri = tracking_uri

    def search_traces(self, *, experiment_ids: list[str], max_results: int, page_token: Any, order_by: Any) -> Any:
        start = int(page_token or 0)
        page = _Page(self.traces[start : start + 1])
        page.token = str(start + 1) if start + 1 < len(self.traces) else None
        return page


class _Page(list[Any]):
    token: str | None = None


def mlflow_span(
    span_id: str, parent: str | None, name: str, kind: str, start_s: float, end_s: float, **more: Any
) -> Any:
    """A finished MLflow span."""
    ns = int(NOON.timestamp() * 1e9)
    status = types.SimpleNamespace(
        status_code=f"SpanStatusCode.{'ERROR' if 'error' in more else 'OK'}", description=more.get("error")
    )
    return types.SimpleNamespace(
        span_id=span_id,
        parent_id=parent,
        name=name,
        span_type=kind,
        start_time_ns=ns + int(start_s * 1e9),
        end_time_ns=ns + int(end_s * 1e9),
        inputs=more.get("inputs"),
        outputs=more.get("outputs"),
        status=status,
    )


def mlflow_trace(trace_id: str, spans: list[Any], session: str | None = None, state: str = "OK") -> Any:
    """A trace of an experiment."""
    info = types.SimpleNamespace(
        trace_id=trace_id,
        experiment_id="77",
        state=state,
        request_time=int(NOON.timestamp() * 1000),
        trace_metadata={"mlflow.trace.session": session} if session else {},
        tags={},
    )
    return types.SimpleNamespace(info=info, data=types.SimpleNamespace(spans=spans))


@pytest.fixture
def mlflow(monkeypatch) -> Iterator[type[MlflowClient]]:
    """An importable `mlflow.client` with two finished traces and a running one."""
    module = types.ModuleType("mlflow.client")
    module.MlflowClient = MlflowClient  # type: ignore[attr-defined]
    package = types.ModuleType("mlflow")
    package.client = module  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", package)
    monkeypatch.setitem(sys.modules, "mlflow.client", module)
    MlflowClient.traces = [
        mlflow_trace(
            "tr-1",
            [
                mlflow_span("a", None, "field-agent", "AGENT", 0, 3, inputs={"q": "x"}, outputs="done"),
                mlflow_span("b", "a", "plan", "CHAIN", 0.5, 2.5),
                mlflow_span("c", "b", "sql", "TOOL", 1, 2, inputs={"query": "select 1"}, outputs=[1]),
                mlflow_span("d", "b", "mail", "TOOL", 2, 2.4, error="smtp is down"),
            ],
            session="s-9",
        ),
        mlflow_trace("tr-2", [mlflow_span("a", None, "field-agent", "AGENT", 10, 11, error="gave up")]),
        mlflow_trace("tr-3", [mlflow_span("a", None, "running", "AGENT", 20, 21)], state="IN_PROGRESS"),
    ]
    yield MlflowClient


def test_databricks_twice(recording: Recording, mlflow, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("AGENTX_API_KEY", str(recording.client.api_key))
    monkeypatch.setenv("AGENTX_API_BASE_URL", str(recording.client.base_url))
    command = ["sync", "--experiment-id", "77", "--since", "7d", "--monitor", "--cursor-file", str(tmp_path / "cursor")]
    databricks.cli_main(command)
    said = capsys.readouterr().out
    assert "traces=2 spans=5 tool_calls=2 ingested=5 failed=0 sessions=1 skipped_in_progress=1" in said
    tree, failed = recording.roots()
    assert recording.shape(tree) == (
        "field-agent",
        "tool",
        [("plan", "chain", [("sql", "chain", []), ("mail", "chain", [])])],
    )
    assert (tree["spanId"], tree["sessionId"], tree["framework"], tree["latencyMs"]) == (
        "dbx:tr-1",
        "dbx_s-9",
        "databricks",
        3000,
    )
    assert tree["metadata"] == {"source": "databricks", "mlflowTraceId": "tr-1", "experimentId": "77"}
    assert [(call["name"], call["success"]) for call in tree["toolCalls"]] == [("sql", True), ("mail", False)]
    assert {span["spanId"] for span in recording.spans(tree)} == {
        "dbx:tr-1",
        "dbx:tr-1:b",
        "dbx:tr-1:c",
        "dbx:tr-1:d",
    }
    assert recording.child(tree, "mail")["error"] == "smtp is down"
    assert (failed["error"], failed["sessionId"].startswith("trace_")) == ("gave up", True)
    assert recording.client.monitor.kpis("7d")["toolFailureRate"] == 0.5
    before = list(recording.client.export.iter("traces"))
    databricks.cli_main(command)
    assert "ingested=5 failed=0" in capsys.readouterr().out
    assert list(recording.client.export.iter("traces")) == before


def test_mlflow_export_settings_name_a_door_that_takes_a_batch(recording: Recording):
    """The variables the client sets for MLflow's exporter, used by OpenTelemetry's own."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    settings = databricks.enable_mlflow_export(
        api_key=str(recording.client.api_key), base_url=str(recording.client.base_url), dry_run=True
    )
    name, _, value = settings["OTEL_EXPORTER_OTLP_TRACES_HEADERS"].partition("=")
    provider = TracerProvider(resource=Resource({"service.name": settings["OTEL_SERVICE_NAME"]}))
    exporter = OTLPSpanExporter(settings["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"], headers={name: value})
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("mlflow").start_as_current_span("predict") as span:
        span.set_attribute("mlflow.spanType", '"AGENT"')
        span.set_attribute("mlflow.spanInputs", '{"q": "x"}')
        span.set_attribute("mlflow.spanOutputs", '"y"')
    provider.shutdown()
    root = recording.root()
    assert (root["input"], root["output"], root["spanKind"]) == ({"q": "x"}, "y", "agent")
    assert root["framework"] == "databricks-agent"
