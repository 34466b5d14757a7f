"""Django settings, split by concern; later modules may override earlier ones."""

from config.settings.admin import *  # noqa: F403
from config.settings.base import *  # noqa: F403
from config.settings.celery import *  # noqa: F403
from config.settings.database import *  # noqa: F403
from config.settings.ingest import *  # noqa: F403
from config.settings.logging import *  # noqa: F403
from config.settings.security import *  # noqa: F403
