"""Remove a project's runs in batches; a run may have ten thousand results, and a cascade would load them all."""

from __future__ import annotations

from django.db import transaction

from apps.evaluations.models import CaseTally, Result, Run, ScorerTally

_BATCH = 1_000


def purge(project_pk: int) -> None:
    """Delete every run of a project with all that hangs on it; may be called again at any time."""
    while True:
        run_id = Run.objects.filter(project_id=project_pk).order_by("pk").values_list("pk", flat=True).first()
        if run_id is None:
            return
        delete_run(run_id)


def delete_run(run_id: str) -> None:
    """Delete one run; its results go first, some at a time, so that no lock is held for long."""
    while True:
        ids = list(Result.objects.filter(run_id=run_id).values_list("pk", flat=True)[:_BATCH])
        if not ids:
            break
        Result.objects.filter(pk__in=ids).delete()
    with transaction.atomic():
        CaseTally.objects.filter(run_id=run_id).delete()
        ScorerTally.objects.filter(run_id=run_id).delete()
        Run.objects.filter(pk=run_id).delete()
