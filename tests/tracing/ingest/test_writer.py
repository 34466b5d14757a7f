"""The group-commit writer where its store fails it: a commit nobody heard of, and the window for company."""

from __future__ import annotations

import threading

import pytest
from django.db import OperationalError, connection

from apps.projects.models import Project
from apps.projects.services.projects import ensure_default_project
from apps.tracing.ingest import pipeline, writer
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn
from apps.tracing.models import Grain, Rollup, Session, Span
from apps.tracing.rollups.fold import settle

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def running(settings, request):
    """A project, and the writer of this process as a server runs it, under the settings a test asks for."""
    settings.INGEST_INLINE = False
    for name, value in getattr(request, "param", {}).items():
        setattr(settings, name, value)
    project, _ = ensure_default_project()
    pipeline.start()
    yield project
    pipeline.stop()


def spans():
    """A tree whose middle row has no counts, one of whose rows has no identity."""
    return [
        SpanIn(name="a", span_id="a", session_id="s", input_tokens=10, monitor=False),
        SpanIn(name="n", span_id="n", parent_span_id="a"),
        SpanIn(name="l", parent_span_id="n", input_tokens=10),
        SpanIn(name="l2", span_id="l2", parent_span_id="n", input_tokens=4),
    ]


def fail_after(monkeypatch, *, committed: bool):
    """The first batch that is written fails afterwards, or just before its commit."""
    true = writer.store_rows
    write = writer.write_committed
    tries = []

    def store_then_fail(rows, *, again=False):
        written = true(rows, again=again)
        tries.append(again)
        if len(tries) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return written

    def write_then_fail(rows, *, again=False):
        written = write(rows, again=again)
        tries.append(again)
        if len(tries) == 1:
            raise OperationalError("server closed the connection unexpectedly")
        return written

    if committed:
        monkeypatch.setattr(writer, "write_committed", write_then_fail)
    else:
        monkeypatch.setattr(writer, "store_rows", store_then_fail)
    return tries


@pytest.mark.parametrize("committed", [True, False])
def test_a_batch_tried_again_is_stored_once_and_answered_as_new(running, monkeypatch, committed):
    seen = []
    monkeypatch.setattr(writer, "on_stored", [seen.extend])
    tries = fail_after(monkeypatch, committed=committed)
    answers = store_spans(running, spans())
    assert tries == [False, True]
    assert [answer.deduped for answer in answers] == [False] * 4
    assert {answer.id for answer in answers} == set(Span.objects.values_list("id", flat=True))
    assert len(seen) == 4
    root = Span.objects.get(span_id="a")
    assert root.child_input_tokens == 14
    assert set(Span.objects.values_list("root_id", "session_id", "traffic")) == {(root.id, "s", 2)}
    settle()
    assert Session.objects.get().input_tokens == 14
    assert sum(Rollup.objects.filter(grain=Grain.ALL_TIME).values_list("spans", flat=True)) == 4


@pytest.mark.parametrize("running", [{"INGEST_FLUSH_MS": 400}], indirect=True)
def test_requests_within_a_window_that_was_asked_for_share_a_batch(running):
    before = pipeline.stats().batches
    threads = [threading.Thread(target=_send, args=(running.pk,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Span.objects.count() == 20
    assert pipeline.stats().batches - before <= 3


@pytest.mark.parametrize("running", [{"INGEST_FLUSH_MS": 60_000, "INGEST_FLUSH_SIZE": 2}], indirect=True)
def test_a_full_batch_does_not_wait(running):
    before = pipeline.stats().batches
    threads = [threading.Thread(target=_send, args=(running.pk,)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Span.objects.count() == 6
    assert pipeline.stats().batches - before == 3


@pytest.mark.parametrize("running", [{"INGEST_FLUSH_MS": 60_000}], indirect=True)
def test_a_stop_does_not_wait_for_company(running):
    thread = threading.Thread(target=_send, args=(running.pk,))
    thread.start()
    for _ in range(1000):
        if pipeline.stats().depth:
            break
        thread.join(0.01)
    pipeline.stop()
    thread.join(20)
    assert not thread.is_alive() and Span.objects.count() == 1


def _send(project_id: int) -> None:
    try:
        store_spans(Project.objects.get(pk=project_id), [SpanIn(name="bot")])
    finally:
        connection.close()
