# SPDX-License-Identifier: Apache-2.0
# Notices of real daemons. A test sendmail and a test web server record each message.
import email
import email.policy
import hashlib
import hmac
import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from system import System
from web import Web

KEY = "0123456789abcdef0123456789abcdef"
NOTHING_MORE = 1.5  # seconds to wait for messages that must not be sent


class Hook(Web):
    """A web server that records requests. 'plan' lists the next status codes ("hang" delays); then it answers 200."""

    def __init__(self, plan=()):
        self.got, self.plan, self.gate = [], list(plan), threading.Event()

        def record(request):
            body = request.rfile.read(int(request.headers["Content-Length"]))
            self.got.append((dict(request.headers), body))
            answer = self.plan.pop(0) if self.plan else 200
            if answer == "hang":
                self.gate.wait(90)
                answer = 200
            try:
                request.send_response(answer)
                if answer == 302:
                    request.send_header("Location", "file:///etc/passwd")
                request.end_headers()
                request.wfile.write(b"x" * (200000 if answer == 201 else 10))
            except OSError:
                pass
        super().__init__(do_POST=record)
        self.url += "/hook"

    def __exit__(self, *rest):
        self.gate.set()
        super().__exit__(*rest)

    def bodies(self):
        return [json.loads(body) for _, body in self.got]


class Notifying(Daemon):
    """A daemon with a webhook key and a sendmail that writes each message to a file."""

    def __init__(self, sendmail="", config=""):
        super().__init__()
        self.mails = os.path.join(self.dir, "mail")
        os.mkdir(self.mails)
        program = os.path.join(self.dir, "sendmail")
        with open(program, "w") as f:
            f.write("#!/bin/sh\n%s\nt=$(mktemp '%s'/.new.XXXXXX)\n{ echo \"$*\"; cat; } >\"$t\"\n"
                    "mv \"$t\" '%s'/m.$(date +%%s%%N)\n" % (sendmail, self.mails, self.mails))
        os.chmod(program, 0o755)
        self.key = os.path.join(self.dir, "key")
        with open(self.key, "w") as f:
            f.write(KEY + "\n")
        os.chmod(self.key, 0o600)
        self.write_config("sendmail = %s\nwebhook-key-file = %s\nnotice-retry = 1\n%s" % (program, self.key, config))

    def mail(self):
        """The messages sent so far, oldest first, each with the arguments of sendmail."""
        found = []
        for name in sorted(n for n in os.listdir(self.mails) if n.startswith("m.")):
            with open(os.path.join(self.mails, name), "rb") as f:
                arguments, message = f.read().split(b"\n", 1)
            m = email.message_from_bytes(message, policy=email.policy.default)
            m.arguments = arguments.decode()
            found.append(m)
        return found

    def notices(self, **filters):
        return self.api().pages("/v1/notices" + "".join("?%s=%s" % f for f in filters.items()), "notices")

    def run_job(self, job):
        """Starts a manual run and returns it when it has ended."""
        return self.api().get("/v1/runs/%d?wait=20" % self.api().post("/v1/jobs/%s/run" % job, {})["id"])


def flag_job(d, *notify, name="backup"):
    """Adds a job that succeeds while its flag file exists. Returns the job and the path of the file."""
    flag = os.path.join(d.dir, "flag." + name)
    job = d.add(name=name, schedule=["manual"], notify=list(notify),
                script="echo one; echo two; test -e '%s' && exit 0; echo broken >&2; exit 3" % flag)["id"]
    return job, flag


@case
def all_channels_send_notices_for_state_changes_only():
    with Notifying() as d, Hook() as web:
        d.start()
        said = os.path.join(d.dir, "said")
        job, flag = flag_job(d, "mail:ann@example.com", "webhook:" + web.url,
                             "exec:{ echo \"$JOBSCHED_NOTICE_KIND $JOBSCHED_NOTICE_EXIT_CODE\"; } >>'%s'" % said)
        for works in (True, False, False, True, True, False):
            if works:
                open(flag, "w").close()
            elif os.path.exists(flag):
                os.unlink(flag)
            run = d.run_job(job)
            assert run["state"] == ("succeeded" if works else "failed"), run
        wait_until("all notices are sent", 20, lambda: len(d.notices(state="sent")) == 9)
        time.sleep(NOTHING_MORE)
        assert len(d.notices()) == 9
        kinds = ["failed", "recovered", "failed"]
        assert sorted(b["kind"] for b in web.bodies()) == sorted(kinds)
        assert len(d.mail()) == 3 and len(web.got) == 3
        with open(said) as f:
            assert sorted(f.read().split("\n")[:-1]) == ["failed 3", "failed 3", "recovered 0"]
        failed = [m for m in d.mail() if "failed" in m["Subject"]][0]
        assert failed.arguments == "-oi -- ann@example.com", failed.arguments
        assert failed["To"] == "ann@example.com" and failed["Auto-Submitted"] == "auto-generated"
        assert failed["Subject"].startswith("jobsched: backup failed on node ") and "(exit code 3)" in failed["Subject"]
        assert failed["Message-ID"] and failed["Date"] and failed["From"]
        text = failed.get_content()
        for words in ("    broken\n", "jobctl log backup#", "jobctl why backup", "Nothing changed since run backup#"):
            assert words in text, (words, text)
        for headers, body in web.got:
            said = hmac.new(KEY.encode(), headers["Jobsched-Timestamp"].encode() + b"." + body, hashlib.sha256).hexdigest()
            assert headers["Jobsched-Signature"] == "sha256=" + said
            assert json.loads(body)["notice"] == headers["Jobsched-Notice"]
            assert abs(int(headers["Jobsched-Timestamp"]) - time.time()) < 60


@case
def a_notice_names_the_changed_job_fields():
    with Notifying() as d, Hook() as web:
        d.start()
        job, flag = flag_job(d, "webhook:" + web.url)
        open(flag, "w").close()
        d.run_job(job)
        d.jobctl("set", "backup", "timeout=1m", "script=exit 4")
        d.run_job(job)
        wait_until("the notice is sent", 10, lambda: web.got)
        body = web.bodies()[0]
        assert sorted(body["changed"]) == ["script", "timeout"], body
        assert "Changed since run backup#" in body["text"], body["text"]


@case
def a_failing_webhook_is_retried_and_a_failed_test_is_not():
    with Notifying() as d, Hook([500, 302, 503]) as web:
        d.start()
        job, _ = flag_job(d, "webhook:" + web.url)
        d.run_job(job)
        wait_until("the notice waits for a retry", 10, lambda: [n for n in d.notices() if n["error"]])
        waiting = d.notices()[0]
        assert waiting["state"] == "waiting" and "500" in waiting["error"] and waiting["due_at"], waiting
        wait_until("two requests have arrived", 10, lambda: len(web.got) >= 2)
        assert len({h["Jobsched-Notice"] for h, _ in web.got}) == 1
        assert [b["try"] for b in web.bodies()][:2] == [1, 2]
        wait_until("the redirection is an error", 10, lambda: "not followed" in (d.notices()[0]["error"] or ""))
        d.api().post("/v1/jobs/%d/notify-test" % job)
        wait_until("the test notice fails without a retry", 10, lambda: d.notices(state="failed"))
        assert d.notices(state="failed")[0]["kind"] == "test"
        assert d.api().get("/v1/status")["notices"]["failed"] == 1
        assert "could not be sent" in d.jobctl("status").stdout
        assert "could not be sent to" in d.jobctl("show", "backup").stdout
        events = d.api().pages("/v1/events", "events")
        assert [e for e in events if e["what"] == "notice.failed" and e["job"] == job], events
        assert not [e for e in events if web.url in json.dumps(e)]  # the URL may contain a secret


@case
def a_hanging_channel_delays_no_other_channel():
    with Notifying(sendmail="sleep 90") as d, Hook(["hang"] * 50) as web:
        d.start()
        for i in range(10):
            job, _ = flag_job(d, "webhook:" + web.url, "mail:ann", "exec:sleep 90", name="slow%d" % i)
            d.run_job(job)
        began = time.monotonic()
        job, _ = flag_job(d, "exec:touch '%s/quick'" % d.dir, name="quick")
        d.run_job(job)
        wait_until("the quick notice is sent", 20, lambda: os.path.exists(d.dir + "/quick"))
        d.wait_final(d.add(command=["true"])["id"])
        took = time.monotonic() - began
        assert took < 60, took
        assert d.api().get("/v1/status")["notices"]["waiting"] == 30
        return "%.2f s with 30 hanging notices" % took


@case
def a_restarted_daemon_sends_each_pending_notice_once():
    with Notifying() as d, Hook(["hang"]) as web:
        d.start()
        job, _ = flag_job(d, "webhook:" + web.url, "exec:echo noise; sleep 2; echo x >>'%s/said'" % d.dir)
        d.run_job(job)
        wait_until("the first try is under way", 10, lambda: web.got)
        d.kill()
        web.gate.set()
        d.start()
        wait_until("both notices are sent", 20, lambda: len(d.notices(state="sent")) == 2)
        time.sleep(NOTHING_MORE)
        assert len(web.got) == 1, "the webhook was posted again, although jobsched-net had continued"
        with open(os.path.join(d.dir, "said")) as f:
            assert f.read() == "x\n"  # the spawner had continued the command; it was not started again
        for path in os.listdir(os.path.join(d.state, "output")):
            assert not path.startswith("-"), path


@case
def a_webhook_is_sent_again_after_jobsched_net_was_killed():
    with Notifying() as d, Hook(["hang"]) as web:
        d.start()
        job, _ = flag_job(d, "webhook:" + web.url)
        d.run_job(job)
        wait_until("the first try is under way", 10, lambda: web.got)
        os.kill(d.net(), signal.SIGKILL)
        wait_until("the notice is sent again", 30, lambda: len(d.notices(state="sent")) == 1)
        assert len({h["Jobsched-Notice"] for h, _ in web.got}) == 1 and len(web.got) == 2, web.got
        assert [b["try"] for b in web.bodies()] == [1, 1], "a restart of jobsched-net counted as a try"


@case
def webhooks_wait_for_jobsched_net_and_the_reason_names_the_command():
    with System() as s, Hook() as web:
        s.start()
        s.net.terminate()
        s.net.wait()
        job = s.add("alice", schedule=["manual"], name="backup", notify=["webhook:" + web.url], command=["false"])["id"]
        s.api("alice").post("/v1/jobs/%s/run" % job, {})

        def waits():
            found = s.api("alice").get("/v1/notices")["notices"]
            return found and found[0]["error"] and found[0]
        notice = wait_until("the notice waits", 30, waits)
        assert notice["state"] == "waiting" and "systemctl start jobsched-net" in notice["error"], notice
        status = s.jobctl("alice", "status").stdout
        assert "systemctl start jobsched-net" in status and not web.got, status
        assert s.api("alice").get("/v1/status")["net"]["up"] is False
        s.start_net()
        wait_until("the notice is delivered", 40, lambda: web.got)
        assert web.bodies()[0]["try"] == 1, web.bodies()
        assert "jobsched-net" not in s.jobctl("alice", "status").stdout


@case
def add_warns_about_a_missing_mail_program():
    with Notifying() as d:
        d.start()
        assert not d.add(schedule=["manual"], notify=["mail:ann"], command=["true"])["findings"]
        os.unlink(os.path.join(d.dir, "sendmail"))
        d.write_config("sendmail = %s/sendmail\n" % d.dir)
        found = d.add(schedule=["manual"], notify=["mail:ann"], command=["true"])["findings"]
        assert [f["code"] for f in found] == ["no-sendmail"] and d.dir in found[0]["message"], found
        said = d.jobctl("add", "--manual", "--notify", "mail:ann", "--", "true")
        assert "no-sendmail" in said.stderr, said
        assert not d.add(schedule=["manual"], notify=["exec:true"], command=["true"])["findings"]


@case
def repeated_skips_send_one_notice():
    with Notifying() as d:
        d.start()
        job = d.add(name="slow", schedule=["every 1s"], script="sleep 4", notify=["mail:ann"])["id"]
        wait_until("two slots were skipped", 20, lambda: [r["reason"] for r in d.runs(job)].count("overlap") >= 2)
        wait_until("the notice is sent", 10, d.mail)
        d.api().post("/v1/jobs/%d/cancel" % job, {"running": True})
        time.sleep(NOTHING_MORE)
        missed = [m["Subject"] for m in d.mail()]
        assert missed == ["jobsched: slow did not run (overlap)"], missed


@case
def output_of_a_job_cannot_forge_a_mail():
    with Notifying() as d, Hook() as web:
        d.start()
        evil = os.path.join(d.dir, "evil")
        with open(evil, "wb") as f:
            f.write(b"\n.\nBcc: all@example.com\n\nFrom me\n\x1b[31m\0\xff\xfe \"},{\" \xe2\x80\xae" + b"x" * 3000 + b"\n")
        job = d.add(schedule=["manual"], notify=["mail:ann@example.com", "webhook:" + web.url],
                    script="cat '%s'; exit 9" % evil)["id"]
        d.run_job(job)
        wait_until("both notices are sent", 10, lambda: d.mail() and web.got)
        m = d.mail()[0]
        assert m["Bcc"] is None and not m.defects and len(m.get_all("To")) == 1
        text = m.get_content()
        assert "    Bcc: all@example.com" in text and "\\x1b[31m" in text and "\x1b" not in text and "\\u202e" in text
        assert all(len(line) < 78 for line in m.as_string().split("\n"))
        output = web.bodies()[0]["output"]
        assert '\n\x1b[31m\0\ufffd\ufffd "},{" \u202exxx' in output and "\\" not in output, output


@case
def a_test_notice_reports_the_result_of_each_channel():
    with Notifying() as d, Hook([404]) as web:
        d.start()
        flag_job(d, "mail:ann@example.com", "webhook:" + web.url, "exec:echo it is broken; exit 7")
        flag_job(d, name="quiet")
        r = d.jobctl("notices", "test", "backup", "--json", check=False)
        assert r.returncode == 1, r
        found = {n["channel"].split(":")[0]: n for n in json.loads(r.stdout)}
        assert found["mail"]["state"] == "sent" and d.mail()[0]["Subject"] == "jobsched: backup: a test notice"
        assert found["webhook"]["state"] == "failed" and "404" in found["webhook"]["error"], found
        assert found["exec"]["error"] == "exit code 7: it is broken", found
        r = d.jobctl("notices", "test", "quiet", check=False)
        assert r.returncode == 6 and "has no notify channel" in r.stderr, r
        assert d.jobctl("notices", "--failed").stdout.count("failed") == 2


@case
def a_world_readable_webhook_key_is_refused():
    with Notifying() as d, Hook() as web:
        os.chmod(d.key, 0o644)
        d.start()
        job, _ = flag_job(d, "webhook:" + web.url)
        d.api().post("/v1/jobs/%d/notify-test" % job)
        wait_until("the notice is refused", 10, lambda: d.notices(state="failed"))
        assert "chmod 600" in d.notices()[0]["error"] and not web.got


main()
