"""The programs of examples/ and the smoke test, run as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sdk.recording import Recording
from tests.support.providers import Answer, ToolCall, Usage
from tests.support.server import ROOT, clean_environment

EXAMPLES = ROOT / "examples"
ASKS_WEATHER = Answer(tools=[ToolCall("weather", {"city": "Oslo"})], usage=Usage(90, 12))
SAYS_YES = Answer("Yes, take one.", usage=Usage(130, 6))


def run(name: str, recording: Recording, tmp_path: Path, **extra: str) -> str:
    """Run an example in a shell of its own; returns what it printed."""
    environment = {
        **clean_environment(tmp_path),
        "AGENTX_API_KEY": str(recording.client.api_key),
        "AGENTX_API_BASE_URL": str(recording.client.base_url),
        **extra,
    }
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_every_example_is_listed_and_tried():
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    listed = (EXAMPLES / "README.md").read_text("utf-8")
    tried = Path(__file__).read_text("utf-8")
    assert programs
    for name in programs:
        assert f"`{name}`" in listed
        assert f'"{name}"' in tried


def test_travel_concierge(recording: Recording, tmp_path):
    said = run("travel_concierge.py", recording, tmp_path)
    assert [line.split()[0] for line in said.splitlines()[1:]] == ["chain", "memory", "retrieval", "memory"]
    assert recording.root()["_id"] in said


def test_support_session(recording: Recording, tmp_path):
    said = run("support_session.py", recording, tmp_path)
    assert "Where is my order A-17? -> Your order is shipped, arrives on Tuesday." in said
    assert "And B-99? -> I cannot find that order." in said
    assert "runs 3, tool failure rate 33%" in said
    assert len({root["sessionId"] for root in recording.roots()}) == 1


def test_parallel_research(recording: Recording, tmp_path):
    assert "delivered" in run("parallel_research.py", recording, tmp_path)
    threads, tasks = recording.roots()
    assert {span["name"] for span in recording.children(threads)} == {"read history", "read prices", "read weather"}
    assert [span["name"] for span in recording.children(tasks)] == ["ask"] * 3


def test_openai_tool_loop(recording: Recording, tmp_path, fake_provider):
    pytest.importorskip("openai", reason="the openai package is not installed")
    fake_provider.answer(ASKS_WEATHER, SAYS_YES)
    said = run(
        "openai_tool_loop.py", recording, tmp_path, OPENAI_BASE_URL=fake_provider.openai_url, OPENAI_API_KEY="sk-x"
    )
    assert said.splitlines() == ["Yes, take one.", "220 tokens in, 18 out, 0.000044 USD"]
    assert recording.shape(recording.root())[2] == [
        ("LLM Call 1", "llm", []),
        ("weather", "tool", []),
        ("LLM Call 2", "llm", []),
    ]


def test_langgraph_agent(recording: Recording, tmp_path, fake_provider):
    for module in ("langgraph.graph", "langchain_openai"):
        pytest.importorskip(module, reason=f"{module.split('.')[0]} (extra `integrations`) is not installed")
    fake_provider.answer(ASKS_WEATHER, SAYS_YES)
    said = run(
        "langgraph_agent.py", recording, tmp_path, OPENAI_BASE_URL=fake_provider.openai_url, OPENAI_API_KEY="sk-x"
    )
    assert said.splitlines()[0] == "Yes, take one."
    assert [node for node, _, _ in recording.shape(recording.root())[2]] == ["assistant", "tools", "assistant"]


def test_opentelemetry_agent(recording: Recording, tmp_path):
    assert "delivered" in run("opentelemetry_agent.py", recording, tmp_path)
    root = recording.root()
    assert (root["sessionId"], root["spanKind"]) == ("otel-example", "agent")
    assert [kind for _, kind, _ in recording.shape(root)[2]] == ["llm", "tool"]
    assert [agent["name"] for agent in recording.client.monitor.agents.list()] == ["invoke_agent planner"]


def test_plain_http(recording: Recording, tmp_path):
    said = run("plain_http.py", recording, tmp_path)
    assert [line.split(" ", 2)[2] for line in said.splitlines()] == ["stored", "stored"] + ["already stored"] * 2
    assert recording.shape(recording.root()) == ("plain-agent", "agent", [("search", "tool", [])])


def test_the_smoke_test(tmp_path):
    """scripts/smoke-test.sh starts a server of its own and ends with 0 (OPS-083, as far as built)."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", str(ROOT / "scripts" / "smoke-test.sh")],
        env={**clean_environment(tmp_path), "PATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()[-1:]) == (0, ["smoke test passed"]), done.stdout + done.stderr
