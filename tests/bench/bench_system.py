# SPDX-License-Identifier: Apache-2.0
# Measures system mode: jobs of another user, started by the spawner of root, with each sandbox profile. Prints NAME VALUE lines.
#
# usage: tests/bench/bench_system.py [RUNS [PROFILE...]]      with top_builddir set, by root
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../integration"))
from harness import BUILD, Skip
from system import System


def main(runs="4000", *profiles):
    try:
        s = System(engine_conf="max-running = 8\nowner-max-running = 8\nsubmissions-per-second = 100000\nsubmissions-burst = 100000\n")
    except Skip as reason:
        print("skip %s" % reason)
        return
    with s:
        s.start()
        subprocess.run([os.path.abspath(os.path.join(BUILD, "tests/bench/bench_product")), "runs", s.socket,
                        str(s.engine.pid), str(s.spawner.pid), str(s.uid("alice")), runs, *(profiles or ("compat", "standard", "strict"))],
                       check=True, cwd="/")


main(*sys.argv[1:])
