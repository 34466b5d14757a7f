"""The one door to every model: chat, structured answers, embeddings, budgets.

Only this package talks to a model. Each call has a deadline, bounded retries, token counts with cache counts, a price, a
budget check, and a readable reason when it cannot be made.
"""

from apps.llm.gateway.chat import ChatAnswer, Purpose, chat, decode_answer, structured
from apps.llm.gateway.embeddings import Embeddings, embed
from apps.llm.gateway.errors import ModelUnavailable, UnusableAnswer

__all__ = [
    "ChatAnswer",
    "Embeddings",
    "ModelUnavailable",
    "Purpose",
    "UnusableAnswer",
    "chat",
    "decode_answer",
    "embed",
    "structured",
]
