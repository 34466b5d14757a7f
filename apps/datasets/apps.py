from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "apps.datasets"
    label = "datasets"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what a project export holds of this app, and what removes it with the project."""
        from apps.datasets import exports
        from apps.datasets.services.purge import purge_project
        from apps.projects.services import purgers

        exports.register()
        purgers.hooks.register("datasets", purge_project)
