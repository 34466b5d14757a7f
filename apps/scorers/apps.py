from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ScorersConfig(AppConfig):
    name = "apps.scorers"
    label = "scorers"
    verbose_name = _("Scorers")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register exports, what a new project starts with, and what keeps a dataset from being deleted."""
        from apps.datasets.services import attachments
        from apps.projects.services import starter
        from apps.scorers import exports
        from apps.scorers.services.evaluators import attached_names
        from apps.scorers.services.templates import seed

        exports.register()
        starter.hooks.register("scorers", seed)
        attachments.checks["live scorers"] = attached_names
