"""Routes under /api/v1; fixed words stand before ids, so no dataset is ever called `batch` or `import`."""

from django.urls import path

from apps.datasets.api import curation, views

MOUNTS = ("custom-agent-evaluations", "evaluate")

urlpatterns = [
    *(
        path(f"{mount}/{route}", view)
        for mount in MOUNTS
        for route, view in (
            ("datasets", views.DatasetListView.as_view()),
            ("datasets/import", views.ImportView.as_view()),
            ("datasets/case-preview", curation.CasePreviewView.as_view()),
            ("datasets/suggest-expected", curation.SuggestExpectedView.as_view()),
            ("datasets/batch/versions", views.VersionCountsView.as_view()),
            ("datasets/<str:dataset_id>/cases", curation.CaseListView.as_view()),
            ("datasets/<str:dataset_id>/versions", views.VersionListView.as_view()),
            ("datasets/<str:dataset_id>/versions/<str:version_id>", views.VersionView.as_view()),
        )
    ),
    path("evaluate/synthesize-cases", curation.SynthesizeView.as_view()),
    path("custom-agent-evaluations/datasets/<str:dataset_id>", views.DatasetView.as_view()),
    path("evaluate/datasets/<str:dataset_id>", views.EditableDatasetView.as_view()),
]
