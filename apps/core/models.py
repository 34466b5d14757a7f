"""Rows of the instance itself: settings kept in the database, leases, and the base of wire objects."""

from __future__ import annotations

from django.db import models

from apps.core.broker.models import BrokerMessage
from apps.core.ids import default_id

__all__ = ["BrokerMessage", "InstanceSetting", "Lease", "WireModel"]


class WireModel(models.Model):
    """A row the API shows: its `_id` is a 21-character id that carries its time of creation."""

    id = models.CharField(primary_key=True, max_length=21, default=default_id, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True


class InstanceSetting(models.Model):
    """One instance-wide value, e.g. the platform model; never exported."""

    key = models.CharField(primary_key=True, max_length=100)
    value = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return self.key


class Lease(models.Model):
    """A named lock with an end, so that a sweep runs once in a whole deployment and a dead holder blocks nobody."""

    name = models.CharField(primary_key=True, max_length=100)
    holder = models.CharField(max_length=64)
    expires_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
