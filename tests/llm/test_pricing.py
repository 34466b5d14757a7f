"""Prices by date, and the arithmetic of a cost."""

from __future__ import annotations

import pytest

from apps.core.times import from_ms
from apps.llm import pricing
from apps.llm.models import CatalogModel, ModelPrice
from apps.llm.pricing import Price, cost, price_of


def add_price(model_id: str, from_at_ms: int, rates: tuple, organization=None) -> None:
    model, _ = CatalogModel.objects.get_or_create(
        model_id=model_id, organization=organization, defaults={"provider": "openai", "label": model_id}
    )
    ModelPrice.objects.create(
        model=model,
        valid_from=from_ms(from_at_ms),
        input_per_m=rates[0],
        output_per_m=rates[1],
        cache_read_per_m=rates[2],
        cache_write_per_m=rates[3],
    )
    pricing.bump_version()
    pricing.forget()


@pytest.mark.django_db
def test_the_price_that_held_at_the_time_counts():
    add_price("m", 0, (1.0, 2.0, None, None))
    add_price("m", 5_000, (3.0, 4.0, 0.5, 6.0))
    assert price_of("m", 4_999) == Price(1.0, 2.0, 1.0, 1.0)
    assert price_of("m", 5_000) == Price(3.0, 4.0, 0.5, 6.0)
    assert price_of("m", 10**13) == Price(3.0, 4.0, 0.5, 6.0)


@pytest.mark.django_db
def test_no_price_is_none_never_zero():
    add_price("late", 1_000, (1.0, 2.0, None, None))
    assert price_of("late", 999) is None
    assert price_of("unknown", 5) is None
    assert price_of(None, 5) is None
    assert price_of("", 5) is None


@pytest.mark.django_db
def test_a_dated_snapshot_costs_what_its_base_name_does_unless_it_has_a_row():
    add_price("gpt-4o-mini", 0, (1.0, 2.0, None, None))
    assert price_of("gpt-4o-mini-2024-07-18", 1).input == 1.0
    assert price_of("gpt-4o-mini-20240718", 1).input == 1.0
    assert price_of("gpt-4o-mini-audio", 1) is None
    assert price_of("other-2024-07-18", 1) is None
    add_price("gpt-4o-mini-2024-07-18", 0, (5.0, 2.0, None, None))
    assert price_of("gpt-4o-mini-2024-07-18", 1).input == 5.0


@pytest.mark.django_db
def test_an_organizations_own_price_wins_for_it_only(project):
    add_price("m", 0, (1.0, 2.0, None, None))
    add_price("m", 0, (9.0, 9.0, None, None), organization=project.organization)
    assert price_of("m", 1, project.organization_id).input == 9.0
    assert price_of("m", 1, "another").input == 1.0
    assert price_of("m", 1).input == 1.0


@pytest.mark.django_db
def test_look_ups_query_nothing_while_the_table_is_fresh(django_assert_num_queries):
    add_price("m", 0, (1.0, 2.0, None, None))
    with django_assert_num_queries(2):
        price_of("m", 1)
    with django_assert_num_queries(0):
        for moment in range(100):
            price_of("m", moment)
            price_of("unknown", moment)


@pytest.mark.django_db
def test_a_change_by_another_process_is_seen_when_the_table_ages(settings, django_assert_num_queries):
    add_price("m", 0, (1.0, 2.0, None, None))
    settings.CACHE_SECONDS = 0
    assert price_of("m", 1).input == 1.0
    ModelPrice.objects.update(input_per_m=7.0)
    with django_assert_num_queries(1):  # the version has not changed: nothing is loaded
        assert price_of("m", 1).input == 1.0
    pricing.bump_version()
    assert price_of("m", 1).input == 7.0


@pytest.mark.parametrize(
    ("price", "counts", "usd"),
    [
        (Price(1.25, 10.0, 1.25, 1.25), (10, 0, 4, 0), 10 * 1.25),
        (Price(15.0, 75.0, 1.5, 18.75), (1_000, 100, 400, 200), 400 * 15 + 400 * 1.5 + 200 * 18.75 + 100 * 75),
        # Cache counts that exceed the input: the plain part is 0, never negative.
        (Price(2.0, 3.0, 1.0, 1.0), (5, 1, 100, 10), 110 * 1.0 + 3.0),
        (Price(2.0, 3.0, 1.0, 1.0), (0, 0, 0, 0), 0),
    ],
)
def test_cost(price, counts, usd):
    assert cost(price, *counts) == pytest.approx(usd / 1_000_000)
