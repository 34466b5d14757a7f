"""The one control-plane database: SQLite in AGENTX_HOME, or Postgres by AGENTX_DB_URL."""

from __future__ import annotations

import environ

from config import env
from config.settings.base import AGENTX_HOME

_url = env.text("AGENTX_DB_URL")

if _url:
    DATABASES = {"default": environ.Env.db_url_config(_url)}
    DATABASES["default"]["CONN_MAX_AGE"] = None
    DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
    DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
    # A database that vanished without a word is noticed within seconds.
    DATABASES["default"]["OPTIONS"].setdefault("tcp_user_timeout", 10_000)
else:
    DATABASES = {
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(AGENTX_HOME / "agentx.db"),
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "timeout": 10,
                "transaction_mode": "IMMEDIATE",
                # Every thread has a connection and every connection a cache; the writer asks for more (ingest/writer.py).
                # page_size acts only on a database that is still empty, i.e. on the first start.
                "init_command": (
                    "PRAGMA page_size=16384;PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"
                    "PRAGMA foreign_keys=ON;PRAGMA cache_size=-2000;PRAGMA temp_store=MEMORY;"
                    "PRAGMA journal_size_limit=67108864"
                ),
            },
        }
    }
