"""The fixtures of read tests."""

import pytest

from tests.support.reads import api, other_api, other_project, span  # noqa: F401


@pytest.fixture
def judges(fake_provider, monkeypatch, project):
    """The fake provider as the judges' OpenAI; `seen(n)` gives the text of the n-th question."""
    from apps.llm.services.catalog import seed_catalog
    from apps.llm.services.provider_keys import save_provider_keys

    seed_catalog()
    monkeypatch.setenv("OPENAI_BASE_URL", fake_provider.openai_url)
    save_provider_keys(keys={"openai": "sk-test-000000000000"})
    fake_provider.seen = lambda n=-1: fake_provider.requests[n].json["messages"][-1]["content"]
    return fake_provider
