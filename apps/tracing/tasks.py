"""Background jobs of tracing; thin: each calls one service."""

from __future__ import annotations

from celery import shared_task

from apps.core import leases
from apps.tracing.services.retention import apply_retention


@shared_task
def expire_spans() -> int:
    """The daily retention job; runs once in a whole deployment."""
    with leases.held("span-retention", seconds=3600) as lease:
        return 0 if lease is None else apply_retention()
