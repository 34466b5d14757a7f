"""A real Chromium for page tests.

Import `browser` into a module; it lives as long as the module, because its event loop must not be running when other
tests use the database. Without a Chromium the tests that ask for it are skipped and say so.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from typing import Any

import pytest

CANDIDATES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def chromium_path() -> str | None:
    """The Chromium to drive: AGENTX_TEST_CHROMIUM, else the first one on the path."""
    given = os.environ.get("AGENTX_TEST_CHROMIUM")
    return given or next((found for name in CANDIDATES if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A running Chromium (a Playwright browser)."""
    path = chromium_path()
    if path is None:
        pytest.skip("no Chromium is installed (set AGENTX_TEST_CHROMIUM to one)")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        chromium = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def watched_page(browser: Any, **options: Any) -> tuple[Any, list[str]]:
    """A page in a context of its own, and the list its console errors and script errors go to."""
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
    context.set_default_timeout(15_000)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    return page, problems


def accessibility_findings(page: Any) -> list[str]:
    """What axe calls serious or critical on the page as it stands."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{item['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for item in found
        if item["impact"] in ("serious", "critical")
        for node in item["nodes"][:3]
    ]


def until(page: Any, script: str, arg: Any = None, *, seconds: float = 15.0) -> None:
    """Wait until a script says true. Not `wait_for_function`: that one evaluates text inside the page, which the page's
    content policy reports to the console now and then."""
    error = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").Error
    deadline = time.monotonic() + seconds
    while True:
        try:
            if page.evaluate(script, arg):
                return
        except error as problem:
            # The page is between two documents, or the element is not there yet.
            last = str(problem)
        else:
            last = "false"
        if time.monotonic() > deadline:
            raise AssertionError(f"never came true ({last}): {script}")
        page.wait_for_timeout(50)
