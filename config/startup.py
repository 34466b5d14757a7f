"""What a start does before it serves: check the configuration, agree on the secret, migrate, make the first rows.

Everything here may run in several processes at once on one database: one of them works, the others wait for it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from config import env
from config.home import home_lock, load_or_create_secret, read_config, update_config

logger = logging.getLogger(__name__)

# How long a start waits for another one that is migrating, and for a database that does not answer yet.
LOCK_TIMEOUT_SECONDS = 900.0
DATABASE_WAIT_SECONDS = 30.0
# "agentx", as a number: the key of the advisory lock that serialises starts on Postgres.
ADVISORY_LOCK = 0x6167656E7478
LOG_LEVELS = ("trace", "debug", "info", "warn", "warning", "error", "fatal", "critical", "silent")


class ConfigurationError(Exception):
    """The configuration cannot be served; the text is one line for the operator."""


class StartError(Exception):
    """The environment does not allow a start now (database away, newer schema); the text is one line."""


def check_configuration() -> None:
    """Raise ConfigurationError for the first variable with a value the server cannot honour."""
    for variable in env.VARIABLES.values():
        try:
            if variable.kind == "integer":
                env.integer(variable.name)
            elif variable.kind == "boolean":
                env.boolean(variable.name)
        except env.InvalidVariable as error:
            raise ConfigurationError(str(error)) from None
    if env.required_integer("PORT") > 65535:
        raise ConfigurationError(f"PORT must be at most 65535, not {env.text('PORT')}")
    level = env.required_text("AGENTX_LOG_LEVEL").lower()
    if level not in LOG_LEVELS:
        raise ConfigurationError(f"AGENTX_LOG_LEVEL must be debug, info, warning or error, not {level!r}")
    _check_scheme("AGENTX_DB_URL", ("postgres", "postgresql"), "a postgres:// address")
    _check_scheme("AGENTX_BROKER_URL", ("redis", "rediss", "amqp", "amqps"), "a redis:// or amqp:// address")
    _check_scheme("AGENTX_PUBLIC_URL", ("http", "https"), "an http:// or https:// address")
    _check_trust_proxy()
    auth = env.required_text("AGENTX_AUTH").lower()
    if auth == "enabled":
        raise ConfigurationError(
            "AGENTX_AUTH=enabled is not available in this version yet: accounts and sign-in are still to come. "
            "Unset it (or set it to disabled) and keep the port private."
        )
    if auth != "disabled":
        raise ConfigurationError(f"AGENTX_AUTH must be disabled or enabled, not {auth!r}")
    if env.text("AGENTX_TELEMETRY_URL"):
        raise ConfigurationError(
            "AGENTX_TELEMETRY_URL is not available in this version yet: spans are kept in SQLite or Postgres. Unset it."
        )


def _check_trust_proxy() -> None:
    from django.core.exceptions import ImproperlyConfigured

    from apps.core.ratelimit import trust_of

    try:
        trust_of(env.text("AGENTX_TRUST_PROXY") or "")
    except ImproperlyConfigured as error:
        raise ConfigurationError(str(error)) from None


def _check_scheme(name: str, schemes: tuple[str, ...], wanted: str) -> None:
    value = env.text(name)
    if value is None:
        return
    try:
        scheme = urlsplit(value).scheme.lower()
    except ValueError:
        scheme = ""
    if scheme not in schemes:
        raise ConfigurationError(f"{name} must be {wanted}")


def home() -> Path:
    """AGENTX_HOME as a path."""
    return Path(env.required_text("AGENTX_HOME")).expanduser()


@contextlib.contextmanager
def start_lock() -> Iterator[None]:
    """One start at a time in this home and, on Postgres, on this database."""
    try:
        with home_lock(home(), timeout=LOCK_TIMEOUT_SECONDS):
            url = env.text("AGENTX_DB_URL")
            if url:
                with _advisory_lock(url):
                    yield
            else:
                yield
    except TimeoutError as error:
        raise StartError(str(error)) from None
    except PermissionError as error:
        raise ConfigurationError(f"AGENTX_HOME {home()} is not writable: {error.strerror}") from None
    except (FileExistsError, NotADirectoryError):
        raise ConfigurationError(f"AGENTX_HOME {home()} is not a directory") from None
    except OSError as error:
        # A read-only or full file system, a name that cannot be. Only errors of files carry a name.
        if error.filename is None:
            raise
        raise ConfigurationError(f"AGENTX_HOME {home()} cannot be used: {error.strerror}") from None


@contextlib.contextmanager
def _advisory_lock(url: str) -> Iterator[None]:
    connection = _connect(url)
    deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
    try:
        while True:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", (ADVISORY_LOCK,)).fetchone()
            if row and row[0]:
                break
            if time.monotonic() >= deadline:
                raise TimeoutError("another server has been preparing this database for too long")
            time.sleep(0.1)
        yield
    finally:
        connection.close()


def _connect(url: str) -> Any:
    """An own Postgres connection; waits a little for a database that is still starting."""
    import psycopg

    deadline = time.monotonic() + DATABASE_WAIT_SECONDS
    while True:
        try:
            return psycopg.connect(url, autocommit=True, connect_timeout=5)
        except psycopg.OperationalError as error:
            text = " ".join(str(error).split())
            # Wrong credentials or a missing database do not heal by waiting.
            final = "authentication failed" in text or "does not exist" in text or "could not translate" in text
            if final or time.monotonic() >= deadline:
                raise StartError(f"cannot connect to the database of AGENTX_DB_URL: {text}") from None
            time.sleep(0.5)
        except psycopg.Error as error:
            raise ConfigurationError(f"AGENTX_DB_URL: {' '.join(str(error).split())}") from None


def agree_on_secret() -> None:
    """Set AGENTX_AUTH_SECRET of this process and its children to the instance's secret, unless the operator did.

    The secret lives in the database as well as in config.json: a container without a volume, a second machine on the
    same Postgres, or a database copied back without its config.json can all read what was stored. The database wins.
    """
    if env.text("AGENTX_AUTH_SECRET"):
        return
    stored = _stored_secret()
    if stored:
        update_config(home(), secret=stored)
    os.environ["AGENTX_AUTH_SECRET"] = stored or load_or_create_secret(home())
    os.environ["AGENTX_AUTH_SECRET_STORED"] = "1"


def _stored_secret() -> str | None:
    query = "SELECT value FROM core_instancesetting WHERE key = 'secret'"
    url = env.text("AGENTX_DB_URL")
    if url:
        import psycopg

        connection = _connect(url)
        try:
            row = connection.execute(query).fetchone()
        except psycopg.errors.UndefinedTable:
            row = None
        finally:
            connection.close()
        value = row[0] if row else None
    else:
        path = home() / "agentx.db"
        if not path.exists():
            return None
        import json

        try:
            with contextlib.closing(sqlite3.connect(path, timeout=10)) as connection:
                row = connection.execute(query).fetchone()
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return None
            raise StartError(f"cannot read {path}: {error}") from None
        except sqlite3.DatabaseError as error:
            raise StartError(f"{path} is not a usable SQLite database: {error}") from None
        value = json.loads(row[0]) if row else None
    return value if isinstance(value, str) and len(value) >= 32 else None


def known_migrations() -> set[tuple[str, str]]:
    """(app label, name) of every migration file this version ships, found without importing any."""
    from django.apps import apps

    names = set()
    for config in apps.get_app_configs():
        directory = Path(config.path) / "migrations"
        if directory.is_dir():
            names |= {(config.label, file.stem) for file in directory.glob("[!_]*.py")}
    return names


def applied_migrations() -> set[tuple[str, str]]:
    """(app label, name) of the migrations the database has seen; empty for an empty database."""
    from django.db import connection

    if "django_migrations" not in connection.introspection.table_names():
        return set()
    with connection.cursor() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        return set(cursor.fetchall())


def migrate() -> bool:
    """Bring the schema up to date under the start lock; True when something was applied.

    Raises StartError when a newer version has already migrated this database: running old code on a new schema would
    damage rows (source 1:8401-8406).
    """
    from django.apps import apps
    from django.core.management import call_command

    known, applied = known_migrations(), applied_migrations()
    ours = {config.label for config in apps.get_app_configs() if config.name.startswith("apps.")}
    unknown = sorted(f"{label}.{name}" for label, name in applied - known if label in ours)
    unknown += _unknown_to_us(known)
    if unknown:
        raise StartError(
            f"the database was migrated by a newer version of agentx-server ({unknown[0]} is unknown here). "
            "Start that version, or restore the backup taken before the upgrade."
        )
    if known <= applied:
        return False
    call_command("migrate", interactive=False, verbosity=0)
    return True


def _unknown_to_us(known: set[tuple[str, str]]) -> list[str]:
    """Migrations of the last version that prepared this database, also of apps that this version does not have."""
    from django.db import DatabaseError, transaction

    from apps.core.models import InstanceSetting

    try:
        with transaction.atomic():
            row = InstanceSetting.objects.filter(key="schema").first()
    except DatabaseError:  # an empty database
        return []
    names = {f"{label}.{name}" for label, name in known}
    return sorted(set(row.value) - names) if row and isinstance(row.value, list) else []


def first_rows(*, migrated: bool) -> str:
    """The default project, the catalog, shipped judges and the notes the next start needs; answers the default project's key."""
    from django.apps import apps
    from django.db import transaction

    from apps.core.models import InstanceSetting
    from apps.llm.services.catalog import seed_catalog
    from apps.projects.services.projects import ensure_default_project
    from apps.scorers.services.templates import backfill

    kept = read_config(home()).get("apiKey")
    _, key = ensure_default_project(key=kept if isinstance(kept, str) and kept.startswith("agtx_") else None)
    seed_catalog()
    backfill()
    update_config(home(), apiKey=key)
    if migrated:
        ours = {config.label for config in apps.get_app_configs() if config.name.startswith("apps.")}
        schema = sorted(f"{label}.{name}" for label, name in known_migrations() if label in ours)
        with transaction.atomic():
            InstanceSetting.objects.update_or_create(key="schema", defaults={"value": schema})
            if os.environ.get("AGENTX_AUTH_SECRET_STORED"):
                InstanceSetting.objects.get_or_create(
                    key="secret", defaults={"value": os.environ["AGENTX_AUTH_SECRET"]}
                )
    return key


def _agree_on_secret_or_refuse() -> None:
    try:
        agree_on_secret()
    except ValueError as error:  # config.json is not what it should be
        raise ConfigurationError(str(error)) from None


def prepare() -> str:
    """Everything before serving, under the start lock; sets Django up and answers the default project's key."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    with start_lock():
        _agree_on_secret_or_refuse()
        django.setup()
        from django.db import DatabaseError

        try:
            migrated = migrate()
            return first_rows(migrated=migrated)
        except DatabaseError as error:
            logger.error("the database could not be prepared", exc_info=error)
            raise StartError(f"the database could not be prepared: {' '.join(str(error).split())}") from None


def setup_django() -> None:
    """Django for a sub-command: the same secret as the server, no migration."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    with start_lock():
        _agree_on_secret_or_refuse()
    django.setup()
