from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ScorersConfig(AppConfig):
    name = "apps.scorers"
    label = "scorers"
    verbose_name = _("Scorers")
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register what a project export holds of this app."""
        from apps.scorers import exports

        exports.register()
