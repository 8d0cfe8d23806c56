# SPDX-License-Identifier: Apache-2.0
# Runs in the container of boot.py, once per boot: installs the package, runs jobs as several users and prints TAP.
import hashlib
import http.client
import http.server
import json
import os
import pwd
import stat
import subprocess
import threading
import time
import traceback

PAYLOAD = "/payload"
BOOTS = []  # one function per boot, in order


def boot(f):
    BOOTS.append(f)
    return f


def say(text):
    with open(PAYLOAD + "/out", "a") as f:
        f.write(text + "\n")


def state():
    """The state that is kept across boots: the number of boots, the number of cases, and notes of the cases."""
    try:
        with open(PAYLOAD + "/state") as f:
            return json.load(f)
    except FileNotFoundError:
        return {"boots": 0, "cases": 0, "notes": {}}


def keep(s):
    with open(PAYLOAD + "/state.new", "w") as f:
        json.dump(s, f)
    os.rename(PAYLOAD + "/state.new", PAYLOAD + "/state")


def sh(*words, check=True, user=None, **more):
    if user:
        words = ("runuser", "-u", user, "--", *words)
    result = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, cwd="/", **more)
    if check and result.returncode:
        raise AssertionError("'%s' exits %d: %s%s" % (" ".join(words), result.returncode, result.stdout, result.stderr))
    return result


def jobctl(*words, user=None, check=True):
    return sh("jobctl", *words, user=user, check=check)


def ask(*words, user=None):
    return json.loads(jobctl("--json", *words, user=user).stdout)


def wait_until(what, seconds, condition, pause=0.1):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("timeout after %g s: %s" % (seconds, what))
        time.sleep(pause)


class Cases:
    def __init__(self, kept):
        self.kept = kept
        self.notes = kept["notes"]

    def case(self, name, f):
        self.kept["cases"] += 1
        try:
            f(self.notes)
            say("ok %d - %s" % (self.kept["cases"], name))
        except Exception:
            say("not ok %d - %s" % (self.kept["cases"], name))
            for line in traceback.format_exc().splitlines():
                say("# " + line)
            for line in sh("journalctl", "-q", "-b", "-n", "30", "--no-pager", "-u", "jobschedd", "-u", "jobsched-spawner", "-u", "jobsched-net",
                           check=False).stdout.splitlines():
                say("# journal: " + line)
        keep(self.kept)

    def all(self, functions):
        for f in functions:
            self.case(f.__name__.replace("_", " "), f)


def install(notes):
    said = sh("dpkg", "-i", PAYLOAD + "/jobsched-1.deb")
    for unit in ("jobsched-spawner", "jobsched-net", "jobschedd", "jobschedd.socket"):
        assert sh("systemctl", "is-enabled", unit, check=False).stdout.strip() == "enabled", unit
        assert sh("systemctl", "is-active", unit, check=False).stdout.strip() == "active", (unit, said.stdout, said.stderr)
    sh("systemctl", "enable", "--now", "jobschedd")
    sh("useradd", "-m", "-s", "/bin/sh", "-G", "users,games", "alice")
    sh("useradd", "-m", "bob")


def directories_have_the_right_owner_and_mode(notes):
    expected = {
        "/run/jobsched": ("root", 0o755),
        "/run/jobsched/jobsched.sock": ("root", 0o666),
        "/var/lib/jobsched": ("jobsched", 0o700),
        "/var/lib/jobsched-net": ("jobsched-net", 0o700),
        "/var/lib/jobsched-spawner": ("root", 0o2750),
        "/var/lib/jobsched-spawner/output": ("root", 0o2750),
        "/etc/jobsched": ("root", 0o755),
    }
    for path, (owner, mode) in expected.items():
        st = os.stat(path)
        assert (pwd.getpwuid(st.st_uid).pw_name, stat.S_IMODE(st.st_mode)) == (owner, mode), (path, st)
    st = os.stat("/run/jobsched/spawner.sock")
    assert st.st_uid == 0 and not st.st_mode & 0o007, st


def runs_of(job, user):
    return ask("runs", str(job), user=user)


def run_of(job, user):
    """The only run of a job."""
    runs = runs_of(job, user)
    assert len(runs) == 1, runs
    return runs[0]


def add(user, *words):
    return ask("add", *words, user=user)["id"]


def final(job, user, seconds=30):
    return wait_until("job %d of %s has ended" % (job, user), seconds,
                      lambda: [r for r in runs_of(job, user) if r["state"] not in ("queued", "claimed", "running")])[0]


def output(job, user):
    return jobctl("log", str(job), user=user).stdout


def a_job_runs_as_the_user_who_submitted_it(notes):
    job = add("alice", "--cwd", "/tmp", "--", "sh", "-c", "id -un; id -gn; id -Gn; pwd; umask; env")
    run = final(job, "alice")
    assert run["state"] == "succeeded", run
    lines = output(job, "alice").splitlines()
    assert lines[:2] == ["alice", "alice"] and sorted(lines[2].split()) == ["alice", "games", "users"], lines
    assert lines[3:5] == ["/tmp", "0022"], lines
    env = dict(line.split("=", 1) for line in lines[5:])
    assert env["HOME"] == pwd.getpwnam("alice").pw_dir and env["USER"] == env["LOGNAME"] == "alice" and env["SHELL"] == "/bin/sh", env
    assert env["JOBSCHED_JOB"] == str(job) and env["JOBSCHED_RUN"] == str(run["id"]), env
    assert not [name for name in env if name.startswith(("NOTIFY", "LISTEN", "SYSTEMD", "INVOCATION", "JOURNAL"))], env


def users_do_not_see_jobs_of_other_users(notes):
    job = add("alice", "-n", "private", "--manual", "--", "true")
    assert jobctl("show", str(job), user="bob", check=False).returncode != 0
    assert not [j for j in ask("list", user="bob") if j["id"] == job]


def a_job_of_root_runs_with_the_default_configuration(notes):
    job = add(None, "--", "id", "-u")
    run = final(job, None)
    assert run["state"] == "succeeded" and output(job, None) == "0\n", (run, jobctl("why", str(job), check=False).stdout)


def settings_of_the_unit_do_not_affect_jobs(notes):
    """A job does not inherit limits, OOM score or mount namespace from the spawner's unit."""
    job = add("alice", "--sandbox", "compat", "--", "sh", "-c", "ulimit -Sn; cat /proc/self/oom_score_adj; readlink /proc/self/ns/mnt")
    assert final(job, "alice")["state"] == "succeeded"
    files, score, mounts = output(job, "alice").split()
    assert (files, score) == ("1024", "200"), (files, score)
    assert mounts == os.readlink("/proc/1/ns/mnt"), mounts


def limits_are_enforced_or_refused_without_a_controller(notes):
    """A container has only the cgroup controllers that its host delegates, often none."""
    try:
        with open("/sys/fs/cgroup/system.slice/jobsched-spawner.service/cgroup.subtree_control") as f:
            have = f.read().split()
    except FileNotFoundError:
        have = []
    if "pids" in have:
        job = add("alice", "--pids", "8", "--timeout", "3s", "--grace", "0s", "--", "sh", "-c", "f() { f | f & }; f; sleep 100")
        assert final(job, "alice", 60)["state"] == "timed_out" and "fork" in output(job, "alice")
    else:
        assert jobctl("add", "--pids", "8", "--", "true", user="alice", check=False).returncode == 2
    if "memory" in have:
        job = add("alice", "--mem", "32M", "--", "sh", "-c", "x=$(head -c 100000000 /dev/zero | tr '\\0' a)")
        run = final(job, "alice", 120)
        assert (run["state"], run["signal"]) == ("failed", 9), run
        assert "out of memory" in jobctl("show", "#%d" % run["id"], user="alice").stdout


def a_sandboxed_job_can_use_its_secret_and_its_artifact(notes):
    tool, secret = "/srv/tool", os.path.join(pwd.getpwnam("alice").pw_dir, "key")
    with open(tool, "w") as f:
        f.write("#!/bin/sh\necho from the artifact\n")
    with open(tool, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    with open(secret, "w") as f:
        f.write("correct-horse-battery")
    os.chmod(secret, 0o600)
    os.chown(secret, pwd.getpwnam("alice").pw_uid, -1)
    job = add("alice", "--sandbox", "strict", "--artifact", "file:" + tool, "--sha256", digest, "--secret", "KEY=file:" + secret,
              "--", "sh", "-c", "$JOBSCHED_ARTIFACT/tool; wc -c <$JOBSCHED_SECRET_KEY; cat $JOBSCHED_SECRET_KEY; echo; "
              "touch /usr/x 2>/dev/null && echo the system can be written; id -un")
    run = final(job, "alice")
    said = output(job, "alice")
    assert run["state"] == "succeeded", (run, said)
    lines = said.splitlines()
    assert lines[:2] == ["from the artifact", "21"] and lines[-1] == "alice" and len(lines) == 4, said
    assert "correct-horse" not in said, said


def webhooks_and_downloads_work_with_the_default_configuration(notes):
    """jobsched-net sends and downloads, because the unit of jobschedd has no network."""
    tool, got = b"#!/bin/sh\necho downloaded\n", []

    class Web(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(tool)))
            self.end_headers()
            self.wfile.write(tool)

        def do_POST(self):
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *words):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = "http://127.0.0.1:%d/tool" % server.server_port
    job = add("alice", "--artifact", url, "--sha256", hashlib.sha256(tool).hexdigest(), "--notify", "webhook:" + url,
              "--", "sh", "-c", "$JOBSCHED_ARTIFACT/tool; exit 3")
    assert final(job, "alice")["exit_code"] == 3 and output(job, "alice") == "downloaded\n", runs_of(job, "alice")
    wait_until("the webhook is delivered", 30, lambda: got)
    assert got[0]["output"] == "downloaded\n" and got[0]["job"]["id"] == job, got
    said = jobctl("add", "--manual", "--notify", "mail:root", "--", "true", user="alice")
    assert os.path.exists("/usr/sbin/sendmail") or "no-sendmail" in said.stderr, said.stderr
    server.shutdown()


STARTED, GO = "/var/tmp/started", "/var/tmp/go"


def tcp(path, token=None):
    """The status of a GET over TCP."""
    client = http.client.HTTPConnection("127.0.0.1", 8470, timeout=30)
    client.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
    return client.getresponse().status


def the_api_over_tcp_works_through_the_socket_unit_without_network(notes):
    assert sh("systemctl", "is-enabled", "jobschedd-tcp.socket", check=False).stdout.strip() == "disabled"
    job = add("alice", "--", "sleep", "60")
    sh("systemctl", "enable", "jobschedd-tcp.socket")
    sh("systemctl", "stop", "jobschedd.service")
    sh("systemctl", "start", "jobschedd-tcp.socket", "jobschedd.service")
    shown = sh("systemctl", "show", "jobschedd", "-p", "PrivateNetwork", "-p", "RestrictAddressFamilies", "-p", "IPAddressDeny").stdout
    assert "PrivateNetwork=yes" in shown and "RestrictAddressFamilies=AF_UNIX" in shown and "IPAddressDeny=" in shown, shown
    with open("/proc/%s/net/dev" % main_pid("jobschedd")) as f:
        assert len(f.read().splitlines()) == 3, "the daemon has only the loopback interface of its own namespace"
    assert tcp("/healthz") == tcp("/readyz") == 200 and tcp("/v1/jobs") == 401
    token = jobctl("token", "add", "boot", user="alice").stdout.strip()
    assert tcp("/v1/jobs", token) == 200
    assert run_of(job, "alice")["state"] == "running", "the job continues"
    jobctl("cancel", "--running", str(job), user="alice")
    sh("systemctl", "disable", "--now", "jobschedd-tcp.socket")
    with open("/etc/jobsched/jobschedd.conf", "a") as f:
        f.write("listen = 127.0.0.1:8471\n")
    sh("systemctl", "restart", "jobschedd", check=False)
    said = wait_until("the error is logged", 60, lambda: [line for line in sh(
        "journalctl", "-q", "-b", "-u", "jobschedd", "--no-pager").stdout.splitlines() if "has no network" in line])
    assert "jobschedd-tcp.socket" in said[-1], said
    with open("/etc/jobsched/jobschedd.conf") as f:
        text = f.read()
    with open("/etc/jobsched/jobschedd.conf", "w") as f:
        f.write(text.replace("listen = 127.0.0.1:8471\n", ""))
    sh("systemctl", "reset-failed", "jobschedd", check=False)
    sh("systemctl", "restart", "jobschedd")
    wait_until("the daemon answers", 60, lambda: jobctl("status", check=False).returncode == 0)


def started():
    with open(STARTED) as f:
        return [line.split() for line in f]


def alive(pid):
    try:
        os.kill(int(pid), 0)
        return True
    except ProcessLookupError:
        return False


def main_pid(unit):
    return sh("systemctl", "show", "-P", "MainPID", unit).stdout.strip()


def fifty_jobs_survive_ten_restarts_and_an_upgrade(notes):
    with open("/etc/jobsched/jobschedd.conf", "w") as f:
        f.write("max-running = 60\nowner-max-running = 60\n")
    sh("systemctl", "restart", "jobschedd")
    open(STARTED, "w").close()
    os.chmod(STARTED, 0o666)
    os.mkfifo(GO)
    os.chmod(GO, 0o666)
    jobs = {}
    for n in range(50):
        user = ("alice", "bob")[n % 2]
        jobs[add(user, "--", "sh", "-c", "echo $JOBSCHED_RUN $$ >>%s; read x <%s; exit %d" % (STARTED, GO, n))] = (user, n)
    wait_until("50 jobs run", 60, lambda: len(started()) == 50)
    spawner, pids = main_pid("jobsched-spawner"), [pid for _, pid in started()]
    for _ in range(10):
        sh("systemctl", "restart", "jobschedd")
    assert all(map(alive, pids)), "a restart of the daemon ended a job"
    sh("dpkg", "-i", PAYLOAD + "/jobsched-2.deb")
    sh("systemctl", "reload", "jobsched-spawner")
    wait_until("the daemon answers", 30, lambda: jobctl("status", check=False).returncode == 0)
    assert all(map(alive, pids)), "the upgrade ended a job"
    assert main_pid("jobsched-spawner") == spawner, "the spawner has a new pid"
    states = [r["state"] for job, (user, _) in jobs.items() for r in runs_of(job, user)]
    assert states == ["running"] * 50, states
    with open(GO, "w"):
        pass
    for job, (user, n) in jobs.items():
        run = final(job, user)
        assert (run["exit_code"], run["attempt"], run["lost"]) == (n, 1, 0), run
        assert run["state"] == ("failed" if n else "succeeded"), run
    assert len(started()) == 50 == len({run for run, _ in started()}), "a run was started twice"


def stopping_the_spawner_ends_its_jobs_and_they_restart_later(notes):
    """Processes in another session are ended, too. The attempt counts neither as failed nor as lost."""
    job = add("alice", "--", "sh", "-c", "[ $JOBSCHED_ATTEMPT = 1 ] || exit 7; setsid sh -c 'trap \"\" TERM; echo $$; exec "
              "sleep 3600' & wait")
    wait_until("the job runs", 20, lambda: run_of(job, "alice")["state"] == "running")
    pid = int(wait_until("the job has printed its pid", 20, lambda: output(job, "alice").strip()))
    sh("systemctl", "stop", "jobsched-spawner")
    assert not alive(pid), "a process of the job is still running"
    run = wait_until("the end is recorded", 20, lambda: [r for r in runs_of(job, "alice") if r["state"] != "running"])[0]
    sh("systemctl", "start", "jobsched-spawner")
    # the run may have been claimed again before the daemon noticed that the spawner is down
    assert run["state"] in ("queued", "claimed") and (run["attempt"], run["failures"], run["lost"]) == (1, 0, 0), run
    run = final(job, "alice")
    assert (run["exit_code"], run["attempt"]) == (7, 2), run


def a_boot_job_does_not_run_for_the_current_boot(notes):
    notes["boot"] = add("bob", "-n", "at-boot", "--on", "boot", "--", "true")
    notes["long"] = add("alice", "--", "sh", "-c", "[ $JOBSCHED_ATTEMPT = 1 ] || exit 8; exec sleep 3600")
    wait_until("the job runs", 20, lambda: run_of(notes["long"], "alice")["state"] == "running")
    assert runs_of(notes["boot"], "bob") == [], "the job ran for a boot before its submission"


@boot
def first(c):
    c.all([install, directories_have_the_right_owner_and_mode, a_job_runs_as_the_user_who_submitted_it,
           users_do_not_see_jobs_of_other_users, a_job_of_root_runs_with_the_default_configuration, settings_of_the_unit_do_not_affect_jobs,
           limits_are_enforced_or_refused_without_a_controller, a_sandboxed_job_can_use_its_secret_and_its_artifact,
           webhooks_and_downloads_work_with_the_default_configuration,
           the_api_over_tcp_works_through_the_socket_unit_without_network,
           fifty_jobs_survive_ten_restarts_and_an_upgrade, stopping_the_spawner_ends_its_jobs_and_they_restart_later,
           a_boot_job_does_not_run_for_the_current_boot])
    sh("systemctl", "--no-block", "reboot")


def a_boot_job_runs_once_after_a_boot(notes):
    assert final(notes["boot"], "bob")["state"] == "succeeded"
    assert len(runs_of(notes["boot"], "bob")) == 1


def a_job_that_the_reboot_ended_restarts_and_is_not_lost(notes):
    run = final(notes["long"], "alice")
    assert (run["exit_code"], run["attempt"], run["lost"]) == (8, 2, 0), run


def jobs_are_acknowledged_before_the_power_failure(notes):
    notes["running"] = add("alice", "--", "sh", "-c", "[ $JOBSCHED_ATTEMPT = 1 ] || exit 9; exec sleep 3600")
    wait_until("the job runs", 20, lambda: run_of(notes["running"], "alice")["state"] == "running")
    notes["later"] = add("bob", "--in", "10d", "--", "true")


@boot
def second(c):
    c.all([a_boot_job_runs_once_after_a_boot, a_job_that_the_reboot_ended_restarts_and_is_not_lost,
           jobs_are_acknowledged_before_the_power_failure])
    sh("systemctl", "reboot", "-ff")


def acknowledged_jobs_survive_the_power_failure(notes):
    assert ask("show", str(notes["later"]), user="bob")["state"] == "active"
    run = final(notes["running"], "alice")
    assert (run["exit_code"], run["attempt"], run["lost"]) == (9, 2, 1), run
    jobctl("db", "check")


def a_downgrade_is_refused_with_the_reason(notes):
    said = sh("dpkg", "-i", PAYLOAD + "/jobsched-1.deb", check=False)
    assert said.returncode != 0 and "is older than the installed 0.1.0-2" in said.stderr, said.stderr
    assert jobctl("status", check=False).returncode == 0, "the refused downgrade stopped the service"


def removing_the_package_ends_all_processes_and_a_purge_removes_the_state(notes):
    job = add("alice", "--", "sleep", "3600")
    wait_until("the job runs", 20, lambda: run_of(job, "alice")["state"] == "running")
    sh("dpkg", "-r", "jobsched")
    left = sh("pgrep", "-a", "-f", "jobsched|sleep 3600", check=False).stdout
    assert not left, left
    assert os.path.exists("/var/lib/jobsched/jobs.db")
    sh("dpkg", "--purge", "jobsched")
    for path in ("/var/lib/jobsched", "/var/lib/jobsched-net", "/var/lib/jobsched-spawner", "/run/jobsched"):
        assert not os.path.exists(path), path
    assert os.listdir("/etc/jobsched") == ["jobschedd.conf"], "the purge removed a file of the administrator"


@boot
def third(c):
    c.all([acknowledged_jobs_survive_the_power_failure, a_downgrade_is_refused_with_the_reason,
           removing_the_package_ends_all_processes_and_a_purge_removes_the_state])


def main():
    kept = state()
    number = kept["boots"]
    kept["boots"] += 1
    keep(kept)
    BOOTS[number](Cases(kept))
    if number + 1 == len(BOOTS):
        say("1..%d" % kept["cases"])
        sh("systemctl", "--no-block", "poweroff")


main()
