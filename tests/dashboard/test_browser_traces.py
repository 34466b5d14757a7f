"""Live Traces and the trace page in a real browser, against a server started as a user starts it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.browser import accessibility_findings, browser, watched_page
from tests.support.server import RunningServer, running_server

__all__ = ["browser"]

pytestmark = pytest.mark.browser

ROOT = "a" * 32


def send(server: RunningServer, **members: Any) -> None:
    """Send one span over the wire."""
    answer = httpx.post(f"{server.api_url}/ingest/traces", json=members, headers={"x-api-key": server.key}, timeout=20)
    answer.raise_for_status()


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    """A server with a tree of failing and working steps, a deep tree and sixty plain traces."""
    with running_server(env={"AGENTX_RATE_LIMIT": "false"}) as started:
        for n in range(60):
            send(
                started,
                name="plain-agent",
                input=f"question {n:02d}",
                output="answer",
                latencyMs=100 + n,
                framework="crewai",
            )
        deep = "d" * 16
        send(started, name="deep-agent", spanId=deep, input="deep one", latencyMs=900)
        parent = deep
        for n in range(30):
            child = f"{n:016x}"
            send(started, name=f"level {n}", spanId=child, parentSpanId=parent, latencyMs=800)
            parent = child
        for n in range(140):
            send(started, name=f"step {n}", spanId=f"c{n:015x}", parentSpanId=parent, latencyMs=2)
        send(
            started,
            name="support-agent",
            spanId=ROOT,
            sessionId="talk-1",
            spanKind="agent",
            framework="langchain",
            input={"messages": [{"role": "user", "content": "Where is my order?"}]},
            output="On its way.",
            latencyMs=4000,
            toolCalls=[{"name": "track", "success": False, "error": "timed out"}],
        )
        send(started, name="plan", spanId="b" * 16, parentSpanId=ROOT, spanKind="chain", latencyMs=3000)
        send(
            started,
            name="track",
            spanId="e" * 16,
            parentSpanId="b" * 16,
            spanKind="tool",
            latencyMs=1000,
            error="TimeoutError: no answer",
        )
        send(started, name="recall", spanId="f" * 16, parentSpanId=ROOT, spanKind="memory", latencyMs=20)
        yield started


@pytest.fixture
def page(browser, server) -> Iterator[Any]:
    """A page; at its end no script may have failed and no policy may have been broken."""
    opened, problems = watched_page(browser, base_url=server.base_url)
    yield opened
    opened.context.close()
    assert not problems


def rows(page: Any) -> Any:
    return page.locator("#traces tbody > tr[aria-selected]")


def open_tree(page: Any) -> None:
    page.goto("/traces?framework=langchain")
    page.get_by_role("link", name="Where is my order?").click()
    page.wait_for_url(re.compile(r"/traces/\w"))


def test_the_list_is_walked_and_opened_with_the_keyboard(page):
    page.goto("/traces")
    assert rows(page).count() == 50
    page.keyboard.press("j")
    page.keyboard.press("j")
    chosen = page.locator("#traces tr[aria-selected=true]")
    assert chosen.count() == 1
    assert page.evaluate("document.activeElement.getAttribute('aria-selected')") == "true"
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    detail = page.locator("#traces tr.detail:not([hidden])")
    detail.get_by_role("link", name="Open trace").wait_for()
    page.keyboard.press("o")
    page.wait_for_url(re.compile(r"/traces/AP|/traces/[\w-]{21}"))


def test_a_search_narrows_the_list_keeps_focus_and_goes_back(page):
    page.goto("/traces")
    page.keyboard.press("/")
    page.keyboard.type("jjk 42")  # single keys rest inside a field
    page.get_by_role("searchbox").fill("question 42")
    page.wait_for_url(re.compile("q=question"))
    page.locator(".pager", has_text="1-1 of 1").wait_for()
    assert page.evaluate("document.activeElement.type") == "search"
    page.go_back()
    page.locator(".pager", has_text="1-50 of").wait_for()


def test_frameworks_are_chosen_together(page):
    page.goto("/traces")
    page.get_by_role("button", name="Framework").click()
    page.get_by_label("crewai").check()
    page.wait_for_url(re.compile("framework=crewai"))
    page.locator(".pager", has_text="1-50 of 60").wait_for()
    page.get_by_label("langchain").check()
    page.locator(".pager", has_text="1-50 of 61").wait_for()
    page.get_by_role("link", name="Remove filter").click()
    page.locator(".pager", has_text="1-50 of 62").wait_for()


def test_paging_moves_focus_to_the_first_row(page):
    page.goto("/traces")
    page.get_by_role("link", name="Older").click()
    page.locator(".pager", has_text="51-62 of 62").wait_for()
    page.locator("#traces tr[aria-selected]:focus").wait_for()
    page.get_by_role("link", name="Newer").click()
    page.locator(".pager", has_text="1-50 of 62").wait_for()


def test_new_traces_wait_behind_a_button(page, server):
    page.goto("/traces?framework=livetest&framework=crewai")
    page.locator("[data-live-state]", has_text="live").wait_for()
    before = rows(page).first.inner_text()
    send(server, name="late-agent", input="I came later", framework="livetest", latencyMs=5)
    button = page.get_by_role("button", name="1 new trace")
    button.wait_for()
    assert rows(page).first.inner_text() == before
    button.click()
    page.get_by_role("link", name="I came later").wait_for()
    assert not page.locator(".new-rows button").is_visible()


def test_the_waterfall_is_a_tree_for_the_keyboard(page):
    open_tree(page)
    tree = page.get_by_role("treegrid")
    names = [text.split("\n")[0] for text in tree.locator(".wf-row .wf-link").all_inner_texts()]
    assert names[0] == "support-agent"
    assert set(names) == {"support-agent", "plan", "track", "recall"}
    assert tree.locator("[aria-level='3'] .wf-link").inner_text() == "track"
    page.locator(".wf-row").first.focus()
    page.keyboard.press("e")
    page.locator("#rail", has_text="TimeoutError: no answer").wait_for()
    assert "span=" in page.url
    page.keyboard.press("ArrowLeft")  # to the parent
    page.locator("#rail h2", has_text="plan").wait_for()
    page.keyboard.press("ArrowLeft")  # folds it
    assert not tree.locator(".wf-link", has_text="track").is_visible()
    page.keyboard.press("ArrowRight")
    assert tree.locator(".wf-link", has_text="track").is_visible()
    page.reload()
    page.locator("#rail h2", has_text="plan").wait_for()


def test_a_kind_chip_leaves_its_steps(page):
    open_tree(page)
    page.get_by_role("button", name="Memory").click()
    page.wait_for_url(re.compile("kind=memory"))
    page.get_by_role("link", name="All kinds").wait_for()
    assert page.locator(".wf-row .wf-link").all_inner_texts() == ["recall"]


def test_a_big_tree_loads_its_branches_on_demand(page):
    page.goto("/traces?q=deep one")
    page.get_by_role("link", name="deep one").first.click()
    page.get_by_role("treegrid").wait_for()
    page.evaluate("document.querySelector('.wf-more button').scrollIntoView()")
    drawn = page.locator(".wf-row").count()
    page.locator(".wf-more button").click()
    page.locator(".wf-row", has_text="step 139").wait_for()
    assert page.locator(".wf-row").count() == drawn + 40


def test_graph_and_raw_are_one_click_away(page):
    open_tree(page)
    page.get_by_role("link", name="Graph").click()
    box = page.get_by_role("link", name=re.compile("Tool track, 1 time"))
    box.click()
    page.locator("#rail", has_text="TimeoutError").wait_for()
    page.get_by_role("link", name="Raw", exact=True).first.click()
    page.get_by_text('"spanKind"').first.wait_for()


def test_the_palette_opens_pages_and_ids(page, server):
    page.goto("/traces")
    page.keyboard.press("Control+k")
    page.keyboard.type("Sess")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("/sessions"))
    found = httpx.get(
        f"{server.api_url}/ingest/traces?framework=langchain", headers={"x-api-key": server.key}, timeout=20
    )
    page.keyboard.press("Control+k")
    page.keyboard.type(found.json()["traces"][0]["_id"])
    page.locator("#palette-found [role=option]", has_text="Where is my order?").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Where is my order?").wait_for()


def test_theme_and_folded_sidebar_are_kept(page):
    page.goto("/traces")
    page.get_by_role("button", name="Switch light and dark").click()
    page.keyboard.press("[")
    page.wait_for_load_state("networkidle")
    page.reload()
    assert page.evaluate("[document.documentElement.dataset.theme, document.documentElement.dataset.sidebar]") == [
        "dark",
        "rail",
    ]


def test_disconnect_and_connect(browser, server):
    page, _refusals_are_logged = watched_page(browser, base_url=server.base_url)
    page.goto("/traces")
    page.get_by_role("button", name="Disconnect").click()
    page.get_by_role("heading", name="Connect to a project").wait_for()
    page.get_by_label("Project key").fill("agtx_local_wrong")
    with page.expect_response(lambda answer: answer.request.method == "POST") as refused:
        page.evaluate("document.querySelector('#key').form.requestSubmit()")
    assert refused.value.status == 400
    page.get_by_text("No project has this key").wait_for()
    page.get_by_role("button", name="Connect to the default project").click()
    page.get_by_role("heading", name="Overview").wait_for()
    page.context.close()


@pytest.mark.parametrize(("width", "theme"), [(320, "dark"), (768, "dark"), (1440, "light")])
@pytest.mark.parametrize(
    "address", ["/traces", "/traces?q=nothing-like-it", "tree", "tree?view=graph", "tree?view=raw", "/connect"]
)
def test_pages_are_accessible_and_never_scroll_sideways(browser, server, address, width, theme):
    page, _problems = watched_page(
        browser, base_url=server.base_url, viewport={"width": width, "height": 800}, color_scheme=theme
    )
    if address.startswith("tree"):
        found = httpx.get(
            f"{server.api_url}/ingest/traces?framework=langchain", headers={"x-api-key": server.key}, timeout=20
        )
        address = f"/traces/{found.json()['traces'][0]['_id']}{address[4:]}"
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert accessibility_findings(page) == []
    page.context.close()


def test_pages_can_be_read_without_scripts(browser, server):
    page, _problems = watched_page(browser, base_url=server.base_url, java_script_enabled=False)
    page.goto("/traces?framework=langchain")
    page.get_by_role("link", name="Where is my order?").click()
    page.get_by_role("link", name="track").click()
    assert page.locator("#rail", has_text="TimeoutError: no answer").count() == 1
    page.get_by_role("link", name="Graph").click()
    page.get_by_role("link", name=re.compile("Chain plan")).click()
    assert page.locator("#rail h2").inner_text() == "plan"
    page.goto("/traces")
    page.get_by_role("link", name="Older").click()
    assert page.locator(".pager", has_text="51-").count() == 1
    page.context.close()


def test_the_first_trace_opens_the_list_by_itself(browser):
    with running_server(env={"AGENTX_RATE_LIMIT": "false"}) as fresh:
        page, problems = watched_page(browser, base_url=fresh.base_url)
        page.goto("/traces")
        page.get_by_role("heading", name="Send the first trace").wait_for()
        # The key is copied with its own button and never stands in the page.
        assert fresh.key not in page.content()
        page.get_by_role("button", name="Copy with key").first.wait_for()
        assert fresh.api_url in page.locator("main").inner_text()
        page.locator("[data-live-state]", has_text="live").wait_for()
        send(fresh, name="my-agent", input="Hello", output="Hi!", latencyMs=420)
        page.get_by_role("link", name="Hello").wait_for()
        page.context.close()
        assert not problems


def test_the_demo_is_one_click_away(browser):
    with running_server(env={"AGENTX_RATE_LIMIT": "false"}) as fresh:
        page, _problems = watched_page(browser, base_url=fresh.base_url)
        page.goto("/traces")
        page.get_by_role("button", name="Load the demo project").click()
        page.wait_for_url(f"{fresh.base_url}/")
        page.get_by_role("button", name=re.compile("Project Demo")).wait_for(timeout=60_000)
        page.context.close()
