"""Ready-made gates for CI systems, with this server's address and a dataset's id in them.

`{base}` and `{dataset}` are filled in; the key always comes from the CI system's secrets. The same texts stand in
docs/ci.md, which a test holds them to.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Snippet:
    """A text to copy: its `slug` in the page's address, its name, the file it goes into and its language."""

    slug: str
    name: str
    file: str
    language: str
    code: str


_SCRIPT = """import sys

from agentx import AgentX

from my_app import my_agent  # takes a case, answers case.query

client = AgentX.from_env()
report = (
    client.evaluations.run(dataset_id="{dataset}", subject={{"display_name": "my-agent"}})
    .execute(my_agent, concurrency=8)
    .finalize()
)
gate = report.gate(fail_under=7, no_regression=True, caller="ci")
sys.exit(0 if gate.passed else 1)
"""

_GITHUB = """name: Evaluate the agent
on: [pull_request]

jobs:
  gate:
    runs-on: ubuntu-latest
    timeout-minutes: 30
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.12"
      - run: pip install agentx-python -r requirements.txt
      - run: python evaluate.py
        env:
          AGENTX_API_BASE_URL: {base}
          AGENTX_API_KEY: ${{{{ secrets.AGENTX_API_KEY }}}}
"""

_GITLAB = """evaluate:
  image: python:3.12-slim
  rules:
    - if: $CI_PIPELINE_SOURCE == "merge_request_event"
  timeout: 30 minutes
  variables:
    AGENTX_API_BASE_URL: {base}
    # AGENTX_API_KEY: a masked variable of the project
  script:
    - pip install agentx-python -r requirements.txt
    - python evaluate.py
"""

_PYTEST = """from agentx import AgentX
from agentx.testing import assert_evaluation

from my_app import my_agent


def test_the_agent_is_as_good_as_before():
    client = AgentX.from_env()
    report = (
        client.evaluations.run(dataset_id="{dataset}", subject={{"display_name": "my-agent"}})
        .execute(my_agent, concurrency=8)
        .finalize()
    )
    assert_evaluation(report, min_rating=7, no_regression=True)
"""

_CURL = """# Gate a run that has been finalized: RUN_ID is what POST .../runs answered.
curl -fsS -G "{base}/custom-agent-evaluations/runs/$RUN_ID/gate" \\
  -H "x-api-key: $AGENTX_API_KEY" \\
  -d failUnder=7 -d noRegression=true -d record=true -d caller=curl \\
  | tee gate.json
jq -e .passed gate.json

# What would the newest run of the dataset say? Nothing is recorded.
curl -fsS -G "{base}/evaluate/ci/gates/preview" \\
  -H "x-api-key: $AGENTX_API_KEY" \\
  -d datasetId={dataset} -d failUnder=7
"""

SNIPPETS: tuple[Snippet, ...] = (
    Snippet("python", "Python", "evaluate.py", "python", _SCRIPT),
    Snippet("github", "GitHub", ".github/workflows/evaluate.yml", "sh", _GITHUB),
    Snippet("gitlab", "GitLab", ".gitlab-ci.yml", "sh", _GITLAB),
    Snippet("pytest", "pytest", "tests/test_agent_quality.py", "python", _PYTEST),
    Snippet("curl", "curl", "", "sh", _CURL),
)


def fill(code: str, *, base_url: str, dataset_id: str) -> str:
    """The text with the address and the id in their places."""
    return code.format(base=base_url, dataset=dataset_id or "<dataset id>")
