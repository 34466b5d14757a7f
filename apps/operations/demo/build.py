"""The service that fills a project with the demo, and the facts about a load that is under way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.db import transaction

from apps.core.models import InstanceSetting
from apps.core.times import now_ms
from apps.operations.demo.history import Trace, month
from apps.projects.models import Project
from apps.projects.services.projects import create_project
from apps.tracing.ingest.pipeline import store_spans
from apps.tracing.ingest.records import SpanIn

PROJECT_NAME = "Demo"
SEED = 20_260_317
# A month has about this many spans; progress is told against it.
EXPECTED_SPANS = 6_500
_BATCH = 400
_SETTING = "demo"


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What a load did. `refused` counts roots over the daily quota; replayed spans are neither stored nor refused."""

    project: Project
    traces: int
    spans: int
    stored: int
    refused: int


def demo_project() -> Project | None:
    """The demo project of this instance, if there is one."""
    setting = InstanceSetting.objects.filter(key=_SETTING).first()
    if setting is None:
        return None
    return Project.objects.filter(uid=setting.value.get("projectId"), deleting=False).first()


@transaction.atomic
def ensure_demo_project() -> Project:
    """The demo project, made when there is none (or when it was deleted since)."""
    project = demo_project()
    if project is None:
        project, _ = create_project(name=PROJECT_NAME)
        InstanceSetting.objects.update_or_create(key=_SETTING, defaults={"value": {"projectId": project.uid}})
    return project


def loaded_until(project: Project) -> int | None:
    """The moment (ms since 1970) back from which the project's demo month was laid out; None before the first load."""
    setting = InstanceSetting.objects.filter(key=_SETTING).first()
    ends = setting.value.get("endMs", {}) if setting else {}
    return ends.get(project.uid)


def build_demo(
    *,
    project: Project | None = None,
    seed: int = SEED,
    end_ms: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> DemoResult:
    """Fill a project (by default the demo project, made on demand) with a month of traffic that ends at `end_ms`.

    Idempotent: every span has an id drawn from the seed, and a second load repeats the moment of the first, so the
    store recognises what it has and a load that was cut short is finished. `on_progress` hears the number of spans
    sent so far. Raises what `store_spans` raises when the store is not available.
    """
    project = project or ensure_demo_project()
    end_ms = _remember_end(project, end_ms)
    traces = spans = stored = refused = 0
    for batch in _batches(month(seed=seed, end_ms=end_ms)):
        flat = [span for trace in batch for span in trace.spans]
        answers = store_spans(project, flat)
        traces += len(batch)
        spans += len(flat)
        stored += sum(not answer.deduped and answer.refused is None for answer in answers)
        refused += sum(answer.refused is not None for answer in answers)
        if on_progress is not None:
            on_progress(spans)
    return DemoResult(project, traces, spans, stored, refused)


@transaction.atomic
def _remember_end(project: Project, end_ms: int | None) -> int:
    known = loaded_until(project)
    if known is not None:
        return known
    end_ms = now_ms() if end_ms is None else end_ms
    setting, _ = InstanceSetting.objects.get_or_create(key=_SETTING, defaults={"value": {}})
    setting.value["endMs"] = {**setting.value.get("endMs", {}), project.uid: end_ms}
    setting.save(update_fields=["value", "updated_at"])
    return end_ms


def _batches(traces: Iterator[Trace]) -> Iterator[list[Trace]]:
    batch: list[Trace] = []
    size = 0
    for trace in traces:
        batch.append(trace)
        size += len(trace.spans)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def store_trace(project: Project, spans: list[SpanIn]) -> None:
    """Store one trace as an instrumented agent would: children while they end, the root last."""
    root, *children = spans
    store_spans(project, [*children, root])
