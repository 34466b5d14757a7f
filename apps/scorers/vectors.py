"""Cosine of an answer and its reference; the reference's vector is remembered, as repetitions and reruns ask for it again."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

from apps.llm import gateway
from apps.projects.models import Project
from apps.scorers.metrics import cosine

if TYPE_CHECKING:
    import numpy as np

# Some 6 MB of vectors with 1,536 numbers.
_KEPT = 1000
_references: OrderedDict[tuple[int, str, str], tuple[str, np.ndarray]] = OrderedDict()
_lock = threading.Lock()

UNAVAILABLE = "Vector similarity needs an OpenAI key or the `embeddings` extra."


class NoVector(Exception):
    """There is nothing to embed with, or the provider failed; the text is for a person."""


def similarity(project: Project, answer: str, reference: str, model: str | None) -> float:
    """Cosine from 0 to 1 of the two texts' embeddings. Raises NoVector."""
    key = (project.pk, model or "", hashlib.sha256(reference.encode("utf-8", "replace")).hexdigest())
    with _lock:
        kept = _references.get(key)
    if kept is not None:
        found = _embed(project, [answer], model)
        # Vectors of two models cannot be compared: a key may have come or gone meanwhile.
        if found.model == kept[0] and found.vectors[0].shape == kept[1].shape:
            return cosine(found.vectors[0], kept[1])
    found = _embed(project, [answer, reference], model)
    with _lock:
        _references[key] = (found.model, found.vectors[1])
        while len(_references) > _KEPT:
            _references.popitem(last=False)
    return cosine(found.vectors[0], found.vectors[1])


def _embed(project: Project, texts: list[str], model: str | None) -> gateway.Embeddings:
    try:
        found = gateway.embed(project=project, texts=texts, model=model)
    except gateway.ModelUnavailable as error:
        raise NoVector(f"Vector similarity: {error.reason}") from None
    except TimeoutError:
        raise NoVector("Vector similarity: the provider did not answer in time.") from None
    if found is None:
        raise NoVector(UNAVAILABLE)
    return found
