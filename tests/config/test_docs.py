"""The documentation says what the code does: variables, flags, commands, routes, metrics, files of the deployment."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from config.env import VARIABLES
from tests.support.server import ROOT

DOCS = ROOT / "docs"


def read(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_the_configuration_page_is_what_the_declarations_say():
    from scripts import configuration_docs

    assert configuration_docs.PAGE.read_text("utf-8") == configuration_docs.page_with_tables(), "run `make docs`"


def test_every_variable_in_the_code_is_declared():
    declared = set(VARIABLES) | {
        # Between our own processes and the launcher; not for users.
        "AGENTX_CHILD_PROCESS",
        "AGENTX_TEST_DB_URL",
        "AGENTX_AUTH_SECRET_STORED",
        "AGENTX_INSTALL_DIR",
        "AGENTX_TRACE_EVAL_VERSION",
        # What a page shows a user for the SDK.
        "AGENTX_API_KEY",
        "AGENTX_API_BASE_URL",
    }
    pattern = re.compile(r"\bAGENTX_[A-Z][A-Z_]*[A-Z]\b")
    settings = {"AGENTX_PUBLIC_URL"}
    for folder in ("config", "apps"):
        for file in (ROOT / folder).rglob("*.py"):
            for name in pattern.findall(file.read_text("utf-8")):
                prefix = any(other.startswith(name) for other in declared)
                assert name in declared | settings or prefix, f"{name} in {file.relative_to(ROOT)}"


def test_every_metric_is_documented():
    from apps.operations.metrics import INGEST

    page = read("configuration.md")
    for name, *_ in INGEST:
        assert f"`{name}`" in page


def _patterns(resolver: URLResolver, prefix: str = "") -> list[str]:
    found: list[str] = []
    for entry in resolver.url_patterns:
        path = prefix + str(entry.pattern)
        if isinstance(entry, URLPattern):
            found.append(path)
        else:
            found += _patterns(entry, path)
    return found


def test_every_api_route_is_on_the_map():
    page = read("api.md")
    named = {
        re.sub(r"\{(?!monitor|evaluations)\w+\}", "{}", route)
        for route in re.findall(r"[`\s]((?:/|\{monitor\}|\{evaluations\})[^`\s,]*)", page)
    }
    for path in _patterns(get_resolver()):
        if not path.startswith("api/v1/"):
            continue
        route = "/" + re.sub(r"<[^>]+>", "{}", path)
        for long in ("/api/v1/agent-monitoring", "/api/v1/monitor"):
            if route.startswith(long + "/"):
                route = "{monitor}" + route[len(long) :]
        either = re.sub(r"^/api/v1/(custom-agent-evaluations|evaluate)/", "{evaluations}/", route)
        assert {route, either} & named, f"docs/api.md lacks {route}"


def test_every_variable_of_the_examples_exists():
    pattern = re.compile(r"\bAGENTX_[A-Z][A-Z_]*[A-Z]\b")
    elsewhere = {
        "AGENTX_API_KEY",
        "AGENTX_API_BASE_URL",
        "AGENTX_INSTALL_DIR",
        "AGENTX_TRACE_EVAL_VERSION",
        "AGENTX_TRACE_EVAL_SKIP_WEB",
        "AGENTX_VERSION",
    }
    files = [*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "Dockerfile", *ROOT.glob("docker-compose*.yml")]
    for file in files:
        for name in pattern.findall(file.read_text("utf-8")):
            assert name in VARIABLES or name in elsewhere, f"{name} in {file.name}"


@pytest.mark.parametrize("page", [*sorted(p.name for p in DOCS.glob("*.md")), "../README.md"])
def test_links_between_pages_lead_somewhere(page):
    file = DOCS / page
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", file.read_text("utf-8")):
        assert (file.parent / target).exists(), f"{page}: {target}"


def test_the_readme_begins_with_the_two_commands():
    lines = (ROOT / "README.md").read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("pip install")]
    assert commands[0].startswith("pip install -e . && agentx-server")
    assert commands[1] == "pip install -e '.[test]' && pytest"


def test_the_install_page_names_the_launchers_variables():
    page = read("install.md")
    for name in (
        "AGENTX_INSTALL_DIR",
        "AGENTX_VERSION",
        "AGENTX_TRACE_EVAL_VERSION",
        "AGENTX_TRACE_EVAL_SKIP_WEB",
        "--update",
    ):
        assert name in page


def test_the_image_is_what_operators_rely_on():
    text = (ROOT / "Dockerfile").read_text("utf-8")
    assert re.search(r"^EXPOSE .*\b4700\b", text, re.M)
    assert re.search(r"^VOLUME /data$", text, re.M)
    assert re.search(r"AGENTX_HOME=/data\b", text)
    assert re.search(r"^HEALTHCHECK (.|\\\n)*/health", text, re.M)
    assert 'CMD ["agentx-server"]' in text
    for line in re.findall(r"^COPY (?!--from)(.+)$", text, re.M):
        *sources, _ = shlex.split(line)
        for source in sources:
            assert (ROOT / source).exists(), source


def test_compose_files_and_the_chart_parse():
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")
    compose = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert set(compose["services"]) == {"agentx", "postgres"}
    enterprise = yaml.safe_load((ROOT / "docker-compose.enterprise.yml").read_text("utf-8"))
    assert {"agentx", "postgres", "clickhouse"} <= set(enterprise["services"])
    chart = ROOT / "deploy" / "helm" / "agentx"
    values = yaml.safe_load((chart / "values.yaml").read_text("utf-8"))
    assert values["replicas"] == 1
    assert set(values["postgres"]) >= {"externalUrl"}
    assert set(values["clickhouse"]) >= {"externalUrl"}
    assert yaml.safe_load((chart / "Chart.yaml").read_text("utf-8"))["name"] == "agentx"
    deployment = (chart / "templates" / "deployment.yaml").read_text("utf-8")
    assert re.search(r"strategy:\s+type: Recreate", deployment)
    assert "path: /health" in deployment


def test_wheel_and_source_tree_hold_the_assets():
    for name in ("templates", "static", "fixtures"):
        assert (Path(ROOT) / name).is_dir()
