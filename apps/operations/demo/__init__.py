"""A lively demo project, made from fixtures: what `agentx-server --demo` and the one-click button load.

start_demo()      begin in the background (pages)
demo_progress()   how far it is (pages poll this)
load_demo()       the same in the foreground (management command `load_demo`)
build_demo()      fill any project with the month (tests, tools)
"""

from apps.operations.demo.background import DemoProgress, demo_progress, load_demo, start_demo
from apps.operations.demo.build import DemoResult, build_demo, demo_project

__all__ = [
    "DemoProgress",
    "DemoResult",
    "build_demo",
    "demo_progress",
    "demo_project",
    "load_demo",
    "start_demo",
]
