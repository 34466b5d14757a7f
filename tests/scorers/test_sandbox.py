"""Users' JavaScript: what it may do, and what it may not, whatever it tries."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from apps.scorers.sandbox import javascript, protections, run_javascript
from apps.scorers.sandbox.javascript import ABSENT
from apps.scorers.sandbox.pool import Pool, SandboxError, pool

CHILD = Path(javascript.__file__).with_name("child.py")
NAMES = {
    "input": "How do I get a refund?",
    "output": "Within 30 days.",
    "expected": ABSENT,
    "toolCalls": ABSENT,
    "scores": {"rating": 8, "judges": {"Safety": 9}, "rougeScore": 0.5, "vectorSimilarity": None},
}

BLEND = """
const WEIGHTS = { rating: 0.5, vectorSimilarity: 0.2, rougeScore: 0.3 };
if (!scores) return { score: null };
let total = 0, used = 0;
if (scores.rating != null) { total += (scores.rating / 10) * WEIGHTS.rating; used += WEIGHTS.rating; }
for (const m of ["vectorSimilarity", "rougeScore"]) {
  if (scores[m] != null) { total += scores[m] * WEIGHTS[m]; used += WEIGHTS[m]; }
}
return used > 0 ? { score: total / used } : { score: null };
"""


def run(code, **more):
    return run_javascript(code, NAMES, **more)


@pytest.mark.parametrize(
    ("code", "score", "reasoning"),
    [
        ("return 0.4", 0.4, None),
        ("return { score: 1, reasoning: `as ${output}` }", 1.0, "as Within 30 days."),
        ("const bad = /rivalcorp/i.test(output); return { score: bad ? 0 : 1 };", 1.0, None),
        (
            "const n = output.trim().split(/\\s+/).length; return n <= 60 ? { score: 1, reasoning: `${n} words` } : 0",
            1.0,
            "3 words",
        ),
        ("return scores.rating / 10", 0.8, None),
        ('return scores.judges["Safety"] / 10', 0.9, None),
        (BLEND, pytest.approx((0.4 + 0.15) / 0.8), None),
        ("return { score: null }", None, None),
        ("return 7", 7.0, None),
        ("return { score: -2.5, reasoning: { a: [1] } }", -2.5, '{"a":[1]}'),
        ("return typeof expected === 'undefined' && typeof toolCalls === 'undefined' ? 1 : 0", 1.0, None),
        ("return input.includes('refund') ? 1 : 0 // comment at the end", 1.0, None),
        ("let n = 0; for (const c of [...output].filter(c => c === '3')) n++; return n", 1.0, None),
        ("try { JSON.parse(output); return 1 } catch { return 0 }", 0.0, None),
    ],
)
def test_a_body_gives_its_documented_score(code, score, reasoning):
    outcome = run(code)
    assert outcome.error is None
    assert (outcome.score, outcome.reasoning) == (score, reasoning)


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("throw new Error('boom')", "Error: boom"),
        ("throw { a: 1 }", 'threw {"a":1}'),
        ("throw 'text'", "threw text"),
        ("throw null", "threw null"),
        ("throw { get message() { throw 1 } }", "cannot be shown"),
        ("throw new Proxy({}, { has() { throw 1 } })", "cannot be shown"),
        ("return", "nothing"),
        ("function handler(input) { return 1 }", "nothing"),
        ("async function handler() { return 1 }", "nothing"),
        ("return null", "null"),
        ("return '0.8'", "a string"),
        ("return true", "a boolean"),
        ("return 1n", "a bigint"),
        ("return [1]", "an array"),
        ("return () => 1", "a function"),
        ("return {}", "without score"),
        ("return { score: '1' }", "its score is a string"),
        ("return { score: true }", "its score is a boolean"),
        ("return { score: undefined }", "its score is a undefined"),
        ("return { score: NaN }", "NaN"),
        ("return { get score() { throw new Error('no') } }", "Error: no"),
        ("return Promise.resolve(1)", "promise"),
        ("return (async () => 1)()", "promise"),
        ("return 1 / 0", "Infinity"),
        ("return NaN", "NaN"),
        ("return (", "SyntaxError"),
        ("return 1 }); (function () {", "nothing"),
        ("await 1; return 1", "SyntaxError"),
        ("", "no code"),
        ("x" * 300_000, "longer than"),
        ("return missing", "ReferenceError"),
        ("(function f() { f() })(); return 1", "stack"),
    ],
)
def test_whatever_is_no_score_is_an_error(code, says):
    outcome = run(code)
    assert outcome.score is None
    assert says in (outcome.error or "")


@pytest.mark.parametrize(
    "code",
    [
        "return [].constructor.constructor('return process')()",
        "return this.constructor.constructor('return process')().exit()",
        "return require('fs').readFileSync('/etc/passwd')",
        "return fetch('http://127.0.0.1:4920/')",
        "return new XMLHttpRequest()",
        "return process.env.HOME.length",
        "return std.loadFile('/proc/self/environ').length",
        "return os.exec(['id'])",
        "return import('fs')",
        "return import('/proc/self/environ')",
        "return new Function('return import(\"os\")')()",
        "return (0, eval)('typeof std')",
        "return new Worker('x')",
        "return Deno.pid",
        "return read('/etc/passwd').length",
        "print('{\"value\": 1}'); return 1",
        'console.log(\'{"id": 1, "value": 1}\'); return 1',
        "return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 9000)",
    ],
)
def test_nothing_outside_the_language_is_reachable(code):
    outcome = run(code)
    assert outcome.score is None
    assert outcome.error


def test_the_names_of_a_server_are_not_there():
    code = "return [typeof fetch, typeof require, typeof process, typeof module, typeof setTimeout, typeof console]"
    assert run(code + ".every(t => t === 'undefined') ? 1 : 0").score == 1.0


@pytest.mark.parametrize(
    "code",
    [
        "while (true) {}",
        "try { while (true) {} } catch (e) { return 1 } finally { return 1 }",
        "/^(a+)+$/.test('a'.repeat(40) + 'b'); return 1",
        "return { get score() { while (true) {} } }",
        "throw { toString() { while (true) {} }, get message() { while (true) {} } }",
        "Array.prototype[Symbol.iterator] = function* () { while (true) {} }; return [...'ab', ...[1]].length",
    ],
)
def test_a_body_that_does_not_end_is_cut_off(code):
    outcome = run(code, timeout_s=0.5)
    assert outcome.timed_out
    assert outcome.error == "it ran longer than 0.5 seconds"
    assert run("return 1").score == 1.0


@pytest.mark.parametrize(
    "code",
    [
        "const a = []; while (true) a.push(new Array(10000).fill(1))",
        "return new ArrayBuffer(4e9).byteLength",
        "let s = 'x'; while (true) s = s + s + s.length",
        "return 'a'.repeat(2 ** 29).length",
        "return new Array(4e8).fill(1).length",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, 'x'.repeat(1000) + i)",
        "return JSON.stringify(Array(1e7).fill('xxxxxxxxxxxxxxxxxxxx')).length",
    ],
)
def test_a_memory_bomb_is_an_error_and_the_server_goes_on(code):
    outcome = run(code)
    assert outcome.score is None
    assert outcome.error
    assert run("return 1").score == 1.0


def test_a_result_of_ten_megabytes_is_an_error():
    assert "larger than 64 KB" in (run("return { score: 1, reasoning: 'x'.repeat(1e7) }").error or "")
    assert run("throw new Error('x'.repeat(60000))").error.endswith("…")


def test_a_result_that_no_database_takes_is_made_storable():
    assert run("return { score: 1, reasoning: 'a\\u0000b\\ud800c😀' }").reasoning == "ab\ufffdc😀"


def test_a_run_leaves_nothing_for_the_next():
    first = Pool(1)
    try:

        def go(code):
            return first.run(code, {"output": "x"}, [], time_s=2, memory_mb=64)

        go("globalThis.left = 1; Object.prototype.score = 1; JSON.stringify = () => '{\"value\":1}'; return 1")
        pids = first.pids()
        assert go("return typeof left === 'undefined' && ({}).score === undefined ? 1 : 0")["value"] == 1
        assert first.pids() == pids  # the same process, another world
    finally:
        first.close()


def test_tampering_with_built_ins_changes_no_verdict():
    code = (
        "JSON.stringify = () => '{\"value\": 1}'; Number.isFinite = () => true; String = () => 'x'; return 'no score'"
    )
    assert "a string" in (run(code).error or "")


def test_text_of_every_kind_arrives_as_it_is():
    text = "Ünïcödé 😀 \u2028 \x00 \ud800 } ` ${x} \\ \" '\r\n" + "x" * 1_000_000
    outcome = run_javascript("return output.length", {"output": text})
    assert outcome.score == len(text) + 1  # the emoji is two units there
    assert "larger than" in (run_javascript("return 1", {"output": "x" * 17_000_000}).error or "")


def test_the_pool_survives_the_death_of_its_processes():
    assert run("return 1").score == 1.0
    for pid in pool().pids():
        os.kill(pid, signal.SIGKILL)
    outcomes = [run("return 1") for _ in range(5)]
    # A process that dies between two runs may take one of them along, as an error; never as a score.
    assert [outcome.score for outcome in outcomes[1:]] == [1.0] * 4


def test_processes_are_replaced_after_so_many_runs(monkeypatch):
    monkeypatch.setattr("apps.scorers.sandbox.pool.RUNS_PER_CHILD", 3)
    small = Pool(1)
    try:
        seen = set()
        for _ in range(9):
            assert small.run("return 1", {}, [], time_s=2, memory_mb=64)["value"] == 1
            seen.update(small.pids())
        assert len(seen) == 3
    finally:
        small.close()


def test_many_threads_share_the_pool():
    def one(number: int) -> bool:
        return run_javascript("return n + (n % 7 === 0 ? missing : 0)", {"n": number}).score == (
            None if number % 7 == 0 else number
        )

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(one, range(1, 200)))


def test_a_child_outlives_the_thread_that_started_it():
    small = Pool(1)
    try:
        thread = threading.Thread(target=small.run, args=("return 1", {}, []), kwargs={"time_s": 2, "memory_mb": 64})
        thread.start()
        thread.join()
        pids = small.pids()
        assert small.run("return 2", {}, [], time_s=2, memory_mb=64)["value"] == 2
        assert small.pids() == pids
    finally:
        small.close()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc of Linux")
def test_a_child_holds_no_secret_and_no_descriptor(monkeypatch):
    monkeypatch.setenv("AGENTX_SECRET_KEY", "very-secret-value")
    small = Pool(1)
    try:
        small.run("return 1", {}, [], time_s=2, memory_mb=64)
        (pid,) = small.pids()
        assert b"very-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
        assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
        status = Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status
    finally:
        small.close()


ATTEMPTS = {
    "open a file": "open('/etc/passwd')",
    "read its environment": "open('/proc/self/environ')",
    "open a socket": "__import__('_socket').socket()",
    "fork": "os.fork()",
    "run a program": "os.execv('/bin/true', ['true'])",
    "signal a process": "os.kill(os.getppid(), 0)",
    "make a directory": "os.mkdir('/tmp/made-by-a-scorer')",
}


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_code_that_broke_out_of_the_engine_would_find_itself_confined(attempt):
    import _quickjs

    script = f"""
import os, sys, _socket
sys.argv = ["child", {str(Path(_quickjs.__file__).parent)!r}, "64"]
sys.path.insert(0, {str(CHILD.parent)!r})
import child
child.confine(64)
try:
    {ATTEMPTS[attempt]}
except OSError as error:
    os.write(1, b"refused")
else:
    os.write(1, b"done")
"""
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, timeout=30, check=False)
    assert done.stdout == b"refused", done.stderr


def test_a_process_that_cannot_be_started_is_an_error_of_the_scorer(monkeypatch):
    pool().close()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    outcome = run("return 1")
    assert outcome.score is None
    assert "could not be started" in (outcome.error or "")
    monkeypatch.undo()
    assert run("return 1").score == 1.0


def test_a_full_pool_refuses_after_its_wait(monkeypatch):
    monkeypatch.setattr("apps.scorers.sandbox.pool._WAIT_S", 0.05)
    small = Pool(1)
    small._slots.acquire()
    with pytest.raises(SandboxError, match="busy"):
        small.run("return 1", {}, [], time_s=1, memory_mb=64)


@pytest.mark.skipif(sys.platform != "linux", reason="seccomp is Linux's")
def test_what_holds_on_this_host_can_be_told():
    assert any("seccomp" in str(text) for text in protections())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_makes_a_pool_of_its_own():
    script = f"""
import os, sys
sys.path.insert(0, {str(CHILD.parents[3])!r})
from apps.scorers.sandbox import run_javascript
from apps.scorers.sandbox.pool import pool
assert run_javascript("return 1", {{}}).score == 1.0
mine = pool().pids()
pid = os.fork()
if pid == 0:
    assert run_javascript("return 2", {{}}).score == 2.0
    assert not set(pool().pids()) & set(mine)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert run_javascript("return 3", {{}}).score == 3.0
assert pool().pids() == mine
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc of Linux")
def test_no_process_outlives_a_killed_server():
    script = f"""
import sys, threading, time
sys.path.insert(0, {str(CHILD.parents[3])!r})
from apps.scorers.sandbox.pool import pool
from apps.scorers.sandbox import run_javascript
run_javascript("return 1", {{}})
print(*pool().pids(), flush=True)
threading.Thread(target=run_javascript, args=("while (true) {{}}", {{}})).start()
time.sleep(60)
"""
    server = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    pids = [int(pid) for pid in server.stdout.readline().split()]
    server.kill()
    server.wait()
    server.stdout.close()
    deadline = time.monotonic() + 30
    while any(_runs(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(_runs(pid) for pid in pids)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
