from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ProjectsConfig(AppConfig):
    name = "apps.projects"
    label = "projects"
    verbose_name = _("Projects")
    default_auto_field = "django.db.models.BigAutoField"
