"""Hand work to the background. A message is only a hint: the rows a task works on are the truth."""

from __future__ import annotations

import logging
from typing import Any

from django.db import transaction

logger = logging.getLogger(__name__)


def enqueue(task: str, /, *, countdown: float | None = None, **kwargs: Any) -> None:
    """Queue a task by its dotted name, e.g. `apps.projects.tasks.delete_project`, once the transaction is committed.

    `kwargs` must be JSON; `countdown` delays it by seconds. A broker that does not answer is logged, not raised: the
    caller's rows are committed, and the periodic sweeps pick up what a lost hint would have started.
    """

    def send() -> None:
        # Imported here: a web process that never queues anything stays without Celery's memory.
        from kombu.exceptions import OperationalError as BrokerError

        from config.celery import app

        try:
            app.send_task(task, kwargs=kwargs, countdown=countdown, retry=False)
        except (BrokerError, OSError):
            logger.exception("task %s could not be queued", task)

    transaction.on_commit(send)
