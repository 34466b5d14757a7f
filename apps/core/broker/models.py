"""The table behind the embedded broker."""

from __future__ import annotations

from django.db import models


class BrokerMessage(models.Model):
    """One Celery message; it is there until its task has been acknowledged.

    `leased_until_ms` is 0 for a waiting message. A worker that takes it sets a time a little ahead and keeps moving it
    while it works; when the worker dies, the time passes and the message is delivered again.
    """

    id = models.BigAutoField(primary_key=True)
    queue = models.CharField(max_length=200)
    tag = models.CharField(max_length=64, unique=True, help_text="The delivery tag; changes with every publication.")
    payload = models.TextField(help_text="The message as kombu's JSON.")
    leased_until_ms = models.BigIntegerField(default=0)
    deliveries = models.IntegerField(default=0)

    class Meta:
        app_label = "core"
        indexes = [models.Index(fields=["queue", "id"], name="broker_queue_order")]

    def __str__(self) -> str:
        return f"{self.queue}:{self.id}"
