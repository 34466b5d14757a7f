#!/bin/sh
# Resolve the newest allowed versions in a fresh environment and pin them in constraints.txt.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet '.[test,lint]'
{
    echo "# Exact versions the suite passes with: pip install -c constraints.txt -e '.[test,lint]'"
    echo "# Made by \`make constraints\`."
    "$work/venv/bin/pip" freeze --exclude agentx-server | grep -v '@ ' | sort -f
} >constraints.txt
