"""Roots to be checked are queued with their spans and drained in batches."""

from __future__ import annotations

import pytest

from apps.monitoring.services import check_queue
from apps.monitoring.tasks import drain_checks
from apps.projects.models import MonitoringDefaults
from apps.projects.services.settings import update_monitoring_defaults
from apps.tracing.ingest import checks
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import CheckItem

pytestmark = pytest.mark.django_db


@pytest.fixture
def checked(project):
    """A project with one pattern switched on, as the settings page does it."""
    update_monitoring_defaults(project=project, changes={"enabledBuiltinPatterns": ["refund-loop"]})
    return project


@pytest.fixture
def checker():
    """A checker that notes what it is handed."""
    seen = []
    check_queue.register("test", seen.extend)
    yield seen
    check_queue.unregister("test")


def test_a_root_of_a_checked_project_is_queued_once_and_drained(checked, checker):
    spans = [SpanIn(name="bot", span_id="r"), SpanIn(name="step", span_id="c", parent_span_id="r")]
    root, _ = store_spans(checked, spans)
    store_spans(checked, spans)
    assert list(CheckItem.objects.values_list("project_id", "trace_id")) == [(checked.pk, root.id)]
    assert drain_checks() == 1
    assert checker == [check_queue.QueuedRoot(checked.pk, root.id, None)]
    assert not CheckItem.objects.exists() and drain_checks() == 0


def test_without_a_checker_items_are_done_at_once(checked):
    store_spans(checked, [SpanIn(name="bot") for _ in range(230)])
    assert CheckItem.objects.count() == 230
    assert drain_checks() == 230
    assert not CheckItem.objects.exists()


def test_nothing_is_queued_where_nothing_is_checked(project):
    store_spans(project, [SpanIn(name="bot"), SpanIn(name="bot", monitor=True)])
    assert not CheckItem.objects.exists()


def test_switching_checks_on_and_off_counts_from_the_next_trace(checked):
    store_spans(checked, [SpanIn(name="bot")])
    update_monitoring_defaults(project=checked, changes={"enabledBuiltinPatterns": []})
    store_spans(checked, [SpanIn(name="bot")])
    assert CheckItem.objects.count() == 1
    update_monitoring_defaults(project=checked, changes={"topicsEnabled": True})
    store_spans(checked, [SpanIn(name="bot")])
    assert CheckItem.objects.count() == 2


def test_roots_that_are_not_monitored_are_not_queued(checked, settings):
    store_spans(checked, [SpanIn(name="bot", monitor=False), SpanIn(name="bot", source="eval-run")])
    settings.OTEL_MONITOR = False
    store_spans(checked, [SpanIn(name="bot")], door="otlp")
    assert not CheckItem.objects.exists()
    [forced] = store_spans(checked, [SpanIn(name="bot", source="eval-run", monitor=True)])
    assert CheckItem.objects.get().trace_id == forced.id


def test_named_patterns_travel_with_a_forced_root_only(checked, checker):
    store_spans(
        checked,
        [SpanIn(name="forced", monitor=True, pattern_ids=["p1", "p2"]), SpanIn(name="usual", pattern_ids=["p1"])],
    )
    drain_checks()
    assert [root.pattern_ids for root in checker] == [("p1", "p2"), None]


def test_another_app_adds_its_reason(project, monkeypatch):
    monkeypatch.setattr(checks, "_reasons", [])
    checks.register(lambda project_id: project_id == project.pk)
    store_spans(project, [SpanIn(name="bot")])
    assert CheckItem.objects.count() == 1
    checks.forget()


def test_a_failing_check_is_tried_again_and_given_up_in_the_end(checked, checker, monkeypatch):
    def fail(_roots):
        raise ValueError("no")

    store_spans(checked, [SpanIn(name="bot")])
    check_queue.register("failing", fail)
    try:
        for attempt in range(1, check_queue.MAX_ATTEMPTS + 1):
            assert drain_checks() == 0
            if attempt < check_queue.MAX_ATTEMPTS:
                assert CheckItem.objects.get().attempts == attempt
                # Its pause is not over: nobody may claim it yet.
                assert drain_checks() == 0 and CheckItem.objects.get().attempts == attempt
                CheckItem.objects.update(claimed_until_ms=0)
    finally:
        check_queue.unregister("failing")
    assert not CheckItem.objects.exists()
    assert len(checker) == check_queue.MAX_ATTEMPTS


def test_a_claimed_batch_is_left_alone_until_its_time_is_over(checked, checker):
    store_spans(checked, [SpanIn(name="bot")])
    CheckItem.objects.update(claimed_until_ms=2**60)
    assert drain_checks() == 0
    CheckItem.objects.update(claimed_until_ms=1)
    assert drain_checks() == 1 and len(checker) == 1


def test_a_project_without_settings_is_not_checked(project):
    MonitoringDefaults.objects.filter(project=project).delete()
    checks.forget()
    store_spans(project, [SpanIn(name="bot")])
    assert not CheckItem.objects.exists()
