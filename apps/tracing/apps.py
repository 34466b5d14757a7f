from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class TracingConfig(AppConfig):
    name = "apps.tracing"
    label = "tracing"
    verbose_name = _("Telemetry")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.llm.services.usage import register_reader
        from apps.projects.services import purgers
        from apps.projects.services import settings as project_settings
        from apps.tracing import exports
        from apps.tracing.ingest import checks
        from apps.tracing.services.model_usage import models_in_use
        from apps.tracing.services.purge import purge_project

        exports.register()
        purgers.hooks.register("tracing", purge_project)
        project_settings.changed.register("tracing.checks", checks.settings_changed)
        register_reader(models_in_use)
