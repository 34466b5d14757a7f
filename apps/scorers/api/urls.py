"""Routes under /api/v1; fixed words stand before ids, so no scorer is ever called `batch`."""

from django.urls import path

from apps.core.api.routes import monitoring_paths
from apps.scorers.api import evaluators, groups
from apps.scorers.api import judge_scorers as judges

urlpatterns = [
    *monitoring_paths("judge-scorers", judges.JudgeScorerListView.as_view(), "judge-scorers"),
    *monitoring_paths("judge-scorers/<str:scorer_id>", judges.JudgeScorerView.as_view(), "judge-scorer"),
    *monitoring_paths("judge-scorers/<str:scorer_id>/clone", judges.CloneView.as_view(), "judge-scorer-clone"),
    *monitoring_paths(
        "judge-scorers/<str:scorer_id>/versions", judges.VersionListView.as_view(), "judge-scorer-versions"
    ),
    *monitoring_paths(
        "judge-scorers/<str:scorer_id>/versions/<str:version_id>", judges.VersionView.as_view(), "judge-scorer-version"
    ),
    *monitoring_paths("online-evaluators", evaluators.EvaluatorListView.as_view(), "online-evaluators"),
    *monitoring_paths("online-evaluators/<str:profile_id>", evaluators.EvaluatorView.as_view(), "online-evaluator"),
    *monitoring_paths("scorer-groups", groups.GroupListView.as_view(), "scorer-groups"),
    *monitoring_paths("scorer-groups/<str:group_id>", groups.GroupView.as_view(), "scorer-group"),
    *(
        path(f"{mount}/{route}", view)
        for mount in ("custom-agent-evaluations", "evaluate")
        for route, view in (
            ("evaluation-settings", judges.SettingsListView.as_view()),
            ("evaluation-settings/<str:scorer_id>", judges.SettingsView.as_view()),
        )
    ),
    path("evaluate/evaluationSettings/batch/versions", judges.VersionCountsView.as_view()),
    path("evaluate/evaluationSettings/<str:scorer_id>/versions", judges.SettingsVersionListView.as_view()),
    path("evaluate/evaluationSettings/<str:scorer_id>/versions/<str:version_id>", judges.SettingsVersionView.as_view()),
]
