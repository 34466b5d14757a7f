"""The child process that runs users' JavaScript; started as a script by `pool.py`, with nothing of the project loaded.

Every run gets a QuickJS runtime of its own with a memory and a CPU limit. QuickJS offers scripts no files, network,
processes or modules. Should its own code be broken into, the process has an empty environment, may open no file, write
none, start no process and has bounded memory (rlimits), and on Linux (x86-64, arm64) a seccomp filter refuses every
system call but those of reading its pipe, answering, and memory.

Frames on both pipes: four bytes of length, big endian, then JSON. Request: {"id", "code", "names", "time_s",
"memory_mb"}; answer: {"id", "value"} or {"id", "error"}. The answer is the return value of the engine's own call, so
nothing that a script prints or leaves behind can take its place.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import struct
import sys

sys.path.insert(0, sys.argv[1])
import _quickjs

MB = 1024 * 1024
RESULT_MOST = 64 * 1024
_STACK = 512 * 1024

# Built-ins are taken before the script runs: what it does to them afterwards changes only its own world.
_PRELUDE = """
(function () {
  const stringify = JSON.stringify, parse = JSON.parse, Fn = Function, apply = Reflect.apply, has = Reflect.has;
  const isFinite = Number.isFinite, isArray = Array.isArray, Str = String, Err = Error;
  const fail = function (text) { return stringify({ error: text }); };
  const describe = function (value) {
    try {
      if (typeof value === "object" && value !== null && (value instanceof Err || has(value, "message"))) {
        return Str(value.name || "Error") + ": " + Str(value.message);
      }
      if (typeof value === "object" && value !== null) { return "threw " + stringify(value); }
      return "threw " + Str(value);
    } catch (e) { return "threw something that cannot be shown"; }
  };
  return function (request) {
    const given = parse(request), names = [], values = [];
    for (const name in given.names) { names[names.length] = name; values[values.length] = given.names[name]; }
    for (let i = 0; i < given.absent.length; i++) {
      names[names.length] = given.absent[i]; values[values.length] = undefined;
    }
    let body, value;
    try { names[names.length] = given.code; body = apply(Fn, undefined, names); }
    catch (e) { return fail(describe(e)); }
    try { value = apply(body, undefined, values); } catch (e) { return fail(describe(e)); }
    try {
      if (typeof value === "number") {
        return isFinite(value) ? stringify({ value: value }) : fail("it returned " + Str(value));
      }
      if (value === undefined) { return fail("it returned nothing"); }
      if (value === null) { return fail("it returned null"); }
      if (typeof value !== "object" || isArray(value)) {
        return fail("it returned " + (isArray(value) ? "an array" : "a " + typeof value) + ", not a number or { score }");
      }
      if (typeof value.then === "function") { return fail("it returned a promise; the body must be synchronous"); }
      if (!has(value, "score")) { return fail("it returned an object without score"); }
      const score = value.score, reasoning = value.reasoning;
      if (score !== null && typeof score !== "number") { return fail("its score is a " + typeof score); }
      if (score !== null && !isFinite(score)) { return fail("its score is " + Str(score)); }
      const out = { score: score };
      if (reasoning !== undefined && reasoning !== null) {
        out.reasoning = typeof reasoning === "string" ? reasoning : Str(stringify(reasoning));
      }
      return stringify({ value: out });
    } catch (e) { return fail(describe(e)); }
  };
})()
"""


def confine(memory_mb: int) -> bool:
    """Give up everything that running scripts does not need; whether system calls are filtered too."""
    here = 0
    with open("/proc/self/statm") if os.path.exists("/proc/self/statm") else open(os.devnull) as statm:
        size = statm.read().split()
        here = int(size[0]) * resource.getpagesize() if size else 0
    limits = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 3),
        (resource.RLIMIT_NPROC, 0),
    ]
    if here:
        # QuickJS keeps the script's own limit; this bounds the process around it, interpreter and frames included.
        limits.append((resource.RLIMIT_AS, here + (2 * memory_mb + 96) * MB))
    for kind, value in limits:
        resource.setrlimit(kind, (value, value))
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE
        libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        return _filter_system_calls(libc)
    return False


# read, write, mmap, mprotect, munmap, brk, rt_sigreturn, madvise, mremap, futex, clock_gettime, exit, exit_group,
# rt_sigaction, rt_sigprocmask, getrandom, sched_yield, clock_nanosleep, sigaltstack
_SYSTEM_CALLS = {
    "x86_64": (0xC000003E, [0, 1, 9, 10, 11, 12, 15, 28, 25, 202, 228, 60, 231, 13, 14, 318, 24, 230, 131]),
    "aarch64": (0xC00000B7, [63, 64, 222, 226, 215, 214, 139, 233, 216, 98, 113, 93, 94, 134, 135, 278, 124, 115, 132]),
}


def _filter_system_calls(libc: ctypes.CDLL) -> bool:
    known = _SYSTEM_CALLS.get(platform.machine())
    if known is None:
        return False
    architecture, allowed = known
    load, jump_equal, answer = 0x20, 0x15, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | 1  # SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
    program = [
        (load, 0, 0, 4),
        (jump_equal, 1, 0, architecture),
        (answer, 0, 0, 0x80000000),  # SECCOMP_RET_KILL_PROCESS: another architecture's numbers mean other calls
        (load, 0, 0, 0),
    ]
    program += [(jump_equal, len(allowed) - index, 0, number) for index, number in enumerate(allowed)]
    program += [(answer, 0, 0, refuse), (answer, 0, 0, allow)]
    code = b"".join(struct.pack("HBBI", *step) for step in program)
    buffer = ctypes.create_string_buffer(code)

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]

    made = Program(len(program), ctypes.cast(buffer, ctypes.c_void_p))
    # PR_SET_SECCOMP, SECCOMP_MODE_FILTER; a kernel without it says no.
    return libc.prctl(22, 2, ctypes.byref(made), 0, 0) == 0


def run(request: dict) -> dict:
    """One script in a fresh runtime."""
    context = _quickjs.Context()
    context.set_memory_limit(request["memory_mb"] * MB)
    context.set_max_stack_size(_STACK)
    context.set_time_limit(request["time_s"])
    given = {"code": request["code"], "names": request["names"], "absent": request["absent"]}
    try:
        answer = context.eval(_PRELUDE)(json.dumps(given))
    except _quickjs.StackOverflow:
        return {"error": "RangeError: Maximum call stack size exceeded"}
    except _quickjs.JSException as error:
        text = str(error).split("\n", 1)[0]
        if "interrupted" in text:
            return {"error": f"it ran longer than {request['time_s']:g} seconds", "timed_out": True}
        if "out of memory" in text or text in ("null", "undefined", ""):
            return {"error": f"it used more than {request['memory_mb']} MB of memory"}
        return {"error": text}
    except UnicodeDecodeError:
        return {"error": "its result holds half of a surrogate pair"}
    if not isinstance(answer, str):
        return {"error": "it returned something that cannot be shown"}
    if len(answer) > RESULT_MOST:
        return {"error": f"its result is larger than {RESULT_MOST // 1024} KB"}
    try:
        told = json.loads(answer)
    except ValueError:
        told = None
    if not isinstance(told, dict):
        return {"error": "it returned something that cannot be shown"}
    if str(told.get("error", "")).endswith("Error: out of memory"):
        told["error"] = f"it used more than {request['memory_mb']} MB of memory"
    return told


def _read(size: int) -> bytes:
    parts: list[bytes] = []
    while size:
        part = os.read(0, min(size, MB))
        if not part:
            os._exit(0)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    """Answer requests until the pipe closes."""
    run({"code": "return 1", "names": {}, "absent": [], "time_s": 1, "memory_mb": 16})
    ready = json.dumps({"filtered": confine(int(sys.argv[2]))}).encode()
    _write(struct.pack(">I", len(ready)) + ready)
    while True:
        (size,) = struct.unpack(">I", _read(4))
        request = json.loads(_read(size))
        try:
            answer = run(request)
        except MemoryError:
            answer = {"error": f"it used more than {request['memory_mb']} MB of memory"}
        answer["id"] = request["id"]
        data = json.dumps(answer).encode()
        _write(struct.pack(">I", len(data)) + data)


if __name__ == "__main__":
    main()
