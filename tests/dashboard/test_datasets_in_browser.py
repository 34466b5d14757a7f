"""The case editor and the judge scorer editor in a real browser, against a server started as a user starts it."""

from __future__ import annotations

from tests.dashboard.test_pages_in_browser import browser, page, pytestmark, server

__all__ = ["browser", "page", "pytestmark", "server"]


def test_cases_are_written_saved_and_read_back(page):
    page.goto("/datasets/new")
    page.fill("#id_name", "Support set")
    page.click("text=Create dataset")
    page.locator("[data-case-empty] button").click()
    page.fill("#f-query", "Cancel INV-7731")
    page.fill("#f-expected", "It is paid.")
    page.select_option("#f-mode", "unordered")
    page.fill("#f-tools", "billing.get\nbilling.quote")
    page.fill("#f-context", "One chunk.\n\nAnother.")
    page.fill("#f-splits", "smoke")
    page.click("[data-turn=add]")
    page.fill("#f-query", "And when?")
    page.locator(".rail [data-case=add]").click()
    page.fill("#f-query", "Second")
    assert page.locator("#unsaved").is_visible()
    page.click("text=Save as v1")
    page.wait_for_selector("text=Saved as version 1.")
    assert page.locator("#unsaved").is_hidden()
    assert page.locator("[data-case-list] [role=option]").count() == 2
    assert page.input_value("#f-tools") == "billing.get\nbilling.quote"
    assert page.input_value("#f-context") == "One chunk.\n\nAnother."
    page.click("text=Follow-up 1")
    assert page.input_value("#f-query") == "And when?"
    page.locator("[data-case-list] [role=option]").nth(1).click()
    page.click("[data-case=delete]")
    page.click("#tab-grading")
    page.click("text=Weighted final score")
    page.click("text=Save as v2")
    page.wait_for_selector("text=Saved as version 2.")
    assert page.locator("[data-case-count]").first.inner_text() == "1"
    assert page.input_value("#code-0-name") == "Weighted final score"


def test_the_preview_of_a_judge_follows_the_draft(page):
    page.goto("/scorers/new")
    page.fill("#id_name", "Refunds")
    page.fill("#id_rejection_criteria", "Invents an amount")
    page.wait_for_selector("#preview-body:has-text('Invents an amount')")
    page.locator("summary:has-text('Judge model and prompt')").click()
    page.fill("#id_judge_prompt", "Rate {output} by {criteria}")
    page.wait_for_selector("#preview-body:has-text('Not a variable')")
    page.click("text=Create scorer")
    page.wait_for_selector("text=Scorer Refunds created.")
    assert page.input_value("#id_rejection_criteria") == "Invents an amount"
