# SPDX-License-Identifier: Apache-2.0
# Live crontabs: tables become jobs, follow their files, run as cron runs them, and cannot be used to become root.
import contextlib
import os
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import CASES, case, main, wait_until
from pg import Server
from system import USERS, System, mount, write
from warrants import NO_WARRANT, Spawner, order, record

CASES.clear()  # those of warrants.py

SPOOL = "/var/lib/tables/crontabs"
CRON_D = "/var/lib/tables/cron.d"
SYSTEM = "/var/lib/tables/etc/crontab"
ANACRON = "/var/lib/tables/etc/anacrontab"
CONF = "crontab-file = %s\ncrontab-dir = %s\ncrontab-spool = %s\nanacrontab-file = %s\n" % (SYSTEM, CRON_D, SPOOL, ANACRON)


class Tables(System):
    """A system whose crontabs are in scratch directories."""

    def __init__(self, mode="on", spawner_conf=""):
        super().__init__(spawner_conf=CONF + spawner_conf, engine_conf="crontabs = %s\n" % mode)
        subprocess.run(["rm", "-rf", "/var/lib/tables"], check=True)
        for place in (CRON_D, os.path.dirname(SYSTEM), SPOOL):
            os.makedirs(place, mode=0o755)
        os.chmod(SPOOL, 0o1730)

    def table(self, path, text, owner=None, mode=None):
        """Writes a table as an editor does: a new file that replaces the old one."""
        user = os.path.dirname(path) == SPOOL
        new = os.path.join(os.path.dirname(path), ".new")
        write(new, text, mode if mode is not None else 0o600 if user else 0o644)
        owner = owner if owner is not None else os.path.basename(path) if user else "root"
        os.chown(new, self.uid(owner), -1)
        os.rename(new, path)

    def spool(self, user):
        return os.path.join(SPOOL, user)

    def jobs(self, user="root"):
        """The jobs of crontabs by file and line."""
        found = self.api(user).pages("/v1/jobs", "jobs")
        return {j["origin"]: j for j in found if j.get("origin")}

    def wait_jobs(self, condition, seconds=20):
        def there():
            jobs = self.jobs()
            return condition(jobs) and (jobs,)
        return wait_until("the jobs follow the tables", seconds, there)[0]

    def status(self):
        return self.api("root").get("/v1/crontabs")

    def run_line(self, user, job, *words):
        self.jobctl(user, "run", str(job["id"]), "--wait", *words, check=False)
        run = self.wait_final(user, job["id"])
        return run, self.output(user, run["id"])


@case
def lines_become_jobs_and_follow_the_file():
    with Tables() as s:
        s.table(SYSTEM, "MAILTO=\"\"\n17 * * * * root echo hourly\n25 6 * * 1-5 alice echo weekday\n")
        s.table(s.spool("bob"), "MAILTO=\"\"\n*/5 * * * * echo five\n@daily echo day\n")
        s.start()
        jobs = s.wait_jobs(lambda j: len(j) == 4)
        assert set(jobs) == {SYSTEM + ":2", SYSTEM + ":3", s.spool("bob") + ":2", s.spool("bob") + ":3"}, jobs.keys()
        assert {k: j["owner"] for k, j in jobs.items()}[SYSTEM + ":3"] == "alice"
        five = jobs[s.spool("bob") + ":2"]
        # a line above moves the others; their jobs and histories stay
        s.run_line("bob", five)
        s.table(s.spool("bob"), "# a comment\nMAILTO=\"\"\n7 7 * * * echo new\n*/5 * * * * echo five\n")
        after = s.wait_jobs(lambda j: s.spool("bob") + ":4" in j and len(j) == 4)
        assert after[s.spool("bob") + ":4"]["id"] == five["id"], after
        assert len(s.runs("bob", five["id"])) >= 1
        os.unlink(s.spool("bob"))
        s.wait_jobs(lambda j: len(j) == 2)


def fake_sendmail():
    """A mail program that keeps what it gets, in a private copy of /usr/sbin."""
    if not os.path.exists("/var/lib/mails"):
        os.makedirs("/var/lib/room/upper")
        os.makedirs("/var/lib/room/work")
        mount("tmpfs", "/var/lib/room")
        os.makedirs("/var/lib/room/upper")
        os.makedirs("/var/lib/room/work")
        mount("overlay", "/usr/sbin", "lowerdir=/usr/sbin,upperdir=/var/lib/room/upper,workdir=/var/lib/room/work")
        os.makedirs("/var/lib/mails")
    os.chmod("/var/lib/mails", 0o1777)
    write("/usr/sbin/sendmail", "#!/bin/sh\nf=$(mktemp /var/lib/mails/XXXXXX)\n"
          "{ echo \"ARGS $*\"; echo \"USER $(id -un)\"; cat; } >$f\nmv $f $f.mail\n", 0o755)


def mails():
    found = []
    for name in sorted(os.listdir("/var/lib/mails")):
        if name.endswith(".mail"):
            with open("/var/lib/mails/" + name) as f:
                found.append(f.read())
    return found


@case
def a_line_runs_as_cron_runs_it_and_its_output_is_mailed():
    with Tables() as s:
        fake_sendmail()
        s.table(s.spool("alice"), "MAILTO=ops@example.org\nPATH=/bin:/usr/bin\nX=\"a b\"\n"
                "0 5 * * * env | sort; pwd; umask; cat; echo \\% done%first%second\n5 5 * * * true\n")
        s.table(SYSTEM, "SHELL=/bin/sh\n7 5 * * * root id -un; echo $HOME; tty\n")
        s.start()
        jobs = s.wait_jobs(lambda j: len(j) == 3)
        run, said = s.run_line("alice", jobs[s.spool("alice") + ":4"])
        assert run["state"] == "succeeded", run
        lines = [line for line in said.splitlines() if not line.startswith(("_=", "PWD=", "SHLVL=", "OLDPWD="))]
        assert lines == ["HOME=" + s.home("alice"), "LOGNAME=alice", "MAILTO=ops@example.org", "PATH=/bin:/usr/bin", "SHELL=/bin/sh",
                         "X=a b", s.home("alice"), "0022", "first", "second", "% done"], lines
        s.run_line("alice", jobs[s.spool("alice") + ":5"])
        run, said = s.run_line("root", jobs[SYSTEM + ":2"])
        assert run["state"] == "failed" and said.startswith("root\n"), (run, said)
        sent = wait_until("two mails are sent", 20, lambda: len(mails()) == 2 and mails())
        hers, roots = sorted(sent, key=lambda m: "USER root" in m)
        assert "ARGS -FCronDaemon -i -B8BITMIME -oem ops@example.org\nUSER alice\nFrom: root (Cron Daemon)\nTo: ops@example.org\n" \
            in hers, hers
        assert "\nSubject: Cron <alice@" in hers and "> env | sort; pwd; umask; cat; echo % done\n" in hers, hers
        assert "\nX-Cron-Env: <X=a b>\n" in hers and hers.endswith("\nfirst\nsecond\n% done\n"), hers
        assert "USER root\n" in roots and "To: root\n" in roots and "\n\nroot\n" in roots, roots


@case
def a_process_that_a_line_leaves_behind_continues():
    with Tables() as s:
        s.table(s.spool("bob"), "MAILTO=\"\"\n0 5 * * * setsid sh -c 'sleep 2; echo late > late' </dev/null >/dev/null 2>&1 &\n")
        late = s.home("bob") + "/late"
        s.start()
        job = s.wait_jobs(lambda j: len(j) == 1)[s.spool("bob") + ":2"]
        run, _ = s.run_line("bob", job)
        assert run["state"] == "succeeded" and not os.path.exists(late), run
        wait_until("the process that was left has written its file", 20, lambda: os.path.exists(late))


@case
def the_job_of_a_line_cannot_be_changed_otherwise():
    with Tables() as s:
        s.table(s.spool("alice"), "0 5 * * * true\n")
        s.start()
        job = s.wait_jobs(lambda j: len(j) == 1)[s.spool("alice") + ":1"]
        for words in (["set", str(job["id"]), "priority=3"], ["rm", "--yes", str(job["id"])], ["cancel", str(job["id"])]):
            result = s.jobctl("alice", *words, check=False)
            assert result.returncode != 0 and "comes from %s:1" % s.spool("alice") in result.stderr, (words, result)
        result = s.api("alice").call("POST", "/v1/jobs", {"command": ["true"], "origin": "/etc/crontab:1"})
        assert result[0] == 400 and "origin" in str(result), result
        s.jobctl("alice", "pause", str(job["id"]))
        assert s.jobs()[s.spool("alice") + ":1"]["state"] == "paused"


@case
def hostile_tables_are_refused_by_their_descriptor():
    with Tables() as s:
        good = "0 5 * * * root true\n"
        s.table(CRON_D + "/good", good)
        s.table(CRON_D + "/name.with.dots", good)
        s.table(CRON_D + "/group-writable", good, mode=0o664)
        s.table(CRON_D + "/of-alice", good, owner="alice")
        s.table("/var/lib/tables/secret", good)
        os.symlink("/var/lib/tables/secret", CRON_D + "/link")
        os.link("/var/lib/tables/secret", CRON_D + "/hard")
        os.mkfifo(CRON_D + "/fifo")
        s.table(CRON_D + "/huge", "# x\n" * 300000 + good)
        s.table(s.spool("bob"), "0 5 * * * true\n", owner="alice")
        s.table(s.spool("carol"), "0 5 * * * true\n", mode=0o644)
        s.table(s.spool("root"), "0 5 * * * id\n", owner="alice")
        s.table(s.spool("nosuchuser"), "0 5 * * * true\n", owner="alice")
        s.start()
        s.wait_jobs(lambda j: set(j) == {CRON_D + "/good:1"})
        said = {t["path"]: t["problem"] for t in wait_until("the tables are read", 20, lambda: s.status()["tables"])}
        expected = {"group-writable": "can write it", "of-alice": "belong to root", "link": "symbolic link", "hard": "hard link",
                    "fifo": "regular file", "huge": "larger than"}
        for name, why in expected.items():
            assert why in said[CRON_D + "/" + name], (name, said)
        assert said[CRON_D + "/good"] is None and CRON_D + "/name.with.dots" not in said, said
        for name, why in {"bob": "does not belong to 'bob'", "carol": "0600", "root": "does not belong to 'root'",
                          "nosuchuser": "no user"}.items():
            assert why in said[s.spool(name)], (name, said)
        # a directory that others can write is not read
        os.chmod(CRON_D, 0o777)
        s.table(CRON_D + "/more", good)
        s.wait_jobs(lambda j: not j)


@case
def a_broken_line_makes_cron_ignore_the_table_and_the_status_says_so():
    with Tables() as s:
        s.table(SYSTEM, "0 5 * * * root true\n61 5 * * * root false\n")
        s.start()
        table = wait_until("the table is read", 20, lambda: s.status()["tables"])[0]
        assert table["jobs"] == 0 and "line 2" in table["problem"] and "whole table" in table["problem"], table
        s.table(SYSTEM, "0 5 * * * root true\n31 5 * * * root false\n")
        s.wait_jobs(lambda j: len(j) == 2)


@case
def another_cron_daemon_holds_the_jobs_until_it_ends():
    with Tables() as s:
        os.makedirs("/var/lib/tables/bin")
        write("/var/lib/tables/bin/hold.sh", "")
        subprocess.run(["cp", "/bin/sleep", "/var/lib/tables/bin/cron"], check=True)
        # of another user: not a cron daemon
        other = subprocess.Popen(["/var/lib/tables/bin/cron", "100"], user=USERS["bob"])
        s.table(SYSTEM, "* * * * * root true\n")
        s.start()
        s.wait_jobs(lambda j: len(j) == 1)
        assert not s.status()["held"], s.status()
        cron = subprocess.Popen(["/var/lib/tables/bin/cron", "100"])
        write("/run/crond.pid", "%d\n" % cron.pid)
        held = wait_until("the cron daemon is noticed", 20, lambda: s.status()["held"] and s.status())
        assert "cron (pid %d)" % cron.pid in held["cron"], held
        said = s.jobctl("root", "cron", "status").stdout
        assert "held" in said and "jobctl cron takeover" in said, said
        cron.kill()
        cron.wait()
        wait_until("its end is noticed", 20, lambda: not s.status()["held"])
        other.kill()
        other.wait()
        os.unlink("/run/crond.pid")


def watches(pid):
    """The inotify watches of a process, as the kernel describes them."""
    for fd in os.listdir("/proc/%d/fdinfo" % pid):
        with open("/proc/%d/fdinfo/%s" % (pid, fd)) as f:
            yield "".join(line for line in f if line.startswith("inotify"))


@case
def the_removal_of_crons_package_releases_the_jobs():
    """It leaves the link that enables the unit; only the file of the unit is removed."""
    with Tables() as s:
        units, wants = "/usr/lib/systemd/system", "/etc/systemd/system/multi-user.target.wants"
        for place in ("/run/systemd/system", wants):
            os.makedirs(place, exist_ok=True)
        mount("tmpfs", units)
        write(units + "/cron.service", "")
        os.symlink(units + "/cron.service", wants + "/cron.service")
        try:
            s.table(SYSTEM, "* * * * * root true\n")
            s.start()
            held = wait_until("the enabled unit is noticed", 20, lambda: s.status()["held"] and s.status())
            assert "cron.service is enabled" in held["cron"], held
            # the tables are read every minute, too; so the watch is looked for
            st = os.stat(units)
            watch = "ino:%x sdev:%x " % (st.st_ino, os.major(st.st_dev) << 20 | os.minor(st.st_dev))
            assert any(watch in text for text in watches(s.spawner.pid)), "the directory is not watched"
            os.unlink(units + "/cron.service")
            wait_until("its removal is noticed", 20, lambda: not s.status()["held"])
        finally:
            os.unlink(wants + "/cron.service")
            subprocess.run(["umount", "-l", units], check=True)


@case
def a_compromised_daemon_gets_no_root_command_that_is_in_no_table():
    with Tables() as s:
        s.table(SYSTEM, "MAILTO=\"\"\n0 5 * * * root echo from the table\n")
        s.start()
        job = s.wait_jobs(lambda j: len(j) == 1)[SYSTEM + ":2"]
        run, said = s.run_line("root", job)
        assert run["state"] == "succeeded" and said == "from the table\n", (run, said)
        s.engine.kill()
        s.engine.wait()
        with Spawner(s, USERS["jobsched"]) as daemon:
            daemon.hello()
            warrant, identity = bytes.fromhex(job["warrant"][32:]), bytes.fromhex(job["warrant"][:32])

            def line(command, name=job["name"], job=identity, more=b""):
                text = record(1, struct.pack("<q", 0)) + record(2, b"root")
                text += b"".join(record(3, w) for w in (b"/bin/sh", b"-c", command)) + record(5, b"MAILTO=")
                text += record(8, struct.pack("<q", 0o22)) + record(11, b"compat")
                return text + more + record(43, name.encode()) + record(44, job) + record(45, struct.pack("<q", 1))
            assert daemon.start(101, line(b"echo from the table"), warrant) == ("ended", 0)
            for number, text in enumerate((line(b"touch /var/lib/owned"), line(b"echo from the table", name="other-12345678"),
                                           line(b"echo from the table", job=bytes(16)),
                                           line(b"echo from the table")[:-14],  # not as cron runs it
                                           order(0, "root", "/bin/sh", "-c", "touch /var/lib/owned"))):
                assert daemon.start(200 + number, text, warrant)[0] == NO_WARRANT, number
                assert daemon.start(300 + number, text)[0] == NO_WARRANT, number
        assert not os.path.exists("/var/lib/owned")


FAKE_SYSTEMCTL = """#!/bin/sh
echo "$*" >>/var/lib/tables/systemctl
case $1 in
show) case $4 in
	cron.service) [ -e /var/lib/tables/masked ] && echo masked || echo loaded ;;
	*) echo not-found ;;
	esac ;;
mask) touch /var/lib/tables/masked; ln -sf /dev/null /etc/systemd/system/cron.service ;;
unmask) rm -f /var/lib/tables/masked /etc/systemd/system/cron.service ;;
stop) kill $(cat /run/crond.pid) 2>/dev/null || true ;;
start) /var/lib/tables/bin/cron 100 </dev/null >/dev/null 2>&1 & echo $! >/run/crond.pid ;;
reload-or-restart) kill -HUP $(cat /var/lib/tables/daemon) ;;
esac
"""


@case
def a_takeover_stops_cron_and_can_be_undone():
    with Tables(mode="shadow") as s:
        write("/usr/local/bin/systemctl", FAKE_SYSTEMCTL, 0o755)
        os.makedirs("/run/systemd/system", exist_ok=True)
        os.makedirs("/etc/systemd/system/multi-user.target.wants", exist_ok=True)
        os.makedirs("/var/lib/tables/bin")
        subprocess.run(["cp", "/bin/sleep", "/var/lib/tables/bin/cron"], check=True)
        write("/var/lib/tables/cron.service", "")
        os.symlink("/var/lib/tables/cron.service", "/etc/systemd/system/multi-user.target.wants/cron.service")
        config = ["--config", s.conf_dir + "/jobschedd.conf"]
        try:
            subprocess.run(["/usr/local/bin/systemctl", "start"], check=True)
            s.table(SYSTEM, "0 5 * * * root true\n@reboot root touch /var/lib/booted\n")
            s.start()
            write("/var/lib/tables/daemon", str(s.engine.pid))
            wait_until("the cron daemon is noticed", 20, lambda: s.status()["cron"])
            said = s.jobctl("root", "cron", "takeover", "--dry-run", *config).stdout
            assert "would set crontabs = on" in said and "would mask and stop cron.service" in said, said
            assert s.status()["mode"] == "shadow" and not os.path.exists("/var/lib/tables/masked")
            refused = s.jobctl("alice", "cron", "takeover", check=False)
            assert refused.returncode == 4 and "only root" in refused.stderr, refused
            s.jobctl("root", "cron", "takeover", *config)
            after = s.status()
            assert after["mode"] == "on" and not after["held"] and after["cron"] is None, after
            assert os.path.exists("/var/lib/tables/masked") and not os.path.exists("/var/lib/booted")
            s.jobctl("root", "cron", "takeover", *config)  # again: nothing more to do
            with open(s.conf_dir + "/cron-takeover") as f:
                assert f.read() == "mode shadow\nunit cron.service\n"
            s.jobctl("root", "cron", "give-back", *config)
            back = wait_until("cron runs the tables", 20, lambda: s.status()["mode"] == "shadow" and s.status())
            assert "cron" in back["cron"] and not os.path.exists(s.conf_dir + "/cron-takeover"), back
            assert os.path.exists("/run/crond.reboot")
            again = s.jobctl("root", "cron", "give-back", *config, check=False)
            assert again.returncode == 6 and "no takeover" in again.stderr, again
        finally:
            subprocess.run(["/usr/local/bin/systemctl", "stop"], check=False)
            for path in ("/usr/local/bin/systemctl", "/etc/systemd/system/multi-user.target.wants/cron.service",
                         "/etc/systemd/system/cron.service", "/run/crond.pid", "/run/crond.reboot"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
            os.rmdir("/run/systemd/system")


@case
def shadow_mode_runs_nothing_and_is_compared_with_the_log_of_cron():
    with Tables(mode="shadow") as s:
        s.table(SYSTEM, "* * * * * root touch /var/lib/shadow\n0 5 1 1 * root echo rare\n")
        s.start()
        jobs = s.wait_jobs(lambda j: len(j) == 2)
        result = s.jobctl("root", "cron", "compare", "--log", "/dev/null", check=False)
        assert "0 starts are the same, 0 differ; 2 lines" in result.stdout, result
        # what cron is said to have done is compared from the next whole minute on; this one is not complete
        assert s.api("root").get("/v1/crontabs")["mode"] == "shadow"
        assert not os.path.exists("/var/lib/shadow") and jobs


@case
def anacrontab_becomes_jobs_of_root_that_make_up_for_missed_runs():
    with Tables() as s:
        s.table(ANACRON, "SHELL=/bin/sh\nMAILTO=\"\"\nSTART_HOURS_RANGE=3-22\n"
                         "1 5 cron.daily echo daily $SHELL\n@monthly 45 cron.monthly echo monthly\nbad line\n")
        s.start()
        jobs = s.wait_jobs(lambda j: len(j) == 2)
        daily, monthly = jobs[ANACRON + ":4"], jobs[ANACRON + ":5"]
        assert daily["owner"] == monthly["owner"] == "root" and daily["tags"]["anacron"] == "cron.daily", jobs
        assert daily["catchup"] == "latest" and daily["schedule"] == ["5 3 * * *"], daily
        assert "T03:45:00" in monthly["next_at"], monthly
        assert "line 6" in [t for t in s.status()["tables"] if t["path"] == ANACRON][0]["note"]
        run, output = s.run_line("root", daily)
        assert run["state"] == "succeeded" and output == "daily /bin/sh\n", (run, output)
        s.table(ANACRON, "START_HOURS_RANGE=3-22\n1 5 cron.daily echo changed\n")
        again = s.wait_jobs(lambda j: list(j) == [ANACRON + ":2"])[ANACRON + ":2"]
        assert again["schedule"] == daily["schedule"] and "echo changed" in again["command"], again

@case
def a_store_on_a_database_server_refuses_crontabs_with_the_reason():
    with Tables() as s:
        s.users["postgres"] = 4200
        s.write_users()
        with Server() as server:
            os.chmod(server.dir, 0o755)
            write(os.path.join(s.conf_dir, "jobschedd.conf"), "crontabs = on\nstore = %s\n" % server.url)
            s.table(SYSTEM, "17 * * * * root echo hourly\n")
            s.start()
            status = s.status()
            assert status["mode"] == "off" and "belongs to one of them" in status["problem"], status
            said = s.jobctl("root", "doctor", "crontabs", check=False)
            assert said.returncode == 1 and "'crontabs = on' has no effect: the store is shared" in said.stdout, said
            said = s.jobctl("root", "cron", "takeover", "--dry-run", check=False)
            assert said.returncode != 0 and "belongs to one of them" in said.stderr, said
            assert s.jobs() == {}
            s.close()


if __name__ == "__main__":
    main()
