"""Secrets at rest: encrypted with a key derived from the instance secret, and masked for display."""

from __future__ import annotations

import base64
import functools

from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings


@functools.lru_cache(maxsize=4)
def _fernet(secret: str) -> Fernet:
    derived = HKDF(hashes.SHA256(), 32, b"agentx-server", b"secrets at rest").derive(secret.encode())
    return Fernet(base64.urlsafe_b64encode(derived))


def encrypt(text: str) -> str:
    """Encrypt a secret for storage."""
    return _fernet(settings.SECRET_KEY).encrypt(text.encode()).decode()


def decrypt(token: str) -> str:
    """Decrypt a stored secret; raises cryptography.fernet.InvalidToken when the instance secret has changed."""
    return _fernet(settings.SECRET_KEY).decrypt(token.encode()).decode()


def mask(text: str) -> str:
    """A secret for display: its first and last characters, e.g. `sk-p…9f2c`; short ones are hidden whole."""
    return f"{text[:4]}…{text[-4:]}" if len(text) >= 12 else "…"
