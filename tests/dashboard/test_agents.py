"""Agents: the list with figures, and the monitoring settings of one."""

from __future__ import annotations

from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.projects.models import AuditEvent
from apps.tracing.models import Agent
from apps.tracing.services.agents import create_agent
from tests.dashboard.seed import conversation, store


def test_every_agent_seen_or_registered_is_listed_with_its_figures(client, project):
    conversation(project)
    create_agent(project=project, name="registered-only")
    answer = client.get("/agents")
    rows = {row.agent.name: row for row in answer.context["rows"]}
    seen = rows["support-agent"]
    assert (seen.figures.traces, seen.figures.health_rate, seen.figures.tokens) == (2, 0.5, 1100)
    assert seen.figures.last_seen_ms is not None
    assert rows["registered-only"].figures.health_rate is None
    html = answer.content.decode()
    assert html.count("External") == 2 and "never" in html and "50.0" in html


def test_search_and_empty_states(client, project):
    assert "No agents yet" in client.get("/agents").content.decode()
    conversation(project)
    assert [row.agent.name for row in client.get("/agents?q=SUPPORT").context["rows"]] == ["support-agent"]
    assert "No agent matches" in client.get("/agents?q=zzz").content.decode()


def test_monitoring_settings_are_saved_and_audited(client, project):
    conversation(project)
    agent = Agent.objects.get(name="support-agent")
    url = f"/agents/{agent.pk}"
    page = client.get(url)
    assert page.context["form"].initial["enabled"] is True
    assert "on defaults" in page.content.decode()
    answer = client.post(
        url, {"failure_detection_enabled": "on", "channels": "ops@example.com\n\n ops@example.com\n#x"}
    )
    assert answer.status_code == 302
    agent.refresh_from_db()
    profile = agent.profile
    assert (profile.enabled, profile.failure_detection_enabled, profile.info_detection_enabled) == (False, True, False)
    assert profile.channels == ["ops@example.com", "#x"]
    wire = client.get(f"/api/v1/monitor/profiles/{agent.pk}", headers={"x-api-key": project.key}).json()["profile"]
    assert wire["enabled"] is False and wire["channels"] == ["ops@example.com", "#x"]
    assert AuditEvent.objects.filter(action="profile.update", target_id=agent.pk).count() == 1
    assert "off" in client.get("/agents").content.decode()


def test_too_many_channels_are_refused_with_a_reason(client, project):
    agent = create_agent(project=project, name="a")
    answer = client.post(f"/agents/{agent.pk}", {"enabled": "on", "channels": "\n".join(map(str, range(60)))})
    assert answer.status_code == 400 and "At most 50 channels" in answer.content.decode()


def test_recent_traces_lead_to_the_trace(client, project):
    roots = conversation(project)
    agent = Agent.objects.get(name="support-agent")
    html = client.get(f"/agents/{agent.pk}").content.decode()
    assert all(f"/traces/{root}" in html for root in roots)
    assert "Where is my parcel?" in html


def test_another_projects_agent_is_not_found(client, project):
    from apps.projects.services.projects import create_project

    other, _ = create_project(name="Other")
    theirs = create_agent(project=other, name="x")
    assert client.get(f"/agents/{theirs.pk}").status_code == 404
    assert client.post(f"/agents/{theirs.pk}", {"enabled": "on"}).status_code == 404


def test_list_queries_do_not_grow_with_agents(client, project, django_assert_num_queries):
    store(project, "one")
    client.get("/agents")
    with CaptureQueriesContext(connection) as few:
        client.get("/agents")
    queries = len(few)
    assert queries <= 15
    for number in range(10):
        store(project, f"agent-{number}")
    client.get("/agents")
    with django_assert_num_queries(queries):
        client.get("/agents")
