"""Secret key, hosts, cookies, headers."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from config import env
from config.home import load_or_create_secret
from config.settings.base import AGENTX_HOME

SECRET_KEY = env.text("AGENTX_AUTH_SECRET") or load_or_create_secret(AGENTX_HOME)
ALLOWED_HOSTS = ["*"]

_public = env.text("AGENTX_PUBLIC_URL")
AGENTX_PUBLIC_URL = _public.rstrip("/") if _public else None
_secure = bool(_public and urlsplit(_public).scheme == "https")
CSRF_TRUSTED_ORIGINS = [o.strip() for o in (env.text("AGENTX_TRUSTED_ORIGINS") or "").split(",") if "://" in o]
if AGENTX_PUBLIC_URL:
    _parts = urlsplit(AGENTX_PUBLIC_URL)
    CSRF_TRUSTED_ORIGINS.append(f"{_parts.scheme}://{_parts.netloc}")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _secure
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_NAME = "agentx_session"
CSRF_COOKIE_NAME = "agentx_csrf"
CSRF_FAILURE_VIEW = "apps.dashboard.views.shell.csrf_failure"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SECURE_HSTS_SECONDS = 31_536_000 if _secure else 0
DATA_UPLOAD_MAX_MEMORY_SIZE = 10 * 1024 * 1024
PASSWORD_HASHERS = [
    "django.contrib.auth.hashers.Argon2PasswordHasher",
    "django.contrib.auth.hashers.PBKDF2PasswordHasher",
]
AGENTX_AUTH = (env.text("AGENTX_AUTH") or "disabled").lower()
# Set by a worker or a test harness that must not start children of its own.
AGENTX_CHILD_PROCESS = os.environ.get("AGENTX_CHILD_PROCESS") == "1"
BLOCK_PRIVATE_URLS = env.boolean("AGENTX_BLOCK_PRIVATE_URLS")
