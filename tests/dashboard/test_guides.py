"""Guides: one a framework, with this server's address in every snippet and the key in none."""

from __future__ import annotations

import ast

import pytest

from apps.dashboard.guides import GUIDES, fill
from apps.dashboard.highlight import highlight


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.slug)
def test_each_guide_opens_with_its_snippets(client, project, guide):
    answer = client.get(f"/guides/{guide.slug}")
    html = answer.content.decode()
    assert answer.status_code == 200 and guide.name in html
    assert "http://testserver/api/v1" in html or "://testserver:" in html
    assert project.key not in html and "{base}" not in html and "{key}" not in html


def test_the_public_url_wins(client, project, settings):
    settings.AGENTX_PUBLIC_URL = "https://agentx.example"
    assert "https://agentx.example/api/v1" in client.get("/guides").content.decode()


def test_grpc_is_offered_only_while_its_receiver_is_on(client, project, settings):
    settings.OTLP_GRPC_PORT = 4317
    assert "http://testserver:4317" in client.get("/guides/opentelemetry").content.decode()
    settings.OTLP_GRPC_PORT = 0
    assert "PROTOCOL=grpc" not in client.get("/guides/opentelemetry").content.decode()


def test_an_unknown_guide_is_not_found(client, project):
    assert client.get("/guides/cobol").status_code == 404


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.slug)
def test_python_snippets_are_python_and_import_what_exists(guide):
    for step in guide.steps:
        if step.language != "python":
            continue
        code = fill(step.code, base_url="http://localhost:4700/api/v1", grpc_port=4317)
        tree = compile(code, guide.slug, "exec", flags=ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("agentx.integrations."):
                source = _source(node.module)
                assert all(f"class {alias.name}" in source or f"def {alias.name}" in source for alias in node.names)


def _source(module: str) -> str:
    from importlib.util import find_spec

    # The module itself is not imported: it needs its framework, which is not installed here.
    spec = find_spec("agentx")
    assert spec is not None and spec.submodule_search_locations
    from pathlib import Path

    path = Path(next(iter(spec.submodule_search_locations)), *module.split(".")[1:])
    return path.with_suffix(".py").read_text("utf-8")


def test_the_first_python_guide_runs_against_the_client():
    """Its calls exist with these arguments in the published client."""
    import inspect

    from agentx.tracing.tracer import Tracer

    assert {"input", "session_id", "sync"} <= set(inspect.signature(Tracer.trace).parameters)
    assert "query" in inspect.signature(Tracer.trace_retrieval).parameters
    assert "input" in inspect.signature(Tracer.trace_tool_call).parameters


def test_highlighting_escapes_and_keeps_the_text():
    html = highlight('x = "<b>"  # <i>')
    assert "<b>" not in html and "<i>" not in html
    assert "&lt;b&gt;" in html and 'class="s"' in html and 'class="c"' in html
