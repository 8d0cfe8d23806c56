# SPDX-License-Identifier: Apache-2.0
# Simulated power failures: acknowledged jobs survive, and the store opens without repair.
#
# The state directory is an ext4 file system in an image file. The image is copied while the daemon is stopped.
# The copy lacks all data that was only in the page cache, as after a power failure. The copy is mounted, which
# replays the journal, and a new daemon must find every acknowledged job.
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Api, Daemon, Skip, Unreachable, case, main, need_program, need_root, wait_until

CUTS = 6


def mount(image, point):
    done = subprocess.run(["mount", "-o", "loop", image, point], capture_output=True, text=True)
    if done.returncode:
        raise Skip("cannot mount: " + done.stderr.strip())


def unmount(point):
    wait_until("%s can be unmounted" % point, 20,
               lambda: subprocess.run(["umount", point], capture_output=True).returncode == 0, pause=0.1)


def cut_power(work, number):
    image, cut, point = (os.path.join(work, "%s%d" % (n, number)) for n in ("image", "cut", "mnt"))
    with open(image, "wb") as f:
        f.truncate(48 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
    os.mkdir(point)
    mount(image, point)
    acknowledged, over = [], threading.Event()
    d = Daemon(state=point)
    try:
        d.start()

        def submit(n):
            api, i = Api(d.socket), 0
            while not over.is_set():
                try:
                    status, answer = api.call("POST", "/v1/jobs", {"command": ["true"], "name": "c%d-%d" % (n, i)})
                except Unreachable:
                    return
                assert status == 201, answer
                acknowledged.append((answer["id"], answer["name"]))
                i += 1
        clients = [threading.Thread(target=submit, args=(n,)) for n in range(3)]
        for c in clients:
            c.start()
        time.sleep(random.uniform(0.3, 1.2))
        os.kill(d.process.pid, signal.SIGSTOP)
        known = list(acknowledged)
        shutil.copyfile(image, cut)
        over.set()
        d.process.kill()
        d.ended()
        for c in clients:
            c.join()
    finally:
        over.set()
        d.close()
        unmount(point)
    mount(cut, point)
    after = Daemon(state=point)
    try:
        after.start()
        there = {(j["id"], j["name"]) for j in after.api().pages("/v1/jobs?all=true&state=active,finished", "jobs")}
        lost = set(known) - there
        assert not lost, "acknowledged jobs are lost: %s" % sorted(lost)[:10]

        def settled():
            runs = after.api().get("/v1/status")["runs"]
            return not any(runs.get(s) for s in ("queued", "claimed", "running"))
        wait_until("all runs have ended", 60, settled, pause=0.1)
        assert after.stop() == 0
        after.assert_intact()
    finally:
        after.close()
        unmount(point)
    os.unlink(image)
    os.unlink(cut)
    return len(known)


@case
def acknowledged_jobs_survive_a_power_failure():
    need_root()
    need_program("mkfs.ext4")
    work = tempfile.mkdtemp(prefix="jobsched-cut.")
    try:
        total = sum(cut_power(work, n) for n in range(CUTS))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    assert total > 0
    return "%d cuts, %d jobs acknowledged, none lost" % (CUTS, total)


main()
