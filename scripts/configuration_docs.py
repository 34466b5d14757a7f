"""Write the tables of docs/configuration.md from config/env.py and the command line: `make docs`.

tests/config/test_docs.py fails when the file and the declarations differ.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "configuration.md"
BEGIN, END = "<!-- generated: begin -->", "<!-- generated: end -->"


def tables() -> str:
    """The generated part: sub-commands, flags, and one table of variables a section."""
    from config.env import VARIABLES
    from config.server import SUBCOMMANDS, _parser

    lines = ["## Commands", "", "| Command | What it does |", "|---|---|", "| `agentx-server` | start the server |"]
    lines += [f"| `agentx-server {name}` | {text} |" for name, text in SUBCOMMANDS.items()]
    lines += ["", "## Flags of the server", "", "| Flag | Same as | What it does |", "|---|---|---|"]
    for action in _parser()._actions:
        flag = action.option_strings[-1]
        if flag == "--help":
            continue
        variable = VARIABLES.get(action.dest)
        text = variable.doc if variable else (action.help or "").replace("%%", "%")
        lines.append(f"| `{flag}` | {f'`{variable.name}`' if variable else ''} | {text} |")
    section = ""
    for variable in VARIABLES.values():
        if variable.section != section:
            section = variable.section
            lines += ["", f"## {section}", "", "| Variable | Default | What it does |", "|---|---|---|"]
        default = f"`{variable.default}`" if variable.default is not None else "unset"
        flag_note = f" Flag: `{variable.flag}`." if variable.flag else ""
        lines.append(f"| `{variable.name}` | {default} | {variable.doc}{flag_note} |")
    return "\n".join(lines)


def page_with_tables() -> str:
    """The page as it should be: its own text around the generated part."""
    text = PAGE.read_text("utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PAGE.write_text(page_with_tables(), "utf-8")
