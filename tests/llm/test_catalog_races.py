"""Two writers of the catalog at once, each with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from django.db import connection

from apps.core.api.errors import APIError
from apps.llm.models import CatalogModel
from apps.llm.services.catalog import ModelFields, Rates, create_model, seed_catalog, update_model

RATES = Rates(input_per_m=1.0, output_per_m=2.0, cache_read_per_m=None, cache_write_per_m=None)


def at_once(*calls: Callable[[], object]) -> list[object]:
    """What each call gave or raised, all started together."""
    start = threading.Barrier(len(calls))
    results: list[object] = [None] * len(calls)

    def run(index: int, call: Callable[[], object]) -> None:
        start.wait(timeout=20)
        try:
            results[index] = call()
        except APIError as error:
            results[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


def fields(label: str, **more: object) -> ModelFields:
    return ModelFields(provider="openai", label=label, **more)


@pytest.mark.django_db(transaction=True)
def test_the_same_id_twice_at_once_is_one_row_and_one_409():
    results = at_once(*(lambda n=n: create_model(model_id="m", fields=fields(str(n)), rates=RATES) for n in range(4)))
    refused = [result for result in results if isinstance(result, APIError)]
    assert [error.status_code for error in refused] == [409, 409, 409]
    assert CatalogModel.objects.filter(model_id="m").count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_new_defaults_at_once_leave_one():
    for model_id in ("a", "b"):
        create_model(model_id=model_id, fields=fields(model_id), rates=RATES)
    at_once(
        *(
            lambda model_id=model_id: update_model(
                model_id=model_id, fields=ModelFields(is_default=True), rates=Rates()
            )
            for model_id in ("a", "b")
        )
    )
    assert CatalogModel.objects.filter(is_default=True).count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_at_once_seed_once():
    results = at_once(seed_catalog, seed_catalog)
    assert sorted(results)[0] == 0
    assert CatalogModel.objects.filter(model_id="gpt-4o-mini").count() == 1
    assert CatalogModel.objects.filter(is_default=True).count() == 1
