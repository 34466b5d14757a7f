"""Overview, Sessions, Agents, Settings and Guides in a real browser, against a server started as a user starts it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.browser import until
from tests.support.server import RunningServer, running_server

pytestmark = pytest.mark.browser

CHROMIUM = os.environ.get("AGENTX_TEST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
WAIT_MS = 20_000


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    if not os.path.exists(CHROMIUM):
        pytest.skip("no Chromium is installed")
    with running_server() as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser, server) -> Iterator[Any]:
    """A fresh browser profile; anything a page writes to the console as an error fails the test."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=server.base_url)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.base_url)
    opened = context.new_page()
    opened.set_default_timeout(WAIT_MS)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    yield opened
    # A refused form is answered with 400, which Chromium notes in its console.
    faults = [fault for fault in faults if "status of 400" not in fault]
    context.close()
    assert faults == []


@pytest.fixture(scope="module")
def demo(browser, server) -> str:
    """The demo project, loaded by its button on the first-use page; returns its uid."""
    context = browser.new_context(base_url=server.base_url)
    opened = context.new_page()
    opened.set_default_timeout(60_000)
    opened.goto("/")
    assert "Send the first trace" in opened.inner_text("h1")
    opened.click("text=Load demo data")
    opened.wait_for_selector("ul.kpis")
    opened.wait_for_selector("#demo-progress", state="detached")
    uid = next(cookie["value"] for cookie in context.cookies() if cookie["name"] == "agentx_project")
    context.close()
    return str(uid)


@pytest.fixture
def demo_page(page, demo, server):
    page.context.add_cookies([{"name": "agentx_project", "value": demo, "url": server.base_url}])
    return page


def serious(page: Any) -> list[str]:
    """What axe finds on the page that is serious or worse."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {item['nodes'][0]['html'][:200]}" for item in found if item["impact"] in ("serious", "critical")
    ]


def test_the_first_use_page_turns_into_the_overview_when_a_trace_arrives(page, server):
    with httpx.Client(base_url=server.api_url, timeout=20) as http:
        made = http.post("/projects", json={"name": "Fresh"}, headers={"x-api-key": server.key}).json()["project"]
        page.context.add_cookies([{"name": "agentx_project", "value": made["_id"], "url": server.base_url}])
        page.goto("/")
        page.wait_for_selector("text=Send the first trace")
        http.post("/ingest/traces", json={"name": "a", "output": "b"}, headers={"x-api-key": made["apiKey"]})
        page.wait_for_selector("ul.kpis")
    assert page.inner_text("h1") == "Overview"


def test_charts_are_drawn_and_their_numbers_stand_in_tables(demo_page):
    demo_page.goto("/?window=30d")
    until(
        demo_page,
        "() => [...document.querySelectorAll('canvas[data-chart]')].every(c => c.width > 50 && c.getContext('2d')"
        ".getImageData(0, 0, c.width, c.height).data.some(v => v))",
    )
    demo_page.click("section:has(#runs-h) summary")
    rows = demo_page.locator("section:has(#runs-h) tbody tr")
    assert rows.count() >= 30
    # A series can be switched off by the keyboard.
    button = demo_page.locator("section:has(#cost-h) [data-series]").first
    button.focus()
    demo_page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"


def test_window_and_filters_change_the_address_and_back_undoes_them(demo_page):
    demo_page.goto("/?window=30d")
    demo_page.click("nav[aria-label=Window] >> text=24h")
    demo_page.wait_for_url("**/?window=24h")
    demo_page.wait_for_selector("text=the last 24 hours")
    demo_page.goto("/?window=30d")
    whole = demo_page.inner_text("#traffic .push")
    demo_page.select_option("#traffic select[name=framework]", "langchain")
    demo_page.wait_for_url("**framework=langchain**")
    until(demo_page, "before => document.querySelector('#traffic .push').innerText !== before", whole)
    demo_page.go_back()
    until(demo_page, "before => document.querySelector('#traffic .push').innerText === before", whole)


def test_top_failing_leads_to_the_traces(demo_page):
    demo_page.goto("/?window=30d")
    demo_page.click("section:has(#failing-h) >> text=Tools")
    demo_page.locator("#failing-tools a.open").first.click()
    demo_page.wait_for_url("**/traces?tool=**")


def test_a_conversation_by_the_keyboard(demo_page):
    demo_page.goto("/sessions?window=30d")
    demo_page.wait_for_selector("tbody[data-pick] tr")
    demo_page.keyboard.press("j")
    demo_page.keyboard.press("o")
    demo_page.wait_for_url("**/sessions/*")
    demo_page.wait_for_selector("article.turn")
    demo_page.keyboard.press("j")
    assert demo_page.evaluate("document.activeElement.matches('article.turn')")
    demo_page.click("text=Show span trees")
    demo_page.wait_for_selector("article.turn [role=tree] [role=treeitem]")


def test_session_filters_swap_the_list(demo_page):
    demo_page.goto("/sessions?window=all")
    demo_page.click("text=Imported")
    demo_page.wait_for_url("**origin=imported**")
    demo_page.wait_for_selector("#sessions .badge >> text=imported")
    assert demo_page.locator("#sessions tbody tr").count() >= 1


def test_the_key_is_shown_hidden_and_copied(page, server):
    page.goto("/settings")
    assert server.key not in page.content()
    page.click("text=Show")
    until(page, "key => document.querySelector('#key').textContent === key", server.key)
    page.click("text=Hide")
    assert server.key not in page.content()
    page.click("[data-secret-copy]")
    page.wait_for_selector(".toast >> text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == server.key
    page.click("text=Copy with key")
    page.wait_for_selector("text=Copied with the key")
    assert f"AGENTX_API_KEY={server.key}" in page.evaluate("navigator.clipboard.readText()")


def test_regenerating_waits_for_the_name(page, server):
    page.goto("/settings")
    page.click("text=Regenerate …")
    button = page.locator("dialog[open] button[data-variant=danger]")
    assert button.is_disabled()
    page.fill("dialog[open] input[name=confirm]", "Default")
    assert button.is_enabled()
    page.click("text=Keep the key")
    assert page.locator("dialog[open]").count() == 0


def test_a_project_is_made_switched_to_and_deleted(page):
    page.goto("/")
    page.click(".project-switch")
    page.click("text=New project …")
    page.fill("input[name=name]", "Short-lived")
    page.click("main >> text=Create project")
    page.wait_for_selector(".project-switch >> text=Short-lived")
    page.goto("/settings/projects")
    page.click("tr:has-text('Short-lived') >> text=Delete …")
    page.fill("input[name=confirm]", "Short-lived")
    page.click("text=Delete the project")
    page.wait_for_selector("text=Project Short-lived is gone.")
    assert "Short-lived" not in page.inner_text("tbody")


def test_a_custom_model_shows_the_fields_it_needs(page):
    page.goto("/settings/models/new?id=llama-3")
    assert page.is_hidden("#id_base_url") is False  # an unknown name is taken for a custom endpoint
    page.select_option("#id_provider", "openai")
    assert page.is_hidden("#id_base_url")
    page.fill("#id_input_price", "1.25")
    page.fill("#id_output_price", "10")
    page.click("main button[data-variant=primary]")
    page.wait_for_selector("text=Model llama-3 added.")
    page.click("tr:has-text('llama-3') a.open")
    page.click("text=Remove …")
    page.click("dialog[open] button[data-variant=danger]")
    page.wait_for_selector("text=Model llama-3 removed.")


PAGES = (
    "/?window=30d",
    "/sessions?window=all",
    "/agents",
    "/settings",
    "/settings/providers",
    "/settings/models",
    "/settings/models/new",
    "/settings/monitoring",
    "/settings/projects",
    "/settings/audit",
    "/settings/about",
    "/guides",
    "/guides/opentelemetry",
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(demo_page, server, theme):
    demo_page.context.add_cookies([{"name": "agentx_theme", "value": theme, "url": server.base_url}])
    found = {}
    for path in PAGES:
        demo_page.goto(path)
        demo_page.wait_for_load_state("networkidle")
        if problems := serious(demo_page):
            found[path] = problems
    demo_page.goto("/sessions?window=all")
    demo_page.click("tbody a.open")
    demo_page.wait_for_selector("article.turn")
    if problems := serious(demo_page):
        found["session"] = problems
    demo_page.goto("/agents")
    demo_page.click("tbody a.open")
    demo_page.wait_for_selector("#profile-h")
    if problems := serious(demo_page):
        found["agent"] = problems
    assert found == {}


def test_nothing_is_lost_on_a_narrow_screen(demo_page):
    demo_page.set_viewport_size({"width": 320, "height": 700})
    wide = {}
    for path in PAGES:
        demo_page.goto(path)
        width = demo_page.evaluate("document.documentElement.scrollWidth")
        if width > 320:
            wide[path] = width
    assert wide == {}
