"""The group-commit writer: one thread that stores whatever queued up while the last commit ran.

An idle writer writes at once. A window longer than the default (AGENTX_INGEST_FLUSH_MS) is waited out for company,
counted from the moment the writer takes a batch's first span. A batch ends at AGENTX_INGEST_FLUSH_SIZE spans. The queue is
bounded: what is accepted and not yet answered counts. A failed batch is tried once more; when it fails again for a
reason of its data, its groups are stored one by one, so that one bad row cannot fail its neighbours; when the
database itself fails, every group of the batch is answered with StorageUnavailable and the writer goes on.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, InterfaceError, OperationalError, connection

from apps.core.times import now_ms
from apps.tracing.ingest.errors import QueueFull, StorageUnavailable
from apps.tracing.ingest.records import Stored
from apps.tracing.rollups.fold import fold, use_writer
from apps.tracing.store import partitions
from apps.tracing.store.backend import backend
from apps.tracing.store.rows import Row
from apps.tracing.store.write import Written, store_rows

logger = logging.getLogger(__name__)

FOLD_SECONDS = 2.0
# While readers keep asking under load, folds keep this distance.
FOLD_GAP_SECONDS = 0.05
SETTLE_TIMEOUT_SECONDS = 2.0
# The writer gives a locked database this long per try, so that a client hears 503 well inside its own timeout.
BUSY_MS = 2000
# SQLite pages the writer keeps: index pages it changes again and again. Readers get by with less (settings).
CACHE_KB = 16_000
STATEMENT_TIMEOUT_MS = 20_000
# Beyond every timeout of the store: a thread that still has no answer then gives up.
WAIT_SECONDS = 90.0
RETRY_PAUSE_SECONDS = 0.05
# Windows up to this, the default, are not waited out: what queues up during a commit is company enough, and a closed
# loop of senders measured five times slower with the wait.
NO_WAIT_MS = 10
CHECKPOINT_SECONDS = 1.0
CHECKPOINT_BYTES = 96 * 1024 * 1024
# The WAL gets no more than this part of what is left on the disk: copying it back needs room for the database to grow,
# and a disk that the WAL itself has filled could never be emptied again.
CHECKPOINT_DISK_PART = 4
PAGE_BYTES = 16 * 1024
QUIET_TICKS = 3
QUIET_BYTES = 1024 * 1024

OnStored = Callable[[list[Row]], None]
# Called in the writer thread after each commit with the new rows; must be quick and must not raise.
on_stored: list[OnStored] = []


@dataclass(slots=True)
class Counters:
    """What /metrics shows of this process (source 1:8313-8323)."""

    spans: int = 0
    stored: int = 0
    batches: int = 0
    deduped: int = 0
    rejected: int = 0
    dropped: int = 0
    depth: int = 0
    max_depth: int = 0


class Group:
    """Spans of one request: stored and answered together."""

    __slots__ = ("_event", "_future", "_loop", "answers", "error", "rows")

    def __init__(self, rows: list[Row], loop: asyncio.AbstractEventLoop | None) -> None:
        self.rows = rows
        self.answers: list[Stored] = []
        self.error: BaseException | None = None
        self._loop = loop
        self._future: asyncio.Future[list[Stored]] | None = loop.create_future() if loop is not None else None
        self._event = threading.Event() if loop is None else None

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that waits, None when a thread does."""
        return self._loop

    def finish(self) -> None:
        """Hand the answer to whoever waits; runs in the loop's thread for groups that have one."""
        if self._event is not None:
            self._event.set()
        future = self._future
        if future is not None and not future.done():
            if self.error is None:
                future.set_result(self.answers)
            else:
                future.set_exception(self.error)

    async def result(self) -> list[Stored]:
        """The answer, for a group made with a loop."""
        assert self._future is not None
        return await self._future

    def wait(self) -> list[Stored]:
        """The answer, for a thread."""
        assert self._event is not None
        if not self._event.wait(WAIT_SECONDS):
            raise StorageUnavailable
        if self.error is not None:
            raise self.error
        return self.answers


@dataclass(slots=True)
class _FoldRequest:
    done: threading.Event = field(default_factory=threading.Event)
    ok: bool = False


_STOP = object()


class Writer:
    """Owns the writer thread (and on SQLite a thread that checkpoints the WAL)."""

    def __init__(self) -> None:
        self.counters = Counters()
        self._queue: queue.SimpleQueue[object] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._checkpointer: threading.Thread | None = None
        self._stopping = threading.Event()
        self._fold_requests: list[_FoldRequest] = []
        self._last_fold = 0.0
        self._rewind_wal = False
        self._wal_limit = CHECKPOINT_BYTES
        self._wal_pages = -1  # what the writer's connection was last told
        self._unfolded = True  # a former process may have left pending contributions
        self.accepting = False

    # ---- callers' side ----

    def start(self) -> None:
        """Start the thread; a second call does nothing."""
        if self._thread is not None:
            return
        self._stopping.clear()
        self.accepting = True
        if connection.vendor == "sqlite":
            self._wal_limit = _wal_limit(str(connection.settings_dict["NAME"]))
        self._thread = threading.Thread(target=self._run, name="ingest-writer", daemon=True)
        self._thread.start()
        if connection.vendor == "sqlite":
            self._checkpointer = threading.Thread(target=self._checkpoint, name="wal-checkpoint", daemon=True)
            self._checkpointer.start()
        use_writer(self.ask_fold)

    def stop(self, timeout: float = 30.0) -> None:
        """Take nothing more, store what is queued, answer it, end the threads."""
        thread = self._thread
        if thread is None:
            return
        self.accepting = False
        use_writer(None)
        self._stopping.set()
        self._queue.put(_STOP)
        thread.join(timeout)
        if thread.is_alive():
            logger.error("the ingest writer did not stop in time")
        if self._checkpointer is not None:
            self._checkpointer.join(5)
        self._thread = self._checkpointer = None

    @property
    def running(self) -> bool:
        """Whether the thread is there to take groups."""
        return self._thread is not None and self.accepting

    def put(self, group: Group) -> None:
        """Queue a group. Raises QueueFull, or StorageUnavailable while stopping."""
        if not self.accepting:
            raise StorageUnavailable
        count = len(group.rows)
        counters = self.counters
        with self._lock:
            # A group larger than the whole bound passes when nothing else waits.
            if counters.depth and counters.depth + count > settings.INGEST_QUEUE_MAX:
                counters.rejected += count
                raise QueueFull
            counters.depth += count
            counters.spans += count
            if counters.depth > counters.max_depth:
                counters.max_depth = counters.depth
        self._queue.put(group)

    def ask_fold(self) -> bool:
        """Have the thread fold everything stored so far, and wait for it; False when there is no thread to ask.

        While the store cannot be written a reader goes on with the aggregates as they are.
        """
        if not self.running or threading.current_thread() is self._thread:
            return False
        request = _FoldRequest()
        self._queue.put(request)
        if not request.done.wait(SETTLE_TIMEOUT_SECONDS) or not request.ok:
            logger.warning("pending contributions could not be folded for a reader")
        return True

    # ---- the thread ----

    def _run(self) -> None:
        self._prepare_connection()
        try:
            while True:
                try:
                    self._loop()
                    return
                except Exception:
                    logger.exception("the ingest writer stumbled and goes on")
                    time.sleep(RETRY_PAUSE_SECONDS)
        finally:
            connection.close()

    def _prepare_connection(self) -> None:
        try:
            connection.ensure_connection()
            if connection.vendor != "sqlite":
                # A store that hangs must become an answer, not a silence.
                with connection.cursor() as cursor:
                    cursor.execute(f"SET statement_timeout = {STATEMENT_TIMEOUT_MS}")
                return
            connection.connection.execute(f"PRAGMA busy_timeout={BUSY_MS}")
            self._wal_pages = -1
            self._bound_wal()
            connection.connection.execute(f"PRAGMA cache_size=-{CACHE_KB}")
        except (DatabaseError, sqlite3.Error) as error:
            logger.warning("the writer could not prepare its database connection: %s", error)

    def _bound_wal(self) -> None:
        """Where the disk is short, have each commit look at the size of the WAL: a second is enough to fill it.

        Elsewhere commits never copy anything, the other thread does.
        """
        limit = self._wal_limit
        pages = limit // PAGE_BYTES if limit < CHECKPOINT_BYTES else 0
        if pages != self._wal_pages:
            connection.ensure_connection()
            connection.connection.execute(f"PRAGMA wal_autocheckpoint={pages}")
            self._wal_pages = pages

    def _loop(self) -> None:
        sqlite = connection.vendor == "sqlite"
        while True:
            groups, stop = self._gather()
            if sqlite:
                self._bound_wal()
            if groups:
                self._flush(groups)
                self._unfolded = True
            self._fold_if_due(idle=self._queue.empty())
            if self._rewind_wal:
                self._finish_checkpoint()
            if stop and self._queue.empty():
                self._fold_if_due(idle=True)
                return

    def _gather(self) -> tuple[list[Group], bool]:
        """Wait for something to do, then take what else is there, up to one batch."""
        groups: list[Group] = []
        stop = False
        count = 0
        limit = settings.INGEST_FLUSH_SIZE
        timeout = None
        if self._fold_requests:
            timeout = FOLD_GAP_SECONDS
        elif self._unfolded:
            timeout = max(0.01, self._last_fold + FOLD_SECONDS - time.monotonic())
        try:
            item = self._queue.get(timeout=timeout)
        except queue.Empty:
            return groups, stop
        deadline = 0.0
        while True:
            if type(item) is Group:
                if not groups and settings.INGEST_FLUSH_MS > NO_WAIT_MS:
                    deadline = time.monotonic() + settings.INGEST_FLUSH_MS / 1000
                groups.append(item)
                count += len(item.rows)
            elif type(item) is _FoldRequest:
                self._fold_requests.append(item)
            elif item is _STOP:
                stop = True
            if count >= limit:
                break
            try:
                rest = deadline - time.monotonic() if deadline and not stop and not self._fold_requests else 0.0
                item = self._queue.get(timeout=rest) if rest > 0 else self._queue.get_nowait()
            except queue.Empty:
                break
        return groups, stop or self._stopping.is_set()

    def _flush(self, groups: list[Group]) -> None:
        written: list[Row] = []
        given = [[(row.session_id, row.traffic) for row in group.rows] for group in groups]
        try:
            written = self._store(groups)
        except (DatabaseError, sqlite3.Error, OSError) as first:
            self._after_failure(first)
            _as_given(groups, given)
            try:
                written = self._store(groups, again=True)
            except (DatabaseError, sqlite3.Error, OSError) as second:
                self._after_failure(second)
                _as_given(groups, given)
                written = self._salvage(groups, second)
        except Exception as error:
            logger.exception("a batch could not be stored; trying its requests one by one")
            self._after_failure(error)
            _as_given(groups, given)
            written = self._salvage(groups, error)
        self._answer(groups)
        if written:
            for hook in on_stored:
                try:
                    hook(written)
                except Exception:
                    logger.exception("a listener to stored spans failed")

    def _store(self, groups: list[Group], *, again: bool = False) -> list[Row]:
        """One transaction for all groups; fills in their answers. `again`: a former try may have committed unheard."""
        rows = groups[0].rows if len(groups) == 1 else [row for group in groups for row in group.rows]
        self.counters.batches += 1
        written = write_committed(rows, again=again)
        position = 0
        for group in groups:
            end = position + len(group.rows)
            group.answers = written.answers[position:end]
            group.error = None
            position = end
        self.counters.stored += len(written.new)
        self.counters.deduped += written.deduped
        return written.new

    def _salvage(self, groups: list[Group], error: BaseException) -> list[Row]:
        """After two failures: give every group its own try when its neighbours' data may be the reason."""
        written: list[Row] = []
        if len(groups) == 1 or isinstance(
            error, OperationalError | InterfaceError | sqlite3.OperationalError | OSError
        ):
            # An outage fails batch after batch: one line each, and a traceback only where our own data may be at fault.
            outage = isinstance(error, OperationalError | InterfaceError | sqlite3.OperationalError | OSError)
            logger.error(
                "spans were not stored: %s",
                error,
                extra={"spans": sum(len(g.rows) for g in groups)},
                exc_info=None if outage else error,
            )
            for group in groups:
                group.error = StorageUnavailable()
                self.counters.dropped += len(group.rows)
            self._last_fold = time.monotonic()  # a fold would only wait for the same database
            return written
        for group in groups:
            try:
                written += self._store([group], again=True)
            except Exception as own:
                self._after_failure(own)
                logger.error("a request's spans were not stored", exc_info=own)
                group.error = StorageUnavailable()
                self.counters.dropped += len(group.rows)
        return written

    def _after_failure(self, error: BaseException) -> None:
        """Get rid of a connection that may be broken, and give the database a moment."""
        logger.warning("storing a batch failed: %s", error)
        connection.close()
        self._prepare_connection()
        time.sleep(RETRY_PAUSE_SECONDS)

    def _answer(self, groups: list[Group]) -> None:
        with self._lock:
            self.counters.depth -= sum(len(group.rows) for group in groups)
        loop = groups[0].loop
        if loop is not None and all(group.loop is loop for group in groups):
            _call(loop, groups)
            return
        for group in groups:
            if group.loop is None:
                group.finish()
            else:
                _call(group.loop, [group])

    def _fold_if_due(self, *, idle: bool) -> None:
        if not self._unfolded and not self._fold_requests:
            return
        elapsed = time.monotonic() - self._last_fold
        asked = bool(self._fold_requests) and (idle or elapsed >= FOLD_GAP_SECONDS)
        if not asked and elapsed < FOLD_SECONDS and not self._stopping.is_set():
            return
        requests, self._fold_requests = self._fold_requests, []
        ok = False
        try:
            while fold(wait=bool(requests)):
                if not idle and not requests:
                    break
            ok = True
            self._unfolded = False
        except Exception as error:
            logger.exception("folding the aggregates failed")
            self._after_failure(error)
        self._last_fold = time.monotonic()
        for request in requests:
            request.ok = ok
            request.done.set()

    def _finish_checkpoint(self) -> None:
        """Copy the little that was written during the other thread's checkpoint, so that the WAL starts over.

        Under steady load only the one who writes can find a moment when everything is copied.
        """
        self._rewind_wal = False
        try:
            connection.ensure_connection()
            connection.connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except (DatabaseError, sqlite3.Error):
            logger.warning("the write-ahead log could not be rewound", exc_info=True)

    def _checkpoint(self) -> None:
        """Copy the WAL back into the database file from a thread of its own, without ever waiting for readers."""
        path = str(connection.settings_dict["NAME"])
        quiet, batches = 0, 0
        while not self._stopping.wait(CHECKPOINT_SECONDS):
            quiet = quiet + 1 if batches == self.counters.batches else 0
            batches = self.counters.batches
            size = _size(path + "-wal")
            limit = self._wal_limit = _wal_limit(path)
            # After a few quiet seconds, and where space is short, the file goes back to nothing.
            give_back = size >= QUIET_BYTES if quiet >= QUIET_TICKS else size >= limit and limit < CHECKPOINT_BYTES
            if size < limit and not give_back:
                continue
            try:
                raw = sqlite3.connect(path, timeout=0.02, isolation_level=None)
                try:
                    raw.execute("PRAGMA synchronous=NORMAL")
                    raw.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
                    # What could not be truncated (somebody writes or reads) at least starts over.
                    if not give_back or raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]:
                        self._rewind_wal = True
                finally:
                    raw.close()
            except sqlite3.Error as error:
                logger.warning("the write-ahead log could not be checkpointed: %s", error)


def write_committed(rows: list[Row], *, again: bool = False) -> Written:
    """Store rows in a transaction of the calling thread's connection; committed on return. See `store_rows`."""
    if connection.vendor == "postgresql":
        partitions.ensure({row.created_ms // partitions.DAY_MS for row in rows}, now_ms())
    # Drivers' own exceptions become Django's, so that a lost database is told from bad data.
    with connection.wrap_database_errors, backend().transaction():
        return store_rows(rows, again=again)


def _as_given(groups: list[Group], given: list[list[tuple[str | None, int]]]) -> None:
    """Take back what a failed try has put into the rows: their place in a tree is found anew."""
    for group, originals in zip(groups, given, strict=True):
        for row, (session_id, traffic) in zip(group.rows, originals, strict=True):
            row.session_id, row.traffic = session_id, traffic
            row.root_id = row.agent_id = row.child_models = None
            row.child_input_tokens = row.child_output_tokens = 0
            row.child_cache_read_tokens = row.child_cache_write_tokens = 0


def _call(loop: asyncio.AbstractEventLoop, groups: list[Group]) -> None:
    try:
        loop.call_soon_threadsafe(_finish_all, groups)
    except RuntimeError:
        logger.warning("an event loop closed before its spans were answered")


def _finish_all(groups: list[Group]) -> None:
    for group in groups:
        group.finish()


def _wal_limit(path: str) -> int:
    """The size of the WAL, in bytes, from which it is copied back into the database file at `path`."""
    try:
        free = shutil.disk_usage(os.path.dirname(path)).free
    except OSError:
        return CHECKPOINT_BYTES
    return min(CHECKPOINT_BYTES, max(QUIET_BYTES, free // CHECKPOINT_DISK_PART))


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


WRITER = Writer()
