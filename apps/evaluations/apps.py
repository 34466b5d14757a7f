from django.apps import AppConfig


class EvaluationsConfig(AppConfig):
    name = "apps.evaluations"
    label = "evaluations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what a project export holds of this app, and who removes its rows with a project."""
        from apps.evaluations import exports
        from apps.evaluations.services.purge import purge
        from apps.projects.services import purgers

        exports.register()
        purgers.hooks.register("evaluations", purge)
