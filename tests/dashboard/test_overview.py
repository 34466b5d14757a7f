"""Overview: numbers equal the API's, filters stand in the address, and the first-use page leads to a trace."""

from __future__ import annotations

import re

import pytest

from apps.analytics import selectors as analytics
from apps.core.windows import parse_free
from apps.operations.demo import DemoProgress
from tests.dashboard.seed import conversation, store


@pytest.fixture
def page(client):
    def get(query: str = "", **headers):
        return client.get(f"/{query}", headers=headers or None)

    return get


def test_the_root_address_is_the_overview(client, project):
    conversation(project)
    answer = client.get("/")
    assert answer.status_code == 200
    assert "<h1>Overview</h1>" in answer.content.decode()


def test_key_figures_equal_the_kpis_api(client, project):
    conversation(project)
    store(project, output="")
    kpis = client.get("/api/v1/monitor/kpis?window=7d", headers={"x-api-key": project.key}).json()
    figures = {figure.label: figure for figure in client.get("/?window=7d").context["page"].figures()}
    assert figures["Total runs"].value == kpis["totalRuns"] == 3
    assert figures["Health rate"].value == kpis["healthRate"] == pytest.approx(1 / 3)
    assert figures["Failure rate"].value == kpis["failureRate"]
    assert figures["Tool failure rate"].value == kpis["toolFailureRate"]
    assert figures["p95 latency"].value == kpis["p95LatencyMs"]
    assert figures["Downvote rate"].value is None


def test_a_figure_without_data_is_a_dash(client, project):
    store(project, monitor=False)
    html = client.get("/").content.decode()
    strip = html[html.index('<ul class="kpis"') : html.index("</ul>", html.index('<ul class="kpis"'))]
    assert strip.count('<span class="kpi-value">–</span>') == 6
    assert "%" not in strip and "$" not in strip


def test_top_failing_names_tools_errors_and_empty_answers(client, project):
    conversation(project)
    store(project, error="boom")
    store(project, output="  ")
    groups = {label: rows for _id, label, rows in client.get("/").context["page"].top_failing()}
    assert {row.name for row in groups["Everything"]} == {"billing.refund", "Trace error", "Empty response"}
    assert [row.name for row in groups["Tools"]] == ["billing.refund"]
    # No filter names empty answers; a link would show every trace.
    assert [row.name for row in groups["Everything"] if not row.url] == ["Empty response"]
    [agent] = groups["Agents"]
    assert (agent.name, agent.count) == ("support-agent", 3)
    # A run that failed by a tool or an empty answer has no error: the agent's row leads to all its runs.
    assert client.get(agent.url).context["listing"].total == 4


def test_filters_of_the_address_narrow_the_traffic_charts(client, project):
    conversation(project)
    store(project, "other-agent", framework="crewai")
    everything = client.get("/").context["page"]
    narrowed = client.get("/?framework=crewai").context["page"]
    assert everything.filtered["totals"]["traces"] == 3
    assert narrowed.has_filters and narrowed.filtered["totals"]["traces"] == 1
    assert narrowed.kpis == everything.kpis
    assert client.get("/?status=nonsense&agent=nobody").status_code == 200


@pytest.mark.parametrize("window", ["24h", "7d", "30d", "", "99y", "<script>"])
def test_any_window_gives_a_page(client, project, window):
    conversation(project)
    answer = client.get("/", {"window": window})
    assert answer.status_code == 200
    assert answer.context["page"].window.name == (window if window in ("24h", "30d") else "7d")


def test_every_chart_has_a_name_and_a_table(client, project):
    conversation(project)
    html = client.get("/?window=24h").content.decode()
    canvases = re.findall(r"<canvas[^>]*>", html)
    assert len(canvases) >= 6
    assert all('role="img"' in canvas and re.search(r'aria-label="[^"]{20,}"', canvas) for canvas in canvases)
    assert html.count("Show as table") == len(canvases)


def test_model_comparison_and_unpriced_models(client, project):
    conversation(project)
    store(project, model="llama-3.3-70b", input_tokens=10, output_tokens=5)
    answer = client.get("/")
    assert "llama-3.3-70b" in answer.context["page"].unpriced()
    assert "/settings/models#unpriced" in answer.content.decode()


def test_htmx_gets_the_region_alone(client, project):
    conversation(project)
    answer = client.get("/?window=24h", headers={"HX-Request": "true", "HX-Target": "overview"})
    html = answer.content.decode()
    assert html.lstrip().startswith('<div class="stack" id="overview"') and "<html" not in html


def test_the_number_of_queries_does_not_grow_with_the_data(client, project, django_assert_max_num_queries):
    for number in range(3):
        conversation(project, f"chat-{number}")
    client.get("/")
    with django_assert_max_num_queries(75):
        client.get("/")


def test_first_use_shows_how_to_send_a_trace_without_the_key(client, project):
    answer = client.get("/")
    html = answer.content.decode()
    assert "Send the first trace" in html and "http://testserver/api/v1" in html
    assert project.key not in html
    assert "Load demo data" in html


def test_the_first_use_page_reloads_once_a_trace_is_there(client, project):
    assert "HX-Refresh" not in client.get("/overview/waiting").headers
    store(project)
    assert client.get("/overview/waiting").headers["HX-Refresh"] == "true"


def test_the_demo_button_moves_to_the_demo_project(client, project, monkeypatch):
    from apps.dashboard.views import overview
    from apps.operations.demo.build import ensure_demo_project

    demo = ensure_demo_project()
    monkeypatch.setattr(overview, "start_demo", lambda: DemoProgress("running", project_id=demo.uid))
    answer = client.post("/demo")
    assert answer.status_code == 302 and answer.cookies["agentx_project"].value == demo.uid
    assert client.get("/demo").status_code == 405


def test_charts_say_how_many_series_they_fold(project):
    from apps.dashboard.charts import top_series

    totals = {f"m{n}": float(n) for n in range(1, 10)}
    series = top_series([totals], totals, note=str)
    assert [one.label for one in series] == ["m9", "m8", "m7", "m6", "m5", "4 more"]
    assert sum(one.values[0] or 0 for one in series) == sum(totals.values())


def test_the_page_uses_one_window_for_all_numbers(project):
    named, free = analytics.kpis(project, "7d"), analytics.kpis(project, parse_free("7d"))
    assert named == free
