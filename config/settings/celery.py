"""Celery: a broker by AGENTX_BROKER_URL, else the embedded queue in the same database."""

from config import env

CELERY_BROKER_URL = env.text("AGENTX_BROKER_URL") or "memory://"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_TIME_LIMIT = 3600
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
DJANGO_CELERY_BEAT_TZ_AWARE = True
