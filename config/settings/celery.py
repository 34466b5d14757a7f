"""Celery: a broker by AGENTX_BROKER_URL, else the embedded queue in the same database."""

from __future__ import annotations

from typing import Any

from config import env

CELERY_BROKER_URL = env.text("AGENTX_BROKER_URL") or "agentx://database"
EMBEDDED_BROKER = CELERY_BROKER_URL.startswith("agentx://")
CELERY_TASK_IGNORE_RESULT = True
# No results, hence no job that cleans them up.
CELERY_RESULT_EXPIRES = None
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 3600
CELERY_TASK_DEFAULT_QUEUE = "agentx"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# A worker outlives any outage of its broker; the pause between tries is bounded by Celery (30 s).
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
# Redis delivers a message again after this; longer than the longest task.
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {} if EMBEDDED_BROKER else {"visibility_timeout": 3900}
DJANGO_CELERY_BEAT_TZ_AWARE = True
# Seconds, not crontabs: settings must not import Celery into the web process.
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    # Hourly rather than daily: a server that restarts every night would never come to the end of a day.
    "expire-spans": {"task": "apps.tracing.tasks.expire_spans", "schedule": 3600.0},
    "drain-checks": {"task": "monitoring.drain_checks", "schedule": 10.0},
    "finish-project-deletions": {"task": "projects.finish_deletions", "schedule": 600.0},
}
