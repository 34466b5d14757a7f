"""Vectors of questions, each made once and kept, and how near two of them are.

`settings.CASE_SIMILARITY_THRESHOLD` is T: at or above it two questions are the same one to ask (DATA-057, DATA-058).
"""

from __future__ import annotations

import hashlib
import logging
from typing import TYPE_CHECKING

from apps.datasets.models import CaseEmbedding
from apps.llm.gateway import ModelUnavailable, embed
from apps.llm.gateway.embeddings import DEFAULT_MODEL
from apps.llm.services.provider_keys import provider_key
from apps.projects.models import Project

if TYPE_CHECKING:
    import numpy as np

logger = logging.getLogger(__name__)

# Texts a round: what was paid for is stored before the next round is asked for.
_ROUND = 1024
_LOOKUP = 500

Vectors = dict[str, "np.ndarray"]


def key_of(text: str) -> str:
    """What a text's vector is kept under."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def question_vectors(project: Project, texts: list[str]) -> Vectors | None:
    """The unit vector of each text by `key_of`; None without an embedding key or when its provider fails.

    Kept vectors are not asked for again.
    """
    if not provider_key("openai"):
        return None
    wanted = {key_of(text): text for text in texts if text.strip()}
    found = _kept(project, list(wanted))
    missing = [key for key in wanted if key not in found]
    for start in range(0, len(missing), _ROUND):
        keys = missing[start : start + _ROUND]
        try:
            made = embed(project=project, texts=[wanted[key] for key in keys], model=DEFAULT_MODEL)
        except ModelUnavailable as error:
            logger.warning("questions are not compared by meaning: %s", error.reason)
            return None
        if made is None or made.offline:
            return None
        rows = dict(zip(keys, made.vectors, strict=True))
        CaseEmbedding.objects.bulk_create(
            [
                CaseEmbedding(
                    project=project, model=DEFAULT_MODEL, text_hash=key, vector=vector.astype("<f4").tobytes()
                )
                for key, vector in rows.items()
            ],
            ignore_conflicts=True,
            batch_size=200,
        )
        found |= rows
    return found


def _kept(project: Project, keys: list[str]) -> Vectors:
    import numpy as np

    found: Vectors = {}
    for start in range(0, len(keys), _LOOKUP):
        rows = CaseEmbedding.objects.filter(
            project=project, model=DEFAULT_MODEL, text_hash__in=keys[start : start + _LOOKUP]
        )
        for key, vector in rows.values_list("text_hash", "vector"):
            found[key] = np.frombuffer(bytes(vector), dtype="<f4")
    return found


def nearest(vectors: Vectors, text: str, others: list[str]) -> tuple[int, float] | None:
    """(position, cosine) of the text among `others` that is nearest; None when none has a vector."""
    import numpy as np

    own = vectors.get(key_of(text))
    known = [(n, vectors[key]) for n, other in enumerate(others) if (key := key_of(other)) in vectors]
    if own is None or not known:
        return None
    scores = np.stack([vector for _, vector in known]) @ own
    best = int(np.argmax(scores))
    return known[best][0], float(scores[best])
