"""Hooks by which apps further up take part in what an app below does, without being imported by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, ParamSpec

P = ParamSpec("P")


class Hooks(Generic[P]):
    """An ordered list of named functions; registered in AppConfig.ready(), a name again replaces its function."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[P, object]] = {}

    def register(self, name: str, function: Callable[P, object]) -> None:
        """Add a function under a name that is unique in this list, e.g. the label of the app."""
        self._functions[name] = function

    def unregister(self, name: str) -> None:
        """Take a function out again (tests)."""
        self._functions.pop(name, None)

    def __iter__(self) -> Iterator[Callable[P, object]]:
        return iter(list(self._functions.values()))

    def call(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Call every function in the order of registration; the first exception ends the round."""
        for function in self:
            function(*args, **kwargs)
