"""The Celery application: AGENTX_BROKER_URL, or the embedded queue in the same database.

Not imported by the web process before its first task: Celery costs memory that an idle server does not need.
"""

from __future__ import annotations

import os
from typing import Any

from celery import Celery, signals
from kombu.transport import TRANSPORT_ALIASES

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
TRANSPORT_ALIASES["agentx"] = "apps.core.broker.transport:Transport"

app = Celery("agentx")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.setup_logging.connect
def _keep_our_logging(**_kwargs: Any) -> None:
    """Celery would otherwise replace the JSON lines by its own format."""
