"""Why a model could not be asked, or what it said could not be used. The texts are for the person who reads them."""

from __future__ import annotations

from typing import Literal

Kind = Literal["no_key", "quota", "unknown_model", "provider", "timeout", "network"]


class ModelUnavailable(Exception):
    """The call was not made or not answered. `kind` says why, `retryable` whether trying later can help."""

    def __init__(self, reason: str, kind: Kind, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.kind = kind
        self.retryable = retryable


class UnusableAnswer(Exception):
    """The model answered, twice, with something the caller cannot use; `raw` is the last text it sent."""

    def __init__(self, reason: str, raw: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.raw = raw
