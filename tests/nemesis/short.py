# SPDX-License-Identifier: Apache-2.0
# Half a minute of nemesis on each store. Lateness is not judged, because the machine may be busy.
import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import Skip, case, enter_pid_namespace, main
from pg import BIN

COMMON = ["--nodes", "3", "--jobs", "30", "--seconds", "20", "--every", "0.5", "--hold", "1-2", "--eps", "200", "--grace", "90"]
RUNS = {}


def begin(adapter, seed, ops):
    where = tempfile.mkdtemp(prefix="jobsched-nm.")
    out = open(os.path.join(where, "out"), "w+")
    words = [sys.executable, os.path.join(HERE, "run.py"), "run", where, "--adapter", "adapter:" + adapter, "--seed", str(seed), "--ops", ops]
    process = subprocess.Popen(words + COMMON, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=dict(os.environ, DENSE="1", LOADED="1"))
    RUNS[adapter] = (process, where, out)


@atexit.register
def end():
    for process, where, out in RUNS.values():
        process.terminate()  # ends its nodes too
        process.wait()
        out.close()
        if not os.environ.get("KEEP"):
            shutil.rmtree(where, ignore_errors=True)


def verdict(adapter):
    process, where, out = RUNS[adapter]
    code = process.wait()
    out.seek(0)
    said = out.read()
    if code:
        os.environ["KEEP"] = "1"
        raise AssertionError("exit %d, evidence in %s\n%s" % (code, where, said))
    return said.split('"faults": ')[1].split("}")[0].replace("\n", "").replace("   ", "")[1:]


@case
def three_nodes_that_share_a_file_lose_and_double_nothing():
    return verdict("Sqlite")


@case
def three_nodes_on_postgresql_lose_and_double_nothing():
    if "Postgres" not in RUNS:
        raise Skip("needs Debian's postgresql")
    return verdict("Postgres")


if __name__ == "__main__":
    enter_pid_namespace()  # replaces this process, so it comes before the runs are started
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    begin("Sqlite", 1, "pause-past,kill-host,kill-daemon")
    if os.path.isdir(BIN):
        begin("Postgres", 1, "cut-off-past,cut-claim,cut-commit,kill-daemon-past")
    main()
