# SPDX-License-Identifier: Apache-2.0
# The commands crontab, at, atq, atrm and batch: several users, the root service behind crontab, and jobs of at.
import contextlib
import os
import re
import shutil
import socket
import stat
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cron_system import BIN, CronSystem
from harness import Skip, case, main, wait_until
from system import mount, write

TABLE = "# mine\n*/5 * * * * true\n"


@case
def users_install_list_and_remove_their_own_tables():
    with CronSystem() as s:
        s.start_tables()
        assert s.command("alice", "crontab", "-l", code=1).stderr == "no crontab for alice\n"
        got = s.command("alice", "crontab", "-", stdin=TABLE)
        assert got.stdout + got.stderr == ""
        assert s.command("alice", "crontab", "-l").stdout == TABLE
        path = os.path.join(s.spool, "alice")
        found = os.stat(path)
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o600, s.uid("alice"), 4200)
        with open(path) as f:
            lines = f.read().splitlines()
        assert lines[0].startswith("# DO NOT EDIT") and lines[1].startswith("# (- installed on ") and lines[3:] == TABLE.splitlines()
        assert s.command("bob", "crontab", "-l", code=1).stderr == "no crontab for bob\n"
        for words in (["-l"], ["-r"], ["-"], ["-e"]):
            got = s.command("bob", "crontab", "-u", "alice", *words, stdin=TABLE, code=1)
            assert got.stderr == "must be privileged to use -u\n" and got.stdout == ""
        assert s.command("root", "crontab", "-u", "alice", "-l").stdout == TABLE
        s.command("root", "crontab", "-u", "bob", "-", stdin=TABLE)
        assert os.stat(os.path.join(s.spool, "bob")).st_uid == s.uid("bob")
        s.command("alice", "crontab", "-r")
        assert s.command("alice", "crontab", "-r", code=1).stderr == "no crontab for alice\n"
        assert os.listdir(s.spool) == ["bob"], os.listdir(s.spool)
        assert "(alice) REPLACE (alice)" in s.said() and "(root) REPLACE (bob)" in s.said()


@case
def a_table_with_an_error_is_not_installed():
    with CronSystem() as s:
        s.start_tables()
        s.command("alice", "crontab", "-", stdin=TABLE)
        path = os.path.join(s.home("alice"), "table")
        for text, message in (("\n61 * * * * x\n", '"%s":1: bad minute\nerrors in crontab file, can\'t install.\n' % path),
                              ("@nightly\n", '"%s":1: bad time specifier\nerrors in crontab file, can\'t install.\n' % path),
                              ("@daily\r\n", '"%s":1: bad time specifier\nerrors in crontab file, can\'t install.\n' % path),
                              ("* * * * * a " + "b" * 998 + "\n",
                               '"%s":1: command too long\nerrors in crontab file, can\'t install.\n' % path),
                              ("mon-\n", '"%s":0: bad minute\nerrors in crontab file, can\'t install.\n' % path),
                              ("x", "new crontab file is missing newline before EOF, can't install.\n"),
                              ("* * * * * x", "new crontab file is missing newline before EOF, can't install.\n")):
            write(path, text)
            for option in ([], ["-n"]):
                assert s.command("alice", "crontab", *option, path, code=1).stderr == message
        write(path, "@daily x\n")
        assert s.command("alice", "crontab", "-n", path).stderr == "The syntax of the crontab file was successfully checked.\n"
        assert s.command("alice", "crontab", s.home("alice"), code=1).stderr == s.home("alice") + ": Not a regular file.\n"
        assert s.command("alice", "crontab", "/nonexistent", code=1).stderr == "/nonexistent: No such file or directory\n"
        got = s.command("alice", "crontab", "-", stdin="#" * (5 << 20) + "\n", code=1).stderr
        assert got.startswith("crontab: the table has more than "), got
        assert s.command("alice", "crontab", "-l").stdout == TABLE


@case
def an_edit_is_checked_and_installed():
    with CronSystem() as s:
        s.start_tables()
        home = s.home("alice")
        editor = os.path.join(home, "editor")
        write(editor, '#!/bin/sh\necho "$1" >>%s/edited\ncat %s/next >"$1"\n' % (home, home), 0o755)
        write(home + "/next", TABLE)
        write(home + "/edited", "")
        os.chown(home + "/edited", s.uid("alice"), -1)
        env = {"VISUAL": "", "EDITOR": editor, "TMPDIR": home}
        got = s.command("alice", "crontab", "-e", **env)
        assert got.stderr == "no crontab for alice - using an empty one\ncrontab: installing new crontab\n", got.stderr
        assert s.command("alice", "crontab", "-l").stdout == TABLE
        got = s.command("alice", "crontab", "-e", EDITOR="true", TMPDIR=home)
        assert got.stderr == "No modification made\n"
        got = s.command("alice", "crontab", "-e", VISUAL="false", EDITOR=editor, TMPDIR=home, code=1)
        assert got.stderr == 'crontab: "false" exited with status 1\n'
        write(home + "/next", "bad\n")
        got = s.command("alice", "crontab", "-e", stdin="y\nmaybe\nn\n", **env)
        left = re.search(r"crontab: edits left in (.*)\n", got.stderr)
        assert got.stdout == "Do you want to retry the same edit? (y/n) " * 3, got.stdout
        assert got.stderr.count(":1: bad minute\n") == 2 and "Enter Y or N\n" in got.stderr and left, got.stderr
        with open(left.group(1)) as f:
            assert f.read() == "bad\n"
        with open(home + "/edited") as f:
            assert len(f.read().splitlines()) == 3
        assert [n for n in os.listdir(home) if n.startswith("crontab.")] == [os.path.basename(os.path.dirname(left.group(1)))]
        assert s.command("alice", "crontab", "-l").stdout == TABLE


@case
def allow_and_deny_files_decide_who_has_a_table():
    with CronSystem() as s:
        s.start_tables()
        write(s.etc + "/cron.deny", "alice\n", 0o600)
        for words in (["-l"], ["-"], ["-e"], ["-r"], ["-n", "/etc/passwd"]):
            got = s.command("alice", "crontab", *words, stdin=TABLE, code=1)
            assert got.stderr == "You (alice) are not allowed to use this program (crontab)\nSee crontab(1) for more information\n"
        got = s.command("root", "crontab", "-u", "alice", "-", stdin=TABLE, code=1)
        assert got.stderr == "The user alice cannot use this program (crontab)\n"
        s.command("bob", "crontab", "-", stdin=TABLE)
        write(s.etc + "/cron.allow", "alice\n", 0o600)
        s.command("alice", "crontab", "-", stdin=TABLE)
        s.command("bob", "crontab", "-l", code=1)
        s.command("root", "crontab", "-", stdin=TABLE)
        assert sorted(os.listdir(s.spool)) == ["alice", "bob", "root"]


@case
def the_daemon_runs_an_installed_table_until_it_is_removed():
    with CronSystem(engine_conf="crontabs = on\n") as s:
        mount("tmpfs", "/var/spool", "mode=0755")
        s.spool = "/var/spool/cron/crontabs"
        os.makedirs(s.spool, mode=0o1730)
        s.start()
        s.start_tables()

        def schedules():
            return sorted(j["schedule"][0] for j in s.api("alice").pages("/v1/jobs?state=active", "jobs"))

        s.command("alice", "crontab", "-", stdin="7 3 * * * true\n")
        wait_until("the table is a job", 30, lambda: schedules() == ["7 3 * * *"])
        s.command("alice", "crontab", "-", stdin="8 3 * * * true\n")
        wait_until("the job has changed", 30, lambda: schedules() == ["8 3 * * *"])
        s.command("alice", "crontab", "-r")
        wait_until("the job is removed", 30, lambda: schedules() == [])


@case
def an_incomplete_request_leaves_the_table_as_it_was():
    with CronSystem() as s:
        s.start_tables()
        s.command("root", "crontab", "-u", "alice", "-", stdin=TABLE)
        for sent in (b"", b"crontab/1 replace 100\nalice\n-\n* * * * *", b"crontab/1 remove 0\nalice\n", b"\0" * 70000):
            with socket.socket(socket.AF_UNIX) as c:
                c.connect(s.tables)
                c.sendall(sent)
                c.shutdown(socket.SHUT_WR)
                assert c.recv(1000) == b"crontab/1 invalid 0\n", sent[:20]
        assert s.command("alice", "crontab", "-l").stdout == TABLE
        assert os.listdir(s.spool) == ["alice"]


@case
def requests_that_one_user_holds_open_do_not_delay_others():
    with CronSystem() as s:
        s.start_tables()
        s.command("bob", "crontab", "-", stdin=TABLE)
        held = []
        os.seteuid(s.uid("alice"))
        try:
            for _ in range(40):
                c = socket.socket(socket.AF_UNIX)
                c.settimeout(10)
                c.connect(s.tables)
                held.append(c)
        finally:
            os.seteuid(0)
        assert s.command("bob", "crontab", "-l").stdout == TABLE
        got = s.command("alice", "crontab", "-l", code=1).stderr
        assert got == "crontab: too many requests at a time; try again in a few seconds\n", got
        answers = [c.recv(100) for c in held[4:]]
        assert answers == [b"crontab/1 busy 0\n"] * 36, answers
        for c in held:
            c.close()
        wait_until("alice is served again", 30,
                   lambda: s.run_as("alice", [BIN + "/crontab", "-l"]).stderr == "no crontab for alice\n", pause=0.2)


@case
def the_service_needs_two_capabilities_only():
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    with CronSystem() as s:
        caps = "--bounding-set=-all,+chown,+dac_read_search"
        s.start_tables("setpriv", caps, "--inh-caps=-all", "--no-new-privs")
        s.command("alice", "crontab", "-", stdin=TABLE)
        s.command("alice", "crontab", "-", stdin=TABLE + "@daily x\n")
        assert s.command("alice", "crontab", "-l").stdout == TABLE + "@daily x\n"
        s.command("alice", "crontab", "-r")
        assert os.listdir(s.spool) == []


def number_of(result):
    return int(re.search(r"^job (\d+) at \w{3} \w{3} [ \d]\d \d\d:\d\d:\d\d \d{4}$", result.stderr, re.M).group(1))


@case
def an_at_job_runs_with_the_environment_of_its_submission():
    with CronSystem() as s:
        s.start()
        s.start_tables()
        script = 'printf "%s\\n" "$ODD|$TERM|$TZ|$(pwd)|$(umask)|$(nice)"; id -un; exit 3\n'
        odd = "a b'c\"d\n$e\\f é"
        old = os.umask(0o027)
        try:
            got = s.command("alice", "at", "-q", "e", "-M", "now", stdin=script, ODD=odd, TERM="x")
        finally:
            os.umask(old)
        assert got.stderr.startswith("warning: commands will be executed using /bin/sh\njob "), got.stderr
        run = s.wait_final("alice", number_of(got))
        assert s.output("alice", run["id"]) == odd + "|||/|0027|8\nalice\n", s.output("alice", run["id"])
        assert (run["state"], run["exit_code"]) == ("failed", 3), run
        assert s.command("alice", "atq").stdout == ""


@case
def at_jobs_are_listed_printed_and_removed_by_their_owner():
    with CronSystem() as s:
        s.start()
        s.start_tables()
        first = number_of(s.command("alice", "at", "noon", "31.12.2099", stdin="date\n", TZ="UTC"))
        second = number_of(s.command("bob", "at", "-q", "Z", "-t", "209912312359.30", stdin="id\n", TZ="UTC"))
        rows = {first: "%d\tThu Dec 31 12:00:00 2099 a alice\n" % first, second: "%d\tThu Dec 31 23:59:00 2099 Z bob\n" % second}
        assert s.command("alice", "atq", TZ="UTC").stdout == s.command("alice", "at", "-l", TZ="UTC").stdout == rows[first]
        assert s.command("bob", "atq", TZ="UTC").stdout == rows[second]
        assert s.command("root", "atq", TZ="UTC").stdout == rows[first] + rows[second]
        assert s.command("root", "atq", "-q", "Z", "-o", "%F", TZ="UTC").stdout == "%d\t2099-12-31 Z bob\n" % second
        text = s.command("alice", "at", "-c", str(first)).stdout
        assert text.startswith("#!/bin/sh\n# atrun uid=4001 gid=4001\n# mail alice 0\n") and text.endswith("}\ndate\n\n"), text
        for command in ("atrm", "at -r", "at -d", "at -c"):
            got = s.command("bob", *command.split(), str(first), code=1)
            assert got.stderr == "Cannot find jobid %d\n" % first and not got.stdout
        other = s.add("alice", command=["true"], schedule="manual")["id"]
        assert s.command("alice", "atrm", str(other), code=1).stderr == "Cannot find jobid %d\n" % other
        s.command("alice", "atrm", str(first))
        s.command("root", "at", "-d", str(second))
        assert s.command("root", "atq").stdout == ""
        assert s.api("alice").get("/v1/jobs/%d" % other)["state"] == "active"


@case
def a_batch_job_waits_for_a_low_load():
    with CronSystem() as s:
        s.start()
        s.start_tables()
        job = number_of(s.command("alice", "batch", stdin="true\n"))
        found = s.api("alice").get("/v1/jobs/%d" % job)
        assert found["when"] == ["load<1.5"] and found["nice"] == 2 and found["tags"]["at.queue"] == "b", found
        got = s.command("alice", "batch", "x", code=1)
        assert got.stdout == "batch accepts no parameters\n"


@case
def a_process_in_the_background_outlives_the_job():
    with CronSystem() as s:
        s.start()
        s.start_tables()
        job = number_of(s.command("alice", "at", "-M", "now",
                                  stdin="echo before; (sleep 300; echo after) & echo $! >%s/pid; exit 0\n" % s.home("alice")))
        run = s.wait_final("alice", job)
        assert run["state"] == "succeeded" and s.output("alice", run["id"]) == "before\n", run
        with open(s.home("alice") + "/pid") as f:
            pid = int(f.read())
        time.sleep(1)  # the processes of other jobs are killed within this time
        os.kill(pid, 0)
        os.kill(pid, 9)


@case
def root_needs_no_second_command_to_approve_an_at_job():
    with CronSystem() as s:
        s.start()
        job = number_of(s.command("root", "at", "now", stdin="id -u\n"))
        run = s.wait_final("root", job)
        assert s.output("root", run["id"]).startswith("0\n"), s.output("root", run["id"])


@case
def output_is_mailed_to_the_owner():
    with CronSystem() as s:
        room = os.path.join(s.dir, "room")
        os.makedirs(room)
        mount("tmpfs", room)
        for part in ("upper", "work"):
            os.makedirs(os.path.join(room, part))
        mount("overlay", "/usr/sbin", "lowerdir=/usr/sbin,upperdir=%s/upper,workdir=%s/work" % (room, room))
        box = s.home("alice") + "/mail"
        write("/usr/sbin/sendmail", "#!/bin/sh\n{ echo \"$(id -un) $*\"; cat; } >>%s\n" % box, 0o755)
        s.start()
        s.start_tables()

        def mailed(options, script):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(box)
            job = number_of(s.command("alice", "at", *options, "now", stdin=script))
            s.wait_final("alice", job)
            with contextlib.suppress(FileNotFoundError), open(box) as f:
                return job, f.read()
            return job, None

        head = "alice -i alice\nSubject: Output from your job %8d\nTo: alice\n\n"
        job, mail = mailed([], "echo out; echo err >&2\n")
        assert mail == head % job + "out\nerr\n", mail
        assert mailed([], "true\n")[1] is None
        job, mail = mailed(["-m"], "true\n")
        assert mail == head % job, mail
        assert mailed(["-M"], "echo out\n")[1] is None
        job, mail = mailed(["-u", "bob"], "echo out\n")
        assert mail == (head % job).replace("-i alice", "-i bob").replace("To: alice", "To: bob") + "out\n", mail


@case
def at_allow_and_at_deny_decide_who_may_use_at():
    with CronSystem() as s:
        s.start()
        s.start_tables()
        write(s.etc + "/at.deny", "alice\n", 0o600)
        for words in (["at", "now"], ["atq"], ["atrm", "1"], ["batch"]):
            got = s.command("alice", *words, stdin="true\n", code=1)
            name = "at" if words[0] == "batch" else words[0]
            assert got.stderr == "You do not have permission to use %s.\n" % name, got.stderr
        s.command("bob", "atq")
        write(s.etc + "/at.allow", "alice\n", 0o600)
        s.command("alice", "atq")
        s.command("bob", "atq", code=1)
        os.unlink(s.etc + "/at.allow")
        os.unlink(s.etc + "/at.deny")
        s.command("alice", "atq", code=1)
        s.command("root", "atq")


@case
def messages_name_the_service_that_does_not_run():
    with CronSystem() as s:
        got = s.command("alice", "crontab", "-l", code=1).stderr
        assert "systemctl start jobsched-crontab.socket" in got and got.startswith("crontab: "), got
        got = s.command("alice", "at", "now", code=1).stderr
        assert "systemctl start jobsched-crontab.socket" in got and got.startswith("at: "), got
        s.start_tables()
        got = s.command("alice", "atq", code=1).stderr
        assert "systemctl start jobschedd" in got and got.startswith("atq: "), got


main()
