"""Runs JavaScript that users wrote, where it can reach nothing.

`run_javascript` hands a function body to one of a few child processes (see `child.py` for what holds there) and returns
what came of it. The code sees the names it is given and the language itself.
"""

from apps.scorers.sandbox.javascript import Outcome, protections, run_javascript

__all__ = ["Outcome", "protections", "run_javascript"]
