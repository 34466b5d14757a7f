"""Identifiers: their shape, their order, and that no two are equal, in threads and forked processes too."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from apps.core.ids import ALPHABET, LENGTH, MAX_MS, id_ms, new_id, time_prefix


def test_shape_and_time() -> None:
    one = new_id(1_790_000_000_123)
    assert len(one) == LENGTH
    assert set(one) <= set(ALPHABET)
    assert one[0].isalpha()
    assert id_ms(one) == 1_790_000_000_123


def test_order_is_the_order_of_times() -> None:
    times = [0, 1, 63, 64, 4095, 4096, 1_790_000_000_000, 1_790_000_000_001, MAX_MS]
    prefixes = [time_prefix(ms) for ms in times]
    assert prefixes == sorted(prefixes)
    assert time_prefix(-5) == time_prefix(0)


@pytest.mark.parametrize("text", ["", "short", "x" * 22, "!" * 21, "-" * 21])
def test_not_an_id(text: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        id_ms(text)


def test_no_two_are_equal_across_threads() -> None:
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: [new_id(1) for _ in range(5000)], range(8)))
    assert len({one for batch in batches for one in batch}) == 40_000


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_draws_its_own() -> None:
    new_id()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, "".join(new_id(1) for _ in range(20)).encode())
        os._exit(0)
    os.waitpid(child, 0)
    text = os.read(reader, 10_000).decode()
    theirs = {text[start : start + LENGTH] for start in range(0, len(text), LENGTH)}
    assert len(theirs) == 20
    assert not theirs & {new_id(1) for _ in range(2000)}
