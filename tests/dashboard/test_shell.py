"""The shell: connecting, switching projects, preferences, the palette, error pages and headers."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.dashboard.middleware import POLICY
from apps.projects.models import Project
from apps.projects.services.projects import create_project
from tests.dashboard.conftest import text_of

pytestmark = pytest.mark.django_db


def test_a_first_visit_is_connected_to_the_default_project(client, project):
    page = client.get("/", follow=True)
    assert page.status_code == 200
    assert project.name in text_of(page)


def test_disconnect_shows_the_connect_screen_and_it_leads_back(client, project):
    client.post(reverse("dashboard:disconnect"))
    away = client.get("/traces?status=error")
    assert away.status_code == 302
    assert away.headers["Location"].startswith("/connect?next=%2Ftraces")
    back = client.post("/connect", {"key": "", "next": "/traces?status=error"})
    assert back.headers["Location"] == "/traces?status=error"
    assert client.get("/traces").status_code == 200


def test_a_pasted_key_opens_its_project(client, project):
    other, key = create_project(name="Second shop")
    client.post("/connect", {"key": f"  {key} "})
    assert "Second shop" in text_of(client.get("/traces"))
    assert client.cookies["agentx_project"].value == other.uid


def test_an_unknown_key_is_refused_with_a_reason_and_never_shown(client, project):
    answer = client.post("/connect", {"key": "agtx_local_secret"})
    assert answer.status_code == 400
    assert "No project has this key" in answer.content.decode()
    assert "agtx_local_secret" not in answer.content.decode()


def test_connecting_never_redirects_elsewhere(client, project):
    answer = client.post("/connect", {"key": "", "next": "https://elsewhere.example/"})
    assert answer.headers["Location"] == "/"


def test_the_switcher_moves_between_projects(client, project):
    other, _key = create_project(name="Second shop")
    client.post("/projects/switch", {"project": other.uid})
    assert "<title>Live Traces · Second shop" in text_of(client.get("/traces"))


def test_a_project_made_here_has_its_own_key_and_is_opened(client, project):
    client.post("/settings/projects/new", {"name": "Third shop"})
    made = Project.objects.get(name="Third shop")
    assert client.cookies["agentx_project"].value == made.uid
    page = text_of(client.get("/traces"))
    assert "agtx_local_" in page
    assert project.key not in page


def test_a_project_needs_a_name(client, project):
    assert client.post("/settings/projects/new", {"name": "  "}).status_code == 400


def test_a_cookie_of_another_installation_falls_back_to_the_default_project(client, project):
    client.cookies["agentx_project"] = "x" * 21
    assert client.get("/traces").status_code == 200


def test_preferences_are_kept_and_unknown_values_are_not(client, project):
    client.post("/preferences", {"theme": "dark", "density": "compact"})
    page = text_of(client.get("/traces"))
    assert 'data-theme="dark"' in page
    assert 'data-density="compact"' in page
    client.post("/preferences", {"theme": '"><script>'})
    assert "<script>" not in text_of(client.get("/traces")).split("<body")[0].replace("<script src", "")


def test_pages_carry_a_policy_without_inline_code(client, project):
    page = client.get("/traces")
    assert page.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    html = text_of(page)
    assert " style=" not in html
    assert "<script>" not in html
    assert " onclick=" not in html


def test_an_unknown_page_says_so_inside_the_shell(client, project):
    page = client.get("/nowhere")
    assert page.status_code == 404
    assert "Page not found" in text_of(page)
    assert client.get("/api/v1/nowhere").json() == {"error": "Not found"}


def test_the_palette_finds_ids_agents_and_offers_a_search(client, project, tree):
    found = text_of(client.get("/palette", {"q": tree[0]}))
    assert f"/traces/{tree[0]}" in found
    assert "support-agent" in text_of(client.get("/palette", {"q": "support"}))
    assert "?q=%3Cb%3E" in text_of(client.get("/palette", {"q": "<b>"}))
    assert "<b>" not in text_of(client.get("/palette", {"q": "<b>"}))


def test_the_sidebar_has_no_dead_links(client, project):
    import re

    page = text_of(client.get("/traces"))
    for address in set(re.findall(r'class="nav-link" href="([^"]+)"', page)):
        assert client.get(address, follow=True).status_code == 200, address
