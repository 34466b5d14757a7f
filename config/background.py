"""Everything that lives as long as the server process: writer, gRPC receiver, embedded worker, demo loader."""

from __future__ import annotations

import asyncio
import gc
import io
import logging
import threading

from django.conf import settings

from apps.tracing.ingest import pipeline
from apps.tracing.otlp import grpc
from config import env
from config.embedded import EmbeddedWorker

logger = logging.getLogger("agentx.server")


class Background:
    """Starts and stops, in order: the writer first up and last down."""

    def __init__(self) -> None:
        self._worker: EmbeddedWorker | None = None

    async def start(self) -> None:
        """Bring up what a request needs; raises when the server cannot serve without it."""
        await asyncio.to_thread(pipeline.start)
        _calm_garbage_collection()

    def after_start(self, *, demo: bool) -> None:
        """What may be late: it costs the first answer nothing."""
        if env.boolean("AGENTX_WORKER") and not settings.AGENTX_CHILD_PROCESS:
            self._worker = EmbeddedWorker()
            self._worker.start()
        if settings.OTLP_GRPC_PORT:
            # In a thread: importing grpcio takes a tenth of a second.
            address = (env.required_text("AGENTX_HOST"), settings.OTLP_GRPC_PORT)
            threading.Thread(target=grpc.start, args=address, name="otlp-grpc-start", daemon=True).start()
        if demo:
            threading.Thread(target=_load_demo, name="demo", daemon=True).start()

    def begin_stop(self) -> None:
        """Tell the children early; they stop while requests drain."""
        if self._worker is not None:
            self._worker.begin_stop()

    async def stop(self) -> None:
        """Flush and end everything; every step is bounded in time."""
        await asyncio.to_thread(grpc.stop)
        await asyncio.to_thread(pipeline.stop)
        if self._worker is not None:
            await asyncio.to_thread(self._worker.stop)


def _calm_garbage_collection() -> None:
    """Take what start-up loaded out of the collector's sight, and look less often: ingest makes many objects and few
    circles, and full collections over Django's modules cost it a fifth of its time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def _load_demo() -> None:
    from django.core.management import call_command
    from django.core.management.base import CommandError
    from django.db import DatabaseError, connections

    try:
        # The server's stdout holds JSON lines only; what the command says is logged.
        said = io.StringIO()
        call_command("load_demo", stdout=said)
        logger.info(said.getvalue().strip() or "the demo project is loaded")
    except (CommandError, DatabaseError, OSError, ValueError):
        logger.exception("the demo project could not be loaded")
    finally:
        connections.close_all()
