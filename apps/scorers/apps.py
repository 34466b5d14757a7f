from django.apps import AppConfig


class ScorersConfig(AppConfig):
    name = "apps.scorers"
    label = "scorers"
    default_auto_field = "django.db.models.BigAutoField"
