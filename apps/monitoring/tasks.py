"""Background jobs of monitoring; thin: each calls one service."""

from __future__ import annotations

from celery import shared_task

from apps.monitoring.services import check_queue


@shared_task(name="monitoring.drain_checks")
def drain_checks() -> int:
    """Check the roots that wait; several workers may run it at once, each claims its own. Returns how many were done."""
    return check_queue.drain()
