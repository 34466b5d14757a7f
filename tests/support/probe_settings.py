"""The product's settings and one more module of tasks, for tests of the worker."""

from config.settings import *  # noqa: F403

CELERY_IMPORTS = ("tests.support.probe",)
