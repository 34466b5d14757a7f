"""Background work of evaluations."""

from __future__ import annotations

import logging

import msgspec
from celery import shared_task
from django.utils import timezone

from apps.core.outbound import OutboundError, request
from apps.core.times import datetime_to_iso
from apps.evaluations.models import CIRun
from apps.evaluations.services import ci_runs

logger = logging.getLogger(__name__)

WEBHOOK_TIMEOUT_S = 8.0


@shared_task
def send_ci_webhook(run_id: str) -> None:
    """Post a finalized CI run to its dataset's webhook, once and without a second try (source 1:3198-3268)."""
    # Claimed before it is sent: a task that runs twice sends once.
    if not CIRun.objects.filter(pk=run_id, webhook_sent_at=None).update(webhook_sent_at=timezone.now()):
        return
    row = CIRun.objects.select_related("run").defer("run__snapshot", "run__grader").get(pk=run_id)
    outcome = ci_runs.document(row)
    payload = {
        "event": "ci_run.finalized",
        "run_id": row.pk,
        "dataset_id": row.run.dataset_id,
        "gate": row.gate,
        "pass_rate": outcome["pass_rate"],
        "git_context": row.git_context,
        "scores": outcome["scores"],
        "finalized_at": datetime_to_iso(row.finalized_at) if row.finalized_at else None,
    }
    try:
        answer = request(
            "POST",
            row.webhook_url,
            headers={"Content-Type": "application/json"},
            body=msgspec.json.encode(payload),
            timeout=WEBHOOK_TIMEOUT_S,
        )
    except OutboundError as error:
        logger.warning("a CI webhook was not delivered: %s", error, extra={"run": run_id})
        return
    if answer.status >= 300:
        logger.warning("a CI webhook was answered %s", answer.status, extra={"run": run_id})
