"""GET /auth/config, and the account routes that do not exist in disabled mode (AUTH-014 … 016, 023)."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient


def test_anybody_gets_the_default_key(project):
    answer = APIClient().get("/api/v1/auth/config")
    assert answer.status_code == 200
    assert answer.json() == {"mode": "disabled", "needsSetup": False, "apiKey": project.key}
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_wrong_key_does_not_matter(project):
    assert APIClient(headers={"x-api-key": "nope"}).get("/api/v1/auth/config").status_code == 200


def test_it_reads_only(project, django_assert_num_queries):
    APIClient().get("/api/v1/auth/config")
    with django_assert_num_queries(2):
        APIClient().get("/api/v1/auth/config")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("post", "/api/v1/auth/sign-up/email"),
        ("post", "/api/v1/auth/sign-in/email"),
        ("post", "/api/v1/auth/sign-out"),
        ("get", "/api/v1/auth/get-session"),
        ("get", "/api/v1/auth-org/organizations"),
        ("get", "/api/v1/auth-org/audit"),
        ("get", "/api/v1/nope"),
        ("get", "/api/nope"),
    ],
)
def test_account_routes_are_404_json(project, method, path):
    answer = getattr(APIClient(headers={"x-api-key": project.key}), method)(path)
    assert (answer.status_code, answer.json()) == (404, {"error": "Not found"})
    assert answer.headers["Content-Type"].startswith("application/json")
