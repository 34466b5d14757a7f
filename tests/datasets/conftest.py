"""`api` and `other_api` speak JSON with a project's key; `span` stores rows; `make` creates a dataset."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.reads import api, other_api, other_project, span  # noqa: F401

SDK = "/custom-agent-evaluations"
PAGES = "/evaluate"


@pytest.fixture
def make(api):  # noqa: F811
    """Creates a dataset and gives its document."""

    def create(*queries: str, **body: Any) -> dict[str, Any]:
        questions = [{"main_question": {"query": query}} for query in queries]
        response = api.post(f"{SDK}/datasets", {"name": "Support", "questions": questions, **body})
        assert response.status_code == 201, response.content
        return response.json()

    return create
