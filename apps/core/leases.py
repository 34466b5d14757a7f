"""Named leases: a sweep runs once in a whole deployment, and a holder that died blocks nobody for long (OPS-068, 069).

    with leases.held("session-sweep") as lease:
        if lease is None:
            return  # somebody else is at it
        for batch in work:
            if not lease.renew():
                return  # lost: another process has taken over
            ...

A lease is one row. Each step is one conditional UPDATE or an INSERT against the primary key, so the same code is
right on SQLite and on Postgres, in any isolation level, with or without an open transaction. Call it outside a long
transaction: what is not committed is not held in the eyes of others.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from apps.core.models import Lease

# A lease runs out this long after its holder's last sign of life (OPS-069).
DEFAULT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A lease this caller has; `holder` is unique to the acquisition."""

    name: str
    holder: str
    seconds: float

    def renew(self) -> bool:
        """Extend it by its full length from now; False when it has run out and somebody else took it."""
        return bool(
            Lease.objects.filter(name=self.name, holder=self.holder).update(
                expires_at=timezone.now() + timedelta(seconds=self.seconds)
            )
        )

    def release(self) -> None:
        """Give it back; nothing happens when it is not ours any more."""
        Lease.objects.filter(name=self.name, holder=self.holder).delete()


def acquire(name: str, *, seconds: float = DEFAULT_SECONDS) -> HeldLease | None:
    """Take the lease if nobody has it or its holder's time is over; None when it is held. Never waits."""
    now = timezone.now()
    lease = HeldLease(name=name, holder=_new_holder(), seconds=seconds)
    expires = now + timedelta(seconds=seconds)
    taken = Lease.objects.filter(name=name, expires_at__lte=now).update(holder=lease.holder, expires_at=expires)
    if taken:
        return lease
    if Lease.objects.filter(name=name).exists():
        return None
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=lease.holder, expires_at=expires)
    except IntegrityError:
        return None
    return lease


@contextmanager
def held(name: str, *, seconds: float = DEFAULT_SECONDS) -> Iterator[HeldLease | None]:
    """The lease for the length of a block, or None when somebody else has it; given back at the end."""
    lease = acquire(name, seconds=seconds)
    try:
        yield lease
    finally:
        if lease is not None:
            lease.release()


def is_held(name: str) -> bool:
    """Whether anybody holds the lease now."""
    return Lease.objects.filter(models.Q(expires_at__gt=timezone.now()), name=name).exists()


def _new_holder() -> str:
    """Readable in the table, unique to this acquisition, at most 64 characters."""
    return f"{socket.gethostname()[:32]}:{os.getpid()}:{secrets.token_hex(8)}"
