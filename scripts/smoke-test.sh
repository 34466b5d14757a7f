#!/bin/sh
# The published SDK against a fresh server: traces, trees, sessions, reads, export. SQLite in a throw-away home, or the
# (empty) Postgres of AGENTX_DB_URL. Needs Python 3.11 and, in its environment, this package and agentx-python.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
pid=
trap 'if [ -n "$pid" ]; then kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; fi; rm -rf "$work"' EXIT
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')

AGENTX_HOME="$work" AGENTX_HOST=127.0.0.1 AGENTX_OTLP_GRPC_PORT=0 \
    python3 -m config.server --port "$port" >"$work/log" 2>&1 &
pid=$!
n=0
until grep -q "^Default project API key: " "$work/log"; do
    n=$((n + 1))
    if [ "$n" -gt 300 ] || ! kill -0 "$pid" 2>/dev/null; then
        cat "$work/log"
        exit 1
    fi
    sleep 0.1
done
AGENTX_API_KEY=$(sed -n 's/^Default project API key: //p' "$work/log")
AGENTX_API_BASE_URL="http://127.0.0.1:$port/api/v1"
export AGENTX_API_KEY AGENTX_API_BASE_URL
python3 scripts/smoke_test.py
echo "smoke test passed"
