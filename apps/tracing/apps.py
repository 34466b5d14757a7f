from django.apps import AppConfig


class TracingConfig(AppConfig):
    name = "apps.tracing"
    label = "tracing"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.llm.services.usage import register_reader
        from apps.tracing import exports
        from apps.tracing.services.model_usage import models_in_use

        exports.register()
        register_reader(models_in_use)
