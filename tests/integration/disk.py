# SPDX-License-Identifier: Apache-2.0
# Full, failing and read-only disks, and files that are not a valid store.
import contextlib
import hashlib
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Api, Daemon, Skip, Unreachable, case, main, need_program, need_root, wait_until


@contextlib.contextmanager
def mounted(*options):
    """A temporary file system, mounted for the test."""
    need_root()
    point = tempfile.mkdtemp(prefix="jobsched-mnt.")
    done = subprocess.run(["mount", *options, point], capture_output=True, text=True)
    if done.returncode:
        os.rmdir(point)
        raise Skip("cannot mount: " + done.stderr.strip())
    try:
        yield point
    finally:
        for _ in range(50):  # a process may still be ending
            if subprocess.run(["umount", point], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", "-l", point], check=True)
        os.rmdir(point)


@contextlib.contextmanager
def ext4(*options):
    """A temporary disk that can be broken and stopped: its mount point and its image."""
    need_root()
    need_program("mkfs.ext4")
    with tempfile.TemporaryDirectory(prefix="jobsched-img.") as work:
        image = os.path.join(work, "image")
        with open(image, "wb") as f:
            f.truncate(64 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        with mounted("-o", ",".join(("loop", *options)), image) as point:
            yield point, image


@contextlib.contextmanager
def frozen(point):
    """Freezes the file system: writes and syncs wait until it is thawed."""
    if subprocess.run(["fsfreeze", "-f", point], capture_output=True).returncode:
        raise Skip("cannot freeze a file system")
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "-u", point], check=True)


def fill(path):
    """Uses all free space."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while True:
            os.write(fd, bytes(4096))
    os.close(fd)


@case
def on_a_full_disk_submissions_are_refused_and_nothing_acknowledged_is_lost():
    with mounted("-t", "tmpfs", "-o", "size=40m", "none") as point, Daemon(state=point) as d:
        d.start()
        go = os.path.join(d.dir, "go")
        patient = d.add(command=["sh", "-c", 'while [ ! -e "$1" ]; do sleep 0.1; done; exit 7', "sh", go])["id"]
        d.wait_running(patient)
        taken, filler, refused = [], os.path.join(point, "filler"), None
        fill(filler)
        os.truncate(filler, os.path.getsize(filler) - (1 << 20))
        spec = {"command": ["true"], "schedule": ["2099-01-01T00:00:00Z"], "env": {"PAD": "x" * 30000}}
        for _ in range(2000):
            status, answer = d.api().call("POST", "/v1/jobs", spec)
            if status != 201:
                refused = status, answer
                break
            taken.append(answer["id"])
        assert taken and refused and refused[0] == 507, (len(taken), refused)
        said = d.jobctl("add", "--env", "PAD=" + "x" * 30000, "--", "true", check=False)
        assert said.returncode != 0 and "space" in said.stderr.lower(), said
        # reads work, and the running job ends while nothing can be written
        assert d.api().get("/v1/jobs/%d" % patient)["id"] == patient
        open(go, "w").close()
        time.sleep(1)
        os.unlink(filler)
        run = d.wait_final(patient, 60)
        assert (run["state"], run["exit_code"]) == ("failed", 7), run
        d.add(command=["true"])
        assert d.stop() == 0
        d.assert_intact()
        store = d.database()
        kept = {row[0] for row in store.execute("SELECT id FROM jobs")}
        store.close()
        assert set(taken) <= kept, "acknowledged and gone: %s" % (set(taken) - kept)
        return "%d jobs were taken before the disk was full" % len(taken)


@case
def output_lost_on_a_full_disk_is_reported_with_the_reason():
    with mounted("-t", "tmpfs", "-o", "size=1m", "none") as point, Daemon() as d:
        plain = d.command()
        d.command = lambda: plain + ["--output-dir", os.path.join(point, "output")]
        d.start()
        job = d.add(name="loud", command=["sh", "-c", "yes | head -c 4M"])["id"]
        assert d.wait_final(job)["state"] == "succeeded"
        said = d.jobctl("log", "loud").stderr
        assert "were not stored: its output could not be written: No space left on device" in said, said


@case
def on_a_full_disk_status_and_why_report_that_nothing_starts():
    with mounted("-t", "tmpfs", "-o", "size=40m", "none") as point, Daemon(state=point) as d:
        d.start()
        d.jobctl("add", "-n", "tick", "--every", "1s", "--overlap", "allow", "--", "true")
        filler = os.path.join(point, "filler")

        def stuck():
            fill(filler)  # also the space that was freed meanwhile
            said = d.jobctl("status", check=False)
            return said.returncode == 1 and "no run has been started since" in said.stdout and said
        said = wait_until("nothing can be started", 60, stuck)
        assert "no space left for the store" in said.stdout, said
        wait_until("why says so", 60, lambda: "no space left for the store" in d.jobctl("why", "tick").stdout)
        os.unlink(filler)
        wait_until("the status is good again", 60, lambda: d.jobctl("status", check=False).returncode == 0)


@case
def without_space_for_the_reserve_status_reports_that_submissions_are_refused():
    with mounted("-t", "tmpfs", "-o", "size=6m", "none") as point, Daemon(state=point) as d:
        d.start()
        assert d.api().call("POST", "/v1/jobs", {"command": ["true"]})[0] == 507
        said = d.jobctl("status", check=False)
        assert said.returncode == 1 and "new jobs are refused" in said.stdout, said
        assert d.api().get("/v1/status")["store"]["full"] is True
    with Daemon() as d:
        d.start()
        assert d.api().get("/v1/status")["store"]["full"] is False


def injected(d, what):
    """Makes some system calls of the running daemon fail."""
    need_program("strace")
    report = os.path.join(d.dir, "strace")
    tracer = subprocess.Popen(["strace", "-f", "-p", str(d.process.pid), "-o", report, "-e", "trace=" + what.split(":")[0],
                               "-e", "inject=" + what], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)
    line = tracer.stdout.readline()
    if "attached" not in line:
        tracer.wait()
        raise Skip("strace may not attach: " + line.strip())
    return tracer


@case
def an_error_of_fsync_ends_the_daemon_with_75_and_the_next_one_recovers():
    no_leak_check = {"ASAN_OPTIONS": "detect_leaks=0"}  # the leak check does not work under ptrace
    for what in ("fdatasync,fsync:error=EIO", "fdatasync,fsync:error=EIO:when=2", "pwrite64:error=EIO"):
        with Daemon() as d:
            d.start(env=no_leak_check)
            first = d.add(command=["true"], schedule=["2099-01-01T00:00:00Z"], key="first")["id"]
            tracer = injected(d, what)
            answers = []
            for n in range(5):
                try:
                    answers.append(d.api().call("POST", "/v1/jobs", {"command": ["true"], "key": "k%d" % n}))
                except Unreachable:
                    break
            code = d.ended()
            tracer.wait(30)
            assert code == 75, (what, code, answers)
            taken = {a["id"] for status, a in answers if status == 201}
            d.api().close()
            d.start()
            there = {j["id"] for j in d.api().get("/v1/jobs?all=true&state=active,finished")["jobs"]}
            assert taken | {first} <= there, (what, taken, there)
            # the key shows whether the unanswered submission was stored
            again = d.api().call("POST", "/v1/jobs", {"command": ["true"], "key": "k%d" % len(taken)})
            assert again[0] in (200, 201), again
            assert d.stop() == 0
            d.assert_intact()


@case
def a_file_system_that_becomes_read_only_ends_the_daemon_with_75():
    with ext4("errors=remount-ro") as (point, image):
        with Daemon(state=point) as d:
            device = os.path.basename(subprocess.check_output(["findmnt", "-no", "SOURCE", point], text=True).strip())
            trigger = "/sys/fs/ext4/%s/trigger_fs_error" % device
            if not os.path.exists(trigger):
                raise Skip("the kernel has no " + trigger)
            d.start()
            job = d.add(command=["true"], schedule=["2099-01-01T00:00:00Z"])["id"]
            with open(trigger, "w") as f:
                f.write("by a test\n")
            with contextlib.suppress(Unreachable):
                status, answer = d.api().call("POST", "/v1/jobs", {"command": ["true"]})
                assert status >= 500, (status, answer)
            assert d.ended() == 75, d.said()
            code, said = d.run()
            assert code in (75, 78) and "jobs.db" in said or "read-only" in said.lower(), (code, said)
            for pid, words in d.processes().items():
                if "jobsched-spawner" in words:
                    with contextlib.suppress(ProcessLookupError):  # a launcher ends with its spawner
                        os.kill(pid, 15)
            wait_until("it can be unmounted", 20,
                       lambda: subprocess.run(["umount", point], capture_output=True).returncode == 0)
            subprocess.run(["e2fsck", "-p", "-f", image], capture_output=True)
            subprocess.run(["mount", "-o", "loop", image, point], check=True)
            d.start()
            assert d.api().get("/v1/jobs/%d" % job)["id"] == job
            assert d.stop() == 0
            for pid in d.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)


def stall_shortly(d, point):
    """A submission during a stall of 2 s succeeds without a report. Returns the ids of its jobs.

    The daemon reports a stall after 3 s. A busy machine can stretch the stall beyond that; then the trial is repeated.
    """
    added = []
    for trial in range(10):
        answers, reported = [], d.said().count("is unavailable")
        asking = threading.Thread(target=lambda: answers.append(
            Api(d.socket).call("POST", "/v1/jobs", {"command": ["true"], "key": "short%d" % trial})))
        began = time.monotonic()
        with frozen(point):
            asking.start()
            time.sleep(2)
        stalled = time.monotonic() - began
        asking.join()
        added.append(d.api().post("/v1/jobs", {"command": ["true"], "key": "short%d" % trial})["id"])
        assert d.wait_final(added[-1])["state"] == "succeeded"
        if stalled < 2.8:
            assert answers[0][0] == 201, answers
            assert d.said().count("is unavailable") == reported, d.said()
            return added
    raise Skip("the machine is too busy for a stall of less than 3 s")


@case
def a_disk_that_stalls_is_waited_for_and_reported_after_a_while():
    with ext4() as (point, _), Daemon(state=point) as d:
        d.start()
        done, short = [], stall_shortly(d, point)
        job = d.add(command=["sh", "-c", "exit 7"], schedule=["now + 2s"])["id"]
        with frozen(point):
            asking = threading.Thread(target=lambda: done.append(Api(d.socket).call("POST", "/v1/jobs", {"command": ["true"], "key": "long"})))
            asking.start()
            wait_until("the stall is reported", 30, lambda: d.api().call("GET", "/v1/jobs")[0] == 503)
            status, answer = d.api().call("POST", "/v1/jobs", {"command": ["true"]})
            assert status == 503 and "no answer from its file system" in answer["error"]["message"], answer
            asking.join()
            assert done[0][0] == 504 and done[0][1]["error"]["code"] == "uncertain", done[0]
        run = d.wait_final(job)
        assert (run["state"], run["exit_code"], run["attempt"]) == ("failed", 7, 1), run
        assert "the store answers again" in d.said()
        # the operations with an unknown result were done once
        d.wait_final(d.add(command=["true"], key="long")["id"])
        assert len([r for r in d.runs() if r["job"] not in short]) == 2, d.runs()


def digest(directory):
    """The content of all files of a store, to detect changes."""
    found = {}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name in ("jobs.db", "jobs.db-wal"):
            with open(path, "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


def refuses(d):
    """The daemon exits with 78, names the file and changes nothing."""
    before = digest(d.state)
    code, said = d.run()
    assert code == 78, (code, said)
    assert d.db_path in said and "jobctl db restore" in said, said
    assert digest(d.state) == before, "it changed what it refused"
    return said


@case
def a_file_that_is_not_a_database_is_refused():
    with Daemon() as d:
        os.makedirs(d.state)
        with open(d.db_path, "w") as f:
            f.write("this is a letter, not a database\n" * 100)
        refuses(d)


@case
def a_database_of_another_program_is_refused():
    with Daemon() as d:
        os.makedirs(d.state)
        other = sqlite3.connect(d.db_path)
        other.executescript("CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup');")
        other.close()
        refuses(d)


@case
def a_store_of_a_newer_version_is_refused():
    with Daemon() as d:
        d.start()
        assert d.stop() == 0
        store = sqlite3.connect(d.db_path)
        store.execute("UPDATE meta SET value = '9999' WHERE key = 'schema'")
        store.commit()
        store.close()
        assert "newer" in refuses(d)


@case
def an_unreadable_store_is_refused():
    with Daemon() as d:
        d.start()
        assert d.stop() == 0
        if os.geteuid() == 0:
            # root can read any file, but not a directory
            os.rename(d.db_path, d.db_path + ".away")
            os.mkdir(d.db_path)
            code, said = d.run()
        else:
            os.chmod(d.db_path, 0)
            code, said = d.run()
        assert code == 78 and d.db_path in said, (code, said)


@case
def a_damaged_store_is_refused_or_gives_correct_answers():
    with Daemon() as d:
        d.start()
        names = ["job-%d" % n for n in range(60)]
        d.api().post("/v1/jobs/bulk", {"jobs": [
            {"name": n, "command": ["true"], "schedule": ["2099-01-01T00:00:00Z"], "env": {"PAD": "y" * 500}} for n in names]})
        assert d.stop() == 0
        with open(d.db_path, "rb") as f:
            sound = f.read()
        refused = 0
        for _ in range(12):
            damaged = bytearray(sound)
            for _ in range(random.choice((1, 8, 200))):
                damaged[random.randrange(len(damaged))] ^= 1 << random.randrange(8)
            for end in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(d.db_path + end)
            with open(d.db_path, "wb") as f:
                f.write(damaged)
            d.api().close()
            d.start(wait=False)
            try:
                d.wait_ready()
            except AssertionError:
                assert d.process.returncode == 78, (d.process.returncode, d.said()[-2000:])
                refused += 1
                continue
            unchecked = Api(d.socket, contract=None)  # columns without a checksum, such as times, can have any value
            try:
                status, answer = unchecked.call("GET", "/v1/jobs?limit=1000")
                assert status in (200, 500), (status, answer)
                wrong = [j for j in answer.get("jobs", ()) if j["command"] != ["true"]]
                assert not wrong, wrong
            except Unreachable:
                pass  # it found a damaged row in the middle of its response and aborted it
            finally:
                unchecked.close()
            d.process.terminate()
            assert d.ended() in (0, 75), d.said()[-2000:]
        return "%d of 12 refused" % refused


main()
