"""Scorers: list, templates, groups, and the judge scorer editor."""

from __future__ import annotations

import json
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.scorers import wire
from apps.scorers.models import JudgeScorer, ScorerGroup
from apps.scorers.services.judge_scorers import create_judge_scorer
from tests.dashboard.test_datasets_pages import posted


def scorer_of(project: Any, name: str = "Refunds", **body: Any) -> JudgeScorer:
    return create_judge_scorer(project=project, body={"name": name, **body})


def test_a_fresh_project_shows_no_scorer_but_the_templates(client, project):
    html = client.get("/scorers").content.decode()
    assert "No scorers yet" in html
    html = client.get("/scorers?view=templates").content.decode()
    assert "RAG: Faithfulness" in html and "Session Baseline Judge" in html
    assert "RAG" not in client.get("/scorers?view=templates&q=harmful").content.decode()
    assert "No groups yet" in client.get("/scorers?view=groups").content.decode()


def test_the_list_has_a_fixed_query_count(client, project):
    def queries() -> int:
        with CaptureQueriesContext(connection) as caught:
            client.get("/scorers")
        return len(caught)

    scorer_of(project)
    queries()
    few = queries()
    for n in range(15):
        scorer_of(project, f"Scorer {n}")
    assert queries() == few


def test_a_name_is_enough_and_live_scoring_stays_off(client, project):
    assert client.post("/scorers/new", {"name": ""}).status_code == 400
    answer = client.post("/scorers/new", {"name": "Tone", "acceptance_criteria": "Kind\r\nand short"})
    row = JudgeScorer.objects.get(name="Tone")
    assert answer.url == f"/scorers/{row.pk}"
    assert row.online is not None and row.online["enabled"] is False
    assert row.judge["acceptanceCriteria"] == "Kind\nand short"
    assert "Tone" in client.get("/scorers").content.decode()


def test_saving_what_the_page_shows_changes_nothing_and_an_edit_is_one_version(client, project):
    row = scorer_of(
        project,
        judge={"acceptanceCriteria": "a\nb", "toolContext": "detailed", "judgeModel": "some-model"},
        offline={"vectorSimilarity": {"enabled": True, "model": "m"}, "thresholds": {"rating": 6}, "isDefault": True},
    )
    url = f"/scorers/{row.pk}"
    assert client.post(url, posted(client, url)).status_code == 302
    assert row.versions.count() == 1
    code = json.dumps([{"name": "N", "code": "return 1", "enabled": True}])
    data = posted(client, url, rejection_criteria="Never", code_scorers=code, threshold_rating="7", tab="offline")
    assert client.post(url, data).url == f"{url}?tab=offline"
    row.refresh_from_db()
    offline = wire.offline(row)
    assert row.judge["rejectionCriteria"] == "Never" and row.judge["judgeModel"] == "some-model"
    assert offline["codeScorers"][0]["name"] == "N" and offline["thresholds"] == {"rating": 7}
    assert offline["vectorSimilarity"] == {"enabled": True, "model": "m"} and offline["isDefault"] is True
    assert row.versions.count() == 2


def test_an_overtaken_edit_is_refused(client, project):
    row = scorer_of(project)
    url = f"/scorers/{row.pk}"
    mine = posted(client, url, acceptance_criteria="Mine")
    client.post(url, posted(client, url, acceptance_criteria="Theirs"))
    answer = client.post(url, mine)
    assert answer.status_code == 409 and "changed in the meantime" in answer.content.decode()


def test_history_diff_apply_and_delete(client, project):
    row = scorer_of(project, judge={"acceptanceCriteria": "Old rule"})
    url = f"/scorers/{row.pk}"
    client.post(url, posted(client, url, acceptance_criteria="New rule"))
    first, second = row.versions.order_by("version")
    changes = client.get(f"{url}/versions/{second.pk}").content.decode()
    assert "Old rule" in changes and "New rule" in changes
    applied = client.get(f"{url}?version={first.pk}").content.decode()
    assert "Old rule" in applied and "Nothing is stored until you save" in applied and row.versions.count() == 2
    client.post(url, posted(client, f"{url}?version={first.pk}"))
    row.refresh_from_db()
    assert row.judge["acceptanceCriteria"] == "Old rule"
    client.post(f"{url}/versions/{first.pk}/delete")
    assert [entry.version for entry in row.versions.order_by("version")] == [1, 2]
    current = row.versions.get(version=2)
    assert "cannot be deleted" in client.post(f"{url}/versions/{current.pk}/delete", follow=True).content.decode()


def test_a_template_is_read_only_and_becomes_an_own_scorer(client, project):
    client.get("/scorers")
    template = JudgeScorer.objects.get(project=project, template_key="rag-faithfulness")
    url = f"/scorers/{template.pk}"
    html = client.get(url).content.decode()
    assert "template, read-only" in html and "fieldset" in html and "disabled" in html
    refused = client.post(url, {"name": "x"})
    assert refused.status_code == 400 and "read-only" in refused.content.decode()
    answer = client.post(f"{url}/clone", follow=True)
    own = JudgeScorer.objects.get(project=project, name=template.name, seeded=False)
    assert answer.redirect_chain[0][0] == f"/scorers/{own.pk}" and own.judge == template.judge


def test_of_the_built_in_judge_only_the_rubric_changes(client, project):
    row = JudgeScorer.objects.get(project=project, builtin_key__gt="")
    url = f"/scorers/{row.pk}"
    answer = client.post(url, posted(client, url, acceptance_criteria="Stays in role", name="Other"))
    assert answer.status_code == 302
    row.refresh_from_db()
    assert row.name == "Session Baseline Judge" and row.judge["acceptanceCriteria"] == "Stays in role"
    assert "cannot be deleted" in client.post(f"{url}/delete", follow=True).content.decode()


def test_the_preview_follows_the_draft_and_warns_of_unknown_variables(client, project):
    answer = client.post(
        "/scorers/preview",
        {
            "judge_prompt": "Rate {input} by {criteria}.",
            "rejection_criteria": "Names an amount",
            "tool_context": "none",
        },
    )
    html = answer.content.decode()
    assert "{criteria}" in html.replace("<code>", "").replace("</code>", "") and "no {output}" in html
    assert "Names an amount" in html and "Not sent." in html
    prompt = answer.context["preview"].prompt
    assert prompt.startswith("Rate Please cancel invoice") and "Names an amount" in prompt
    assert "Not a variable" not in client.post("/scorers/preview", {}).content.decode()


def test_groups_are_made_changed_and_deleted(client, project):
    one, two = scorer_of(project, "One"), scorer_of(project, "Two")
    refused = client.post("/scorers/groups/new", {"name": "G"})
    assert refused.status_code == 400 and "Choose at least one scorer" in refused.content.decode()
    data = {"name": "G", "member": [one.pk, two.pk], f"weight-{one.pk}": "2", f"gate-{two.pk}": "on"}
    wrong = client.post("/scorers/groups/new", {**data, f"weight-{one.pk}": "x"})
    assert wrong.status_code == 400 and "weight of One" in wrong.content.decode()
    client.post("/scorers/groups/new", data)
    group = ScorerGroup.objects.get(name="G")
    members = {member["refId"]: (member["weight"], member["gate"]) for member in group.members}
    assert members == {one.pk: (2, False), two.pk: (1, True)}
    html = client.get("/scorers?view=groups").content.decode()
    assert "One" in html and "Two" in html
    url = f"/scorers/groups/{group.pk}"
    assert "checked" in client.get(url).content.decode()
    client.post(url, {"name": "H", "member": [one.pk]})
    group.refresh_from_db()
    assert group.name == "H" and len(group.members) == 1
    client.post(f"{url}/delete")
    assert not ScorerGroup.objects.exists()
    assert client.get(url).status_code == 404


def test_unknown_scorers_are_not_found(client, project):
    row = scorer_of(project)
    for url in ("/scorers/nope", f"/scorers/{'a' * 21}", f"/scorers/{row.pk}/versions/nope", "/scorers/groups/nope"):
        assert client.get(url).status_code == 404
    client.post(f"/scorers/{row.pk}/delete")
    assert not JudgeScorer.objects.filter(pk=row.pk).exists()
