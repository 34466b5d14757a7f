"""Takes the screenshots of the README from a fresh server with the demo project.

    python -m scripts.screenshots [directory]

Needs Chromium and the `test` extra. Each picture is 1440 pixels wide.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

from tests.support.server import ROOT, running_server

CHROMIUM = os.environ.get("AGENTX_TEST_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
# (file, address or the name of one found in the demo, theme, height)
SHOTS: tuple[tuple[str, str, str, int], ...] = (
    ("overview", "/?window=7d", "light", 1080),
    ("overview-dark", "/?window=7d", "dark", 1080),
    ("live-traces", "/traces", "light", 780),
    ("trace", "trace", "light", 900),
    ("trace-dark", "trace", "dark", 900),
    ("sessions", "/sessions", "light", 780),
    ("session", "session", "light", 900),
    ("agents", "/agents?window=30d", "light", 720),
    ("agent", "agent", "light", 820),
    ("settings", "/settings", "light", 640),
    ("models", "/settings/models", "light", 820),
    ("guides", "/guides/langchain", "light", 820),
)


def first_use(page: Page) -> None:
    """The page of an empty project, then its demo button, until the demo is loaded."""
    page.goto("/")
    page.wait_for_selector("text=Send the first trace")


def load_demo(page: Page) -> None:
    """Press the button and wait."""
    page.click("text=Load demo data")
    page.wait_for_selector("ul.kpis", timeout=60_000)
    page.wait_for_selector("#demo-progress", state="detached", timeout=120_000)


_ROWS = """[...document.querySelectorAll('tbody tr')].map(row => ({
    href: row.querySelector('a.open').getAttribute('href'),
    counts: [...row.querySelectorAll('td.num')].slice(0, 3).map(cell => Number(cell.textContent)),
}))"""


def addresses(page: Page) -> dict[str, str]:
    """The trace with most spans, the session with most turns (of those one that failed), and the busiest agent."""
    page.goto("/sessions")
    rows: Any = page.evaluate(_ROWS)
    talked = max(rows, key=lambda row: (row["counts"][0], row["counts"][2] > 0))
    worked = max(rows, key=lambda row: row["counts"][1] / row["counts"][0])
    page.goto(worked["href"])
    trace = page.get_attribute(".turn-foot a", "href")
    page.goto("/agents?window=30d")
    agent = page.get_attribute("tbody a.open", "href")
    return {"trace": str(trace), "session": talked["href"], "agent": f"{agent}?window=30d"}


def main(directory: Path) -> None:
    """Take them all."""
    directory.mkdir(parents=True, exist_ok=True)
    with running_server() as server, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1440, "height": 900}, base_url=server.base_url)
        page = context.new_page()
        first_use(page)
        page.screenshot(path=directory / "first-use.png")
        load_demo(page)
        known = addresses(page)
        for name, address, theme, height in SHOTS:
            context.add_cookies([{"name": "agentx_theme", "value": theme, "url": server.base_url}])
            page.set_viewport_size({"width": 1440, "height": height})
            page.goto(known.get(address, address))
            page.wait_for_timeout(800)
            page.screenshot(path=directory / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "screenshots")
