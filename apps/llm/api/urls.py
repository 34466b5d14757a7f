"""Routes under /api/v1 that this app answers. Fixed words stand before the ids, which may contain slashes."""

from django.urls import path

from apps.core.api.routes import monitoring_paths
from apps.llm.api import catalog, settings

urlpatterns = [
    *monitoring_paths("settings", settings.SettingsView.as_view(), "settings"),
    *monitoring_paths("settings/llm-keys", settings.ProviderKeysView.as_view(), "settings-llm-keys"),
    *monitoring_paths("settings/platform-model", settings.PlatformModelView.as_view(), "settings-platform-model"),
    *monitoring_paths("portability/models", catalog.ModelsView.as_view(), "models"),
    *monitoring_paths("portability/models/test-connection", catalog.ConnectionView.as_view(), "model-test-connection"),
    *monitoring_paths("portability/models/unpriced", catalog.UnpricedModelsView.as_view(), "models-unpriced"),
    *monitoring_paths("portability/models/<path:model_id>", catalog.ModelView.as_view(), "model"),
    path("custom-agent-evaluations/models", catalog.ListedModelsView.as_view(), name="listed-models"),
]
