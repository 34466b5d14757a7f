"""What a server costs, read from /proc: CPU seconds and memory of a process with all its descendants, and disk."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path
from urllib.parse import urlsplit

_TICKS = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


def _stat(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None


def _name(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "comm").read_text().strip()
    except OSError:
        return ""


def _parents() -> dict[int, int]:
    found = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))) is not None:
            found[int(entry.name)] = int(stat[1])
    return found


def tree(root: int) -> list[int]:
    """The process and its descendants."""
    children = defaultdict(list)
    for pid, parent in _parents().items():
        children[parent].append(pid)
    found, waiting = [], [root]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        waiting += children[pid]
    return found


def cpu_seconds(root: int | None) -> float:
    """User and system time of the tree, ended children of its root included; 0 without a process."""
    if root is None:
        return 0.0
    ticks = 0
    for pid in tree(root):
        stat = _stat(pid)
        if stat is None:
            continue
        ticks += int(stat[11]) + int(stat[12])
        if pid == root:
            ticks += int(stat[13]) + int(stat[14])
    return ticks / _TICKS


def memory_mb(root: int | None) -> dict[str, float] | None:
    """Resident and proportional set size of the tree in MB (10^6 bytes)."""
    if root is None:
        return None
    sums = {"Rss": 0, "Pss": 0}
    for pid in tree(root):
        try:
            lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            key, _, rest = line.partition(":")
            if key in sums:
                sums[key] += int(rest.split()[0]) * 1024
    return {"rssMb": round(sums["Rss"] / 1e6, 1), "pssMb": round(sums["Pss"] / 1e6, 1)}


def postgres_root() -> int | None:
    """The postmaster of this machine, if one runs: a postgres process whose parent is none."""
    for pid, parent in _parents().items():
        if _name(pid) == "postgres" and _name(parent) != "postgres":
            return pid
    return None


def disk_bytes(*, home: Path | None, db_url: str) -> int | None:
    """Size of the database: the files of a SQLite home, or what Postgres says."""
    if db_url.startswith(("postgres://", "postgresql://")):
        import psycopg

        name = urlsplit(db_url).path.lstrip("/")
        with psycopg.connect(db_url) as connection:
            row = connection.execute("SELECT pg_database_size(%s)", (name,)).fetchone()
        return int(row[0]) if row else None
    if home is None:
        return None
    return sum(path.stat().st_size for path in home.glob("*.db*") if path.is_file())
