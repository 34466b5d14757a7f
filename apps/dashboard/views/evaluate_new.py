"""Create evaluation: choose a dataset and who judges, take the script that runs your agent over it (UI-087, UI-088)."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_safe

from apps.dashboard.context import Shell
from apps.dashboard.current import DashboardRequest
from apps.dashboard.highlight import highlight
from apps.datasets import selectors as datasets
from apps.scorers import selectors as scorers

_LISTED = 200
_FLAVOURS: tuple[tuple[str, str, str, str], ...] = (
    (
        "simple",
        "Python",
        "",
        """def my_agent(case):
    with client.tracer.trace("my-agent", input={"query": case.query}, sync=True, monitor=False) as span:
        span.output = answer(case.query)  # your agent
    return {"output": span.output, "trace_id": span.trace_id}
""",
    ),
    (
        "openai",
        "OpenAI",
        "from openai import OpenAI\n",
        """openai = OpenAI()


def my_agent(case):
    with client.tracer.trace("my-agent", input={"query": case.query}, sync=True, monitor=False) as span:
        messages = [{"role": "user", "content": case.query}]
        reply = openai.chat.completions.create(model="gpt-4o-mini", messages=messages)
        span.output = reply.choices[0].message.content
    return {"output": span.output, "trace_id": span.trace_id}
""",
    ),
    (
        "langchain",
        "LangChain",
        "from langchain.chat_models import init_chat_model\n",
        """model = init_chat_model("openai:gpt-4o-mini")


def my_agent(case):
    with client.tracer.trace(
        "my-agent", input={"query": case.query}, framework="langchain", sync=True, monitor=False
    ) as span:
        span.output = model.invoke(case.query).content
    return {"output": span.output, "trace_id": span.trace_id}
""",
    ),
    (
        "google-adk",
        "Google ADK",
        "import asyncio\n\nfrom google.adk.agents import Agent\nfrom google.adk.runners import InMemoryRunner\n",
        """agent = Agent(name="my_agent", model="gemini-2.0-flash", instruction="Answer briefly.")
runner = InMemoryRunner(agent=agent)


def my_agent(case):
    with client.tracer.trace(
        "my-agent", input={"query": case.query}, framework="google-adk", sync=True, monitor=False
    ) as span:
        events = asyncio.run(runner.run_debug(case.query))
        span.output = "".join(part.text or "" for part in events[-1].content.parts)
    return {"output": span.output, "trace_id": span.trace_id}
""",
    ),
)
_HEAD = """{imports}from agentx import AgentX

# AGENTX_API_BASE_URL={base} and AGENTX_API_KEY stand in the environment.
client = AgentX.from_env()
"""
_TAIL = """
report = (
    client.evaluations.run({arguments})
    .execute(my_agent, concurrency=4)
    .finalize()
)
print(report.run_id)
"""


@dataclass(frozen=True, slots=True)
class Choice:
    """An entry of a list to choose from."""

    value: str
    label: str


def script(
    flavour: str, *, base_url: str, dataset_id: str, scorer: str = "", group: str = "", version: bool = True
) -> str:
    """The Python text that runs an agent over a dataset and has the answers judged."""
    _slug, _name, imports, agent = next((one for one in _FLAVOURS if one[0] == flavour), _FLAVOURS[0])
    subject = (
        '{"display_name": "my-agent", "metadata": {"version": "v1"}}' if version else '{"display_name": "my-agent"}'
    )
    parts = [f'dataset_id="{dataset_id}"']
    if group:
        parts.append(f'scorer_group_id="{group}"')
    elif scorer:
        parts.append(f'scorer_id="{scorer}"')
    parts.append(f"subject={subject}")
    arguments = "\n        " + ",\n        ".join(parts) + ",\n    "
    imports = f"{imports}\n" if imports else ""
    return (
        _HEAD.replace("{imports}", imports).replace("{base}", base_url)
        + "\n\n"
        + agent
        + "\n"
        + _TAIL.replace("{arguments}", arguments)
    )


@require_safe
def new(request: DashboardRequest) -> HttpResponse:
    """The script for the dataset and scorer of the address; every choice is a link or a form field, nothing is stored."""
    given = request.GET
    cases = [
        Choice(
            row.pk,
            f"{row.name} ({ngettext('%(n)d case', '%(n)d cases', row.case_count) % {'n': row.case_count}})",
        )
        for row in datasets.list_datasets(request.project)[:_LISTED]
    ]
    judges = [Choice(row.pk, row.name) for row in scorers.list_judge_scorers(request.project)[:_LISTED]]
    groups = [Choice(row.pk, row.name) for row in scorers.list_groups(request.project)[:_LISTED]]

    def chosen(name: str, choices: list[Choice], otherwise: str = "") -> str:
        value = given.get(name, "")
        return value if any(one.value == value for one in choices) else otherwise

    dataset = chosen("dataset", cases, cases[0].value if cases else "")
    group = chosen("group", groups)
    scorer = chosen("scorer", judges)
    flavour = given.get("flavour", "")
    flavour = flavour if any(one[0] == flavour for one in _FLAVOURS) else "simple"
    code = script(
        flavour, base_url=Shell(request).base_url, dataset_id=dataset or "<dataset id>", scorer=scorer, group=group
    )
    context = {
        "datasets": cases,
        "judges": judges,
        "groups": groups,
        "dataset": dataset,
        "scorer": scorer,
        "group": group,
        "flavour": flavour,
        "flavours": [(slug, _("Simple") if slug == "simple" else name) for slug, name, _imports, _agent in _FLAVOURS],
        "coloured": highlight(code),
    }
    return render(request, "dashboard/evaluate/new.html", context)
