# SPDX-License-Identifier: Apache-2.0
# Retention of history, and archive, backup, check and restore of the store.
import glob
import gzip
import json
import os
import re
import sqlite3
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import JOBCTL, Daemon, case, main, wait_until
from system import USERS, System, libc

DAY = 86400 * 1000000


def age(d, days):
    """Makes all times in the store of a stopped daemon older."""
    db = sqlite3.connect(d.db_path)
    for table, columns in {"runs": ("slot", "slot_last", "due_at", "created_at", "started_at", "ended_at"),
                           "jobs": ("created_at", "updated_at"), "events": ("at",)}.items():
        for column in columns:
            db.execute(f"UPDATE {table} SET {column} = {column} - ? WHERE {column} > ?", (days * DAY, 100 * DAY))
    db.commit()
    db.close()


def outputs(d):
    return sorted(os.listdir(os.path.join(d.state, "output")))


@case
def old_history_is_archived_and_deleted_with_its_output():
    with Daemon() as d:
        archive = os.path.join(d.dir, "archive")
        d.write_config(f"archive = {archive}\n")
        d.start()
        old = d.jobctl("add", "-n", "old", "--wait", "--", "echo", "written long ago").stdout
        assert outputs(d), old
        d.stop()
        age(d, 40)
        d.start()
        young = d.add(name="young", script="echo now")["id"]
        d.wait_final(young)
        said = d.jobctl("db", "prune", "--yes").stdout
        assert "deleted 1 runs, 1 jobs" in said and "1 output files" in said, said
        lines = [json.loads(line) for name in glob.glob(archive + "/*.gz") for line in gzip.open(name)]
        assert [list(line) for line in lines] == [["run"], ["job"]], lines
        assert lines[0]["run"]["attempts"][0]["exit_code"] == 0, lines
        assert lines[1]["job"]["name"] == "old", lines
        assert d.api().call("GET", "/v1/jobs/old")[0] == 404
        assert d.api().get("/v1/jobs/young")["name"] == "young"
        wait_until("the old file is deleted", 10, lambda: len(outputs(d)) == 1)
        assert d.jobctl("db", "check").stdout == "the store is intact\n"
        # the event is stored after the response
        wait_until("the event", 10, lambda: any(e["what"] == "db.prune" for e in d.api().get("/v1/events")["events"]))


@case
def an_archive_that_cannot_be_written_keeps_the_history():
    with Daemon() as d:
        blocked = os.path.join(d.dir, "blocked")
        open(blocked, "w").close()
        d.write_config(f"archive = {blocked}/archive\n")
        d.start()
        d.jobctl("add", "-n", "old", "--wait", "--", "true")
        d.stop()
        age(d, 40)
        d.start()
        result = d.jobctl("db", "prune", "--yes", check=False)
        assert result.returncode != 0 and "archive" in result.stderr, result
        assert d.api().get("/v1/jobs/old")["name"] == "old"


@case
def the_oldest_output_above_the_budget_is_deleted():
    with Daemon("output-budget = 100000\n") as d:
        d.start()
        ids = []
        for i in range(4):
            ids.append(d.add(name=f"loud{i}", script="head -c 40000 /dev/zero | tr '\\0' x")["id"])
            d.wait_final(ids[-1])
        assert len(outputs(d)) == 4
        d.jobctl("db", "prune", "--yes")
        wait_until("two files are left", 10, lambda: len(outputs(d)) == 2)
        runs = {i: d.runs(i)[0]["id"] for i in ids}
        assert outputs(d) == sorted(f"{runs[i]}.1" for i in ids[2:]), outputs(d)
        attempt = d.api().get(f"/v1/runs/{runs[ids[0]]}")["attempts"][0]
        assert attempt["output_bytes"] == attempt["output_dropped"] == 40000, attempt


@case
def a_backup_taken_while_jobs_run_can_be_restored():
    with Daemon() as d:
        d.start()
        d.jobctl("add", "-n", "before", "--every", "1h", "--", "true")
        long = d.add(name="long", command=["sleep", "3"])["id"]
        d.wait_running(long)
        file = os.path.join(d.dir, "copy.db")
        d.jobctl("db", "backup", file)
        again = d.jobctl("db", "backup", file, check=False)
        assert again.returncode == 6, again
        d.jobctl("add", "-n", "after", "--every", "1h", "--", "true")
        busy = d.jobctl("--user", "db", "restore", "--yes", file, check=False)
        assert busy.returncode == 6 and d.socket in busy.stderr and "kill %d" % d.process.pid in busy.stderr, busy
        d.wait_final(long)
        d.stop()
        restored = d.jobctl("--user", "db", "restore", "--yes", file)
        assert "before-restore" in restored.stdout, restored
        assert not glob.glob(d.db_path + "*restore-new*"), glob.glob(d.db_path + "*")
        d.start()
        names = [j["name"] for j in d.api().get("/v1/jobs?all=true")["jobs"]]
        assert "before" in names and "after" not in names, names
        # the run was running when the backup was made and has ended since then: it is not run again
        run = d.runs(long)[0]
        assert (run["state"], run["reason"]) == ("lost", "restored"), run
        assert d.jobctl("db", "check").stdout == "the store is intact\n"


@case
def a_store_in_use_by_a_daemon_is_not_replaced():
    with Daemon() as d, Daemon(state=d.state_home) as other:
        d.start()
        file = os.path.join(d.dir, "copy.db")
        d.jobctl("db", "backup", file)
        other.command = lambda: [*Daemon.command(other), "--instance", "b"]
        other.socket = os.path.join(other.runtime, "jobsched-b", "jobsched.sock")
        other.start()
        d.stop()
        job = other.add(command=["true"])["id"]
        refused = d.jobctl("--user", "db", "restore", "--yes", file, check=False)
        assert refused.returncode == 6 and "kill %d" % other.process.pid in refused.stderr and other.socket in refused.stderr, refused
        assert not glob.glob(d.db_path + ".*"), "something was left"
        assert other.wait_final(job)["state"] == "succeeded"
        other.stop()
        d.jobctl("--user", "db", "restore", "--yes", file)
        other.start()
        assert not other.runs()


@case
def an_invalid_backup_is_refused_and_changes_nothing():
    with Daemon() as d:
        d.start()
        d.jobctl("add", "-n", "mine", "--every", "1h", "--", "true")
        d.stop()
        file = os.path.join(d.dir, "junk")
        with open(file, "w") as f:
            f.write("no store " * 1000)
        for name, code, words in ((file, 2, "choose a file that 'jobctl db backup' wrote"), (file + ".none", 3, "No such file")):
            result = d.jobctl("--user", "db", "restore", "--yes", name, check=False)
            assert result.returncode == code and words in result.stderr, result
            assert "jobctl db restore" not in result.stderr, result
        broken = os.path.join(d.dir, "broken")
        with open(d.db_path, "rb") as f, open(broken, "wb") as to:
            to.write(f.read(8192))
        result = d.jobctl("--user", "db", "restore", "--yes", broken, check=False)
        assert result.returncode == 2 and "is no backup of a store" in result.stderr and broken in result.stderr, result
        open(broken + "-wal", "w").write("log")
        result = d.jobctl("--user", "db", "restore", "--yes", broken, check=False)
        assert result.returncode == 2 and "not a complete backup" in result.stderr, result
        assert not glob.glob(d.db_path + ".*"), glob.glob(d.db_path + ".*")
        d.start()
        assert d.api().get("/v1/jobs/mine")["name"] == "mine"


@case
def a_copied_store_is_not_run_on_a_second_machine():
    with Daemon() as d:
        here, there = os.path.join(d.dir, "here"), os.path.join(d.dir, "there")
        for path in (here, there):
            with open(path, "w") as f:
                f.write(os.path.basename(path) * 8 + "\n")
        d.write_config(f"machine-id-file = {here}\n")
        d.start()
        d.stop()
        d.write_config(f"machine-id-file = {there}\n")
        code, said = d.run()
        assert code == 78 and "--takeover" in said, (code, said)
        taken = subprocess.Popen(d.command() + ["--takeover"], env=d.env, stderr=subprocess.DEVNULL)
        try:
            wait_until("it answers", 20, lambda: os.path.exists(d.socket))
        finally:
            taken.terminate()
            taken.wait(20)
        d.start()


@case
def a_destructive_verb_asks_or_requires_yes():
    with Daemon() as d:
        d.start()
        for words in (("db", "prune"), ("db", "restore", d.config)):
            result = d.jobctl(*words, check=False, stdin=subprocess.DEVNULL)
            assert result.returncode == 2 and "--yes" in result.stderr, result


@case
def prune_refuses_negative_and_huge_ages():
    with Daemon() as d:
        d.start()
        for value in (-1, -86400, 1e11, "-5d", "-1"):
            for name in ("older_than", "dead_older_than"):
                status, answer = d.api().call("POST", "/v1/db/prune", {name: value})
                assert status == 400 and answer["error"]["field"] == name, (name, value, status, answer)
        for words in (("--older-than", "-5d"), ("--older-than=-5d",), ("--keep-runs", "-1")):
            result = d.jobctl("db", "prune", "--yes", *words, check=False)
            assert result.returncode == 2, (words, result)


@case
def restore_and_backup_choose_the_same_store():
    with Daemon() as d:
        d.start()
        file = os.path.join(d.dir, "copy.db")
        said = d.jobctl("db", "backup", file)
        assert "jobctl --user db restore" in said.stderr, said
        d.stop()
        env = {k: v for k, v in d.env.items() if k != "JOBSCHED_SOCKET"}
        for more in ({}, {"JOBSCHED_SOCKET": d.socket}):
            result = subprocess.run([JOBCTL, "db", "restore", "--yes", file], env=dict(env, **more), capture_output=True, text=True)
            assert result.returncode == 0 and d.db_path in result.stdout, (more, result)
        result = subprocess.run([JOBCTL, "db", "restore", "--yes", file], env=dict(env, JOBSCHED_SOCKET=d.dir + "/x"),
                                capture_output=True, text=True)
        assert result.returncode == 2 and "--system" in result.stderr, result


@case
def the_backup_of_a_user_is_not_restored_as_the_systems_store():
    with System() as s:
        s.start()
        del s.env["JOBSCHED_SOCKET"]
        # the path of the system's socket in this build
        path = re.search(r"' or '([^']+)'", s.jobctl("alice", "list", check=False).stderr)
        if path:
            os.makedirs(os.path.dirname(os.path.dirname(path[1])), exist_ok=True)
            os.symlink(s.runtime, os.path.dirname(path[1]))
        assert "(system)" in s.jobctl("alice", "status").stdout
        home = {"HOME": s.home("alice")}
        own = subprocess.Popen([os.path.join(s.sbin, "jobschedd"), "--user"], env=dict(s.env, **home), user=s.uid("alice"),
                               group=s.uid("alice"), extra_groups=[], cwd="/", stderr=subprocess.DEVNULL)
        try:
            wait_until("alice's daemon answers", 60, lambda: s.jobctl("alice", "--user", "status", check=False).returncode == 0)
            copy = os.path.join(s.home("alice"), "copy.db")
            assert "--user db restore" in s.jobctl("alice", "db", "backup", copy).stderr
        finally:
            own.terminate()
            own.wait(60)
        # now the system's daemon is the only one that answers
        result = s.jobctl("alice", "db", "restore", "--yes", copy, check=False)
        assert result.returncode == 0 and "restored '%s/" % s.home("alice") in result.stdout, result
        result = subprocess.run([s.jobctl_path, "db", "restore", "--yes", copy], env=dict(s.env, **home), cwd="/",
                                capture_output=True, text=True)  # as with 'sudo -E'
        assert result.returncode == 2 and "there are two stores" in result.stderr, result
        result = s.jobctl("bob", "db", "restore", "--yes", "/etc/passwd", check=False)
        assert result.returncode == 4 and "only root can restore the system's store" in result.stderr, result


@case
def root_restores_as_the_owner_of_the_directory():
    with System() as s:
        s.start()
        s.run_as("root", [s.jobctl_path, "add", "-n", "kept", "--every", "1h", "--", "true"])
        backup = os.path.join(s.dir, "copy.db")
        assert s.jobctl("root", "db", "backup", backup).returncode == 0
        os.chmod(backup, 0o600)  # only root can read it, not the owner of the store
        s.engine.terminate()
        s.engine.wait(30)
        # the user of the daemon creates a link to a file of root
        secret = os.path.join(s.dir, "secret")
        open(secret, "w").close()
        os.chmod(secret, 0o600)
        store = os.path.join(s.state_dir, "jobs.db")
        for end in ("-shm", "-reserve"):
            if os.path.lexists(store + end):
                os.unlink(store + end)
            os.symlink(secret, store + end)
        watch = libc.inotify_init1(os.O_NONBLOCK)
        assert libc.inotify_add_watch(watch, secret.encode(), 0x20) >= 0  # IN_OPEN
        result = s.run_as("root", [os.path.join(s.sbin, "jobschedd"), "--config", s.conf_dir + "/jobschedd.conf", "--state-dir",
                                   s.state_dir, "--restore", backup])
        assert result.returncode == 0, result
        try:
            assert not os.read(watch, 4096), "root opened the file"
        except BlockingIOError:
            pass
        os.close(watch)
        assert os.stat(store).st_uid == USERS["jobsched"]
        for name in os.listdir(s.state_dir):
            path = os.path.join(s.state_dir, name)
            assert os.path.islink(path) or os.stat(path).st_uid == USERS["jobsched"], name
        os.unlink(store + "-reserve")
        s.start_engine()
        assert "kept" in s.jobctl("root", "list").stdout


if __name__ == "__main__":
    main()
