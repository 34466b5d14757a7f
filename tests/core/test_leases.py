"""Leases: one holder at a time, in threads of their own with connections of their own."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from apps.core import leases
from apps.core.models import Lease


@pytest.mark.django_db
def test_a_held_lease_is_refused_until_it_is_given_back():
    first = leases.acquire("sweep")
    assert first is not None
    assert leases.acquire("sweep") is None
    assert leases.is_held("sweep")
    assert leases.acquire("another") is not None
    first.release()
    assert leases.acquire("sweep") is not None


@pytest.mark.django_db
def test_a_dead_holder_blocks_nobody_after_its_time():
    dead = leases.acquire("sweep")
    assert dead is not None
    Lease.objects.filter(name="sweep").update(expires_at=timezone.now() - timedelta(seconds=1))
    assert not leases.is_held("sweep")
    heir = leases.acquire("sweep")
    assert heir is not None
    # The dead one wakes up: it has lost the lease, and giving back what it lost takes nothing from the heir.
    assert not dead.renew()
    dead.release()
    assert heir.renew()
    assert leases.acquire("sweep") is None


@pytest.mark.django_db
def test_a_block_gives_its_lease_back_even_when_it_fails():
    with pytest.raises(RuntimeError), leases.held("sweep") as lease:
        assert lease is not None
        with leases.held("sweep") as second:
            assert second is None
        raise RuntimeError
    assert not leases.is_held("sweep")


@pytest.mark.django_db(transaction=True)
def test_of_many_at_once_one_gets_it():
    got: list[object] = []
    start = threading.Barrier(8)

    def contend() -> None:
        start.wait(timeout=20)
        got.append(leases.acquire("sweep"))
        connection.close()

    threads = [threading.Thread(target=contend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(got) == 8
    assert sum(lease is not None for lease in got) == 1
