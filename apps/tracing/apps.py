from django.apps import AppConfig


class TracingConfig(AppConfig):
    name = "apps.tracing"
    label = "tracing"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.tracing import exports

        exports.register()
