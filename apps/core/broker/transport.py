"""A kombu transport on the control-plane database: leases and delete-on-ack, so that no task is lost.

A message is a row (apps.core.broker.models). Taking it sets a lease, working keeps the lease alive, acknowledging
deletes the row. A worker that dies (kill -9, power) leaves its rows behind, and they are delivered again when the
lease has passed. So a task may run twice, never not at all; tasks are written for that.

Registered as `agentx://` in config/celery.py. Only direct exchanges, no broadcast: remote control, gossip and events
are switched off in the embedded tier.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
import weakref
from collections.abc import Iterator
from queue import Empty
from typing import Any

from django.db import DatabaseError, InterfaceError, OperationalError, connection
from django.db.models import F
from kombu.transport import base, virtual

from apps.core.broker.models import BrokerMessage
from apps.core.times import now_ms

logger = logging.getLogger(__name__)

LEASE_MS = 30_000
RENEW_SECONDS = 8.0
# A message that was taken this often and never acknowledged kills its workers; it is dropped with an error.
MAX_DELIVERIES = 5


@contextlib.contextmanager
def _fresh_after_failure() -> Iterator[None]:
    """Drop a broken connection, so that the next attempt opens a new one."""
    try:
        yield
    except (OperationalError, InterfaceError):
        if not connection.in_atomic_block:
            connection.close()
        raise


class QoS(virtual.QoS):
    """Keeps the leases of what was taken and not yet acknowledged. Acks come from other threads than deliveries."""

    def ack(self, delivery_tag: str) -> None:
        """The task is done: its row goes."""
        try:
            with _fresh_after_failure():
                BrokerMessage.objects.filter(tag=delivery_tag).delete()
        finally:
            # Also when the row could not be deleted: its lease ends and the task runs once more.
            self._quick_ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        """Give the message back, or drop it."""
        if not requeue:
            self.ack(delivery_tag)
            return
        try:
            release([delivery_tag])
        finally:
            self._quick_ack(delivery_tag)

    def held_tags(self) -> list[str]:
        """Tags whose lease this process must keep alive."""
        return [tag for tag in list(self._delivered) if tag not in self._dirty]


class Channel(virtual.Channel):
    """Reads and writes the message table on the calling thread's own database connection."""

    QoS = QoS
    body_encoding = "utf-8"

    def basic_consume(self, *args: Any, **kwargs: Any) -> Any:
        """Start consuming; from now on leases are renewed."""
        _renewer.watch(self.qos)
        return super().basic_consume(*args, **kwargs)

    def _put(self, queue: str, message: dict[str, Any], **kwargs: Any) -> None:
        with _fresh_after_failure():
            BrokerMessage.objects.create(
                queue=queue, tag=message["properties"]["delivery_tag"], payload=json.dumps(message)
            )

    def _get(self, queue: str, timeout: float | None = None) -> dict[str, Any]:
        with _fresh_after_failure():
            while True:
                now = now_ms()
                # Looking takes no lock; only a real candidate costs a write.
                row = BrokerMessage.objects.filter(queue=queue, leased_until_ms__lte=now).order_by("id").first()
                if row is None:
                    raise Empty
                if row.deliveries >= MAX_DELIVERIES:
                    logger.error("task dropped: it was started %d times and never finished", row.deliveries)
                    row.delete()
                    continue
                taken = BrokerMessage.objects.filter(id=row.id, leased_until_ms=row.leased_until_ms).update(
                    leased_until_ms=now + LEASE_MS, deliveries=F("deliveries") + 1
                )
                if taken:
                    message: dict[str, Any] = json.loads(row.payload)
                    if row.deliveries:
                        message["redelivered"] = True
                    return message

    def _restore(self, message: Any) -> None:
        """At shutdown: others may have it at once, and it did not count as a try."""
        try:
            release([message.delivery_tag])
        except (OperationalError, InterfaceError) as error:
            # The row is there all the same; its lease ends by itself. (Kombu would write it to a file in /tmp.)
            logger.info("a message will be delivered again when its lease ends: %s", error)

    def _size(self, queue: str) -> int:
        return BrokerMessage.objects.filter(queue=queue, leased_until_ms__lte=now_ms()).count()

    def _purge(self, queue: str) -> int:
        count, _ = BrokerMessage.objects.filter(queue=queue).delete()
        return count


def release(tags: list[str]) -> None:
    """End the leases of these messages."""
    with _fresh_after_failure():
        BrokerMessage.objects.filter(tag__in=tags).update(leased_until_ms=0, deliveries=F("deliveries") - 1)


class Transport(virtual.Transport):
    """`agentx://`: the database that Django is configured with."""

    Channel = Channel
    driver_type = "agentx"
    driver_name = "django"
    polling_interval = 0.5
    connection_errors: Any = (OperationalError, InterfaceError)
    channel_errors: Any = ()
    implements = base.Transport.implements.extend(
        asynchronous=False, exchange_type=frozenset(["direct"]), heartbeats=False
    )

    def establish_connection(self) -> Any:
        """Ask the database, so that Celery waits with growing pauses for one that is away."""
        with _fresh_after_failure(), connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return super().establish_connection()

    def drain_events(self, connection: Any, timeout: Any = None, **kwargs: Any) -> Any:
        """Return to the caller every half second, so that a worker notices a stop signal soon."""
        return super().drain_events(connection, timeout=self.polling_interval, **kwargs)

    def driver_version(self) -> str:
        """Shown by Celery's report."""
        import django

        return django.get_version()


class _Renewer:
    """One thread a process that moves the leases of everything taken and not yet acknowledged."""

    def __init__(self) -> None:
        self._watched: weakref.WeakSet[QoS] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def watch(self, qos: QoS) -> None:
        """Renew the leases of this channel for as long as it exists."""
        with self._lock:
            self._watched.add(qos)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="lease-renewer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(RENEW_SECONDS):
            with self._lock:
                watched = list(self._watched)
            tags = [tag for qos in watched for tag in qos.held_tags()]
            if not tags:
                continue
            try:
                with _fresh_after_failure():
                    BrokerMessage.objects.filter(tag__in=tags).update(leased_until_ms=now_ms() + LEASE_MS)
            except DatabaseError as error:
                logger.warning("leases of %d running tasks could not be renewed: %s", len(tags), error)


_renewer = _Renewer()
