"""The console script `agentx-server`: start the server, or run one of its sub-commands.

    agentx-server [--port 4700] [--db-url postgres://...] [--dev] [--demo]
    agentx-server worker | reprice | createsuperuser | install-launcher | manage <django command>

Imports stay light up here: a wrong flag or variable must be told in a tenth of a second.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import logging
import os
import signal
import socket
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from config import env
from config.startup import ConfigurationError, StartError, check_configuration

logger = logging.getLogger("agentx.server")

EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
# Seconds running requests get to finish after a stop signal.
DRAIN_SECONDS = 8

SUBCOMMANDS = {
    "worker": "run background work only (with AGENTX_BROKER_URL: on any number of machines)",
    "reprice": "compute stored costs anew for a range of time with today's catalog",
    "createsuperuser": "make an operator account for /admin",
    "install-launcher": "let the SDK's `agentx-trace-eval` start this server",
    "manage": "run any Django management command",
}


class Stopped(BaseException):
    """A stop signal came before the server was up. Not an Exception: nothing on the way may swallow it."""


class StopSignals:
    """SIGTERM and SIGINT from the first moment on: while starting they end the start, afterwards the server drains."""

    def __init__(self) -> None:
        self.received = False
        self.server: Any = None
        self._starting = False

    def install(self) -> None:
        """Take over both signals for the rest of the process."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._handle)

    @contextlib.contextmanager
    def starting(self) -> Iterator[None]:
        """Within this block a signal raises Stopped."""
        self._starting = True
        try:
            yield
        finally:
            self._starting = False
        if self.received:
            raise Stopped

    def _handle(self, number: int, frame: FrameType | None) -> None:
        again = self.received
        self.received = True
        if self.server is not None:
            self.server.should_exit = True
            # A second Ctrl-C does not wait for open requests any more; stored spans are safe either way.
            self.server.force_exit = again and number == signal.SIGINT
        if self._starting:
            self._starting = False
            raise Stopped


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="agentx-server",
        description="Records what AI agents do. One process serves the API, the dashboard, /health and /metrics.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for variable in env.VARIABLES.values():
        if variable.flag:
            doc = variable.doc.replace("%", "%%")
            shown = f" Default: {variable.default}." if variable.default else ""
            parser.add_argument(
                variable.flag, dest=variable.name, metavar=variable.kind.upper(), help=f"{doc}{shown} ({variable.name})"
            )
    parser.add_argument("--dev", action="store_true", help="Open the dashboard in the browser.")
    parser.add_argument("--demo", action="store_true", help="Load a demo project while the server runs.")
    parser.add_argument("--upgrade", action="store_true", help="Accepted: the dashboard ships with the server.")
    parser.add_argument("--engine-bin", metavar="PATH", help="Accepted and ignored: there is no separate engine.")
    parser.add_argument("--version", action="store_true", help="Print the version and exit.")
    return parser


def _epilog() -> str:
    lines = ["sub-commands (agentx-server <name> --help):"]
    lines += [f"  {name:<18} {doc}" for name, doc in SUBCOMMANDS.items()]
    section = ""
    for variable in env.VARIABLES.values():
        if variable.section != section:
            section = variable.section
            lines += ["", f"{section}:"]
        default = variable.default if variable.default is not None else "unset"
        lines.append(f"  {variable.name} [{default}]")
        lines += textwrap.wrap(variable.doc, 100, initial_indent="      ", subsequent_indent="      ")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; answers the exit code: 0 served and stopped, 1 could not run, 2 wrong configuration."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments and arguments[0] in SUBCOMMANDS:
            return _subcommand(arguments[0], arguments[1:])
        options = _parser().parse_args(arguments)
        if options.version:
            from config.version import VERSION

            print(f"agentx-server {VERSION}")
            return EXIT_OK
        for variable in env.VARIABLES.values():
            value = getattr(options, variable.name, None) if variable.flag else None
            if value is not None:
                os.environ[variable.name] = value
        return serve(options)
    except ConfigurationError as error:
        return _refuse(str(error), EXIT_USAGE)
    except StartError as error:
        return _refuse(str(error), EXIT_FAILED)
    except (Stopped, KeyboardInterrupt):
        return EXIT_OK


def _refuse(text: str, code: int) -> int:
    print(f"agentx-server: {text}", file=sys.stderr, flush=True)
    return code


def _subcommand(name: str, arguments: list[str]) -> int:
    if name == "install-launcher":
        from config.launcher import install

        return install(arguments)
    check_configuration()
    if name == "worker":
        from config.worker import run

        return run(arguments)
    from config.startup import setup_django

    setup_django()
    from django.core.management import execute_from_command_line

    if name == "manage":
        execute_from_command_line(["agentx-server manage", *arguments])
    else:
        execute_from_command_line(["agentx-server", name, *arguments])
    return EXIT_OK


def serve(options: argparse.Namespace) -> int:
    """Start the server and answer 0 once a stop signal has drained it."""
    signals = StopSignals()
    signals.install()
    with signals.starting():
        check_configuration()
        listener = bind(env.required_text("AGENTX_HOST"), env.required_integer("PORT"))
        port = listener.getsockname()[1]
        from config.startup import prepare

        key = prepare()
        _announce(options)
        server = _server(signals, port=port, key=key, options=options)
        signals.server = server
    if signals.received:
        raise Stopped
    try:
        server.run(sockets=[listener])
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise StartError(_in_use(env.required_text("AGENTX_HOST"), port)) from None
        raise
    except SystemExit as error:
        # uvicorn ends so when the lifespan's start fails; the reason is in the log.
        return EXIT_OK if signals.received else int(error.code or 0)
    logging.shutdown()
    return EXIT_OK


def bind(host: str, port: int) -> socket.socket:
    """The bound, not yet listening socket; raises StartError in one line when that is impossible."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"AGENTX_HOST {host!r} is not an address of this machine: {error.strerror}") from None
    family, kind, protocol, _, address = found[0]
    listener = socket.socket(family, kind, protocol)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(address)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise StartError(_in_use(host, port)) from None
        raise StartError(f"cannot listen on {host}:{port}: {error.strerror}") from None
    listener.set_inheritable(False)
    return listener


def _in_use(host: str, port: int) -> str:
    return f"port {port} on {host} is in use. Stop the other program or choose another port with --port."


def _announce(options: argparse.Namespace) -> None:
    if env.boolean("AGENTX_MULTI_TENANT"):
        logger.warning("AGENTX_MULTI_TENANT is ignored: it needs AGENTX_AUTH=enabled")
    if options.engine_bin:
        logger.warning("--engine-bin is ignored: this server has no separate engine executable")
    if options.upgrade:
        logger.info("--upgrade: the dashboard ships with the server, there is no separate bundle to refresh")


def _server(signals: StopSignals, *, port: int, key: str, options: argparse.Namespace) -> Any:
    import uvicorn

    from config import asgi
    from config.protocol import BoundedProtocol

    class Server(uvicorn.Server):
        """uvicorn with our signals (its own re-raise the signal, so that the process would end with 143)."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            if signals.received:
                self.should_exit = True
                return
            await super().startup(sockets=sockets)
            print(f"AgentX self-host engine listening on http://localhost:{port}", flush=True)
            print(f"Default project API key: {key}", flush=True)
            asgi.application.after_start(demo=options.demo)
            if options.dev:
                _open_browser(f"http://localhost:{port}")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            asgi.application.begin_stop()
            await super().shutdown(sockets=sockets)

    config = uvicorn.Config(
        asgi.application,
        loop="uvloop" if sys.platform != "win32" else "auto",
        http=BoundedProtocol,
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        # Forwarded headers are read in one place, by AGENTX_TRUST_PROXY.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        backlog=2048,
    )
    return Server(config)


def _open_browser(url: str) -> None:
    """Open the dashboard without ever disturbing the server: no display, no browser, a hanging one."""
    import threading
    import webbrowser

    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        logger.info("--dev: no display here, open %s yourself", url)
        return

    def open_it() -> None:
        try:
            opened = webbrowser.open(url)
        except (webbrowser.Error, OSError) as error:
            opened = False
            logger.debug("the browser could not be started: %s", error)
        if not opened:
            logger.info("--dev: no browser found, open %s yourself", url)

    threading.Thread(target=open_it, name="browser", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
