"""`python -m benchmarks all --quick`: one JSON line a scenario. See README.md."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import scenarios
from benchmarks.scenarios import ON_SERVER, Options
from benchmarks.target import Target, own_server

ORDER = ("ingest-json", "ingest-otlp", "mixed", "replays", "seed", "reads", "search", "memory")
STARTS_ITS_OWN = ("startup", "disk", "kills")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scenario", nargs="+", choices=["all", *ORDER, *STARTS_ITS_OWN])
    parser.add_argument("--base-url", help="A server that runs already; else one is started in a temporary home.")
    parser.add_argument("--key", default="", help="Its project key.")
    parser.add_argument("--pid", type=int, help="Its process, to tell CPU and memory.")
    parser.add_argument("--home", type=Path, help="Start our own server in this home and keep it.")
    parser.add_argument("--db-url", default="", help="Start our own server on this Postgres database.")
    parser.add_argument("--count-postgres", action="store_true", help="Add the CPU of Postgres' processes.")
    parser.add_argument("--quick", action="store_true", help="Short loads and little data: about two minutes.")
    parser.add_argument("--seconds", type=float, help="Length of each ingest load.")
    parser.add_argument("--spans", type=int, help="Spans to seed for reads and search.")
    parser.add_argument("--rounds", type=int, help="Rounds of kill -9.")
    parser.add_argument("--output", type=Path, help="Append the lines to this file as well.")
    return parser.parse_args()


def _options(arguments: argparse.Namespace) -> Options:
    options = Options.quick() if arguments.quick else Options()
    given = {name: getattr(arguments, name) for name in ("seconds", "spans", "rounds")}
    return dataclasses.replace(options, **{name: value for name, value in given.items() if value is not None})


def _report(name: str, measure: Callable[[], dict[str, Any]], output: Path | None) -> None:
    began = time.time()
    line = json.dumps({"scenario": name, "at": round(began), **measure()})
    print(line, flush=True)
    if output is not None:
        with output.open("a") as file:
            file.write(line + "\n")


def main() -> int:
    """Run the scenarios asked for, in a sensible order."""
    arguments = _arguments()
    options = _options(arguments)
    wanted = set(arguments.scenario)
    everything = "all" in wanted
    with contextlib.ExitStack() as stack:
        chosen = [name for name in ORDER if everything or name in wanted]
        if chosen:
            if arguments.base_url:
                server = Target(
                    base_url=arguments.base_url,
                    key=arguments.key,
                    pid=arguments.pid,
                    db_url=arguments.db_url,
                    count_postgres=arguments.count_postgres,
                )
            else:
                server = stack.enter_context(
                    own_server(db_url=arguments.db_url, count_postgres=arguments.count_postgres, home=arguments.home)
                )
                print(json.dumps({"scenario": "start", "readySeconds": server.ready_seconds}), flush=True)
            for name in chosen:
                _report(name, lambda name=name: ON_SERVER[name](server, options), arguments.output)
    own: dict[str, Callable[[], dict[str, Any]]] = {
        "startup": lambda: scenarios.startup(options, arguments.db_url),
        "disk": lambda: scenarios.disk(options),
        "kills": lambda: scenarios.kills(options, arguments.db_url),
    }
    for name in STARTS_ITS_OWN:
        if (everything and not arguments.base_url) or name in wanted:
            _report(name, own[name], arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
