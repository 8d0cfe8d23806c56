# SPDX-License-Identifier: Apache-2.0
# Tests definitions in files: a round trip of every field between two stores, all or nothing under kills, warrants of root.
import base64
import json
import os
import random
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from contract import Contract
from harness import Api, case, Daemon, main, need_root, Unreachable, wait_until

BUILD = os.environ.get("top_builddir", "build")


class Schema(Contract):
    """The schema of definitions, read like the schemas of the API."""

    def __init__(self):
        with open(os.path.join(BUILD, "src/daemon/api/definitions.schema.json"), encoding="utf-8") as f:
            self.file = json.load(f)

    def valid(self, name, value):
        schema = {"$ref": "#/$defs/" + name}
        found = self.faults(schema, value, name) + self.unknown_members(schema, value, name)
        assert not found, found


def word(r):
    return "".join(r.choice("abcdefghijk-_.XYZ019") for _ in range(r.randint(1, 12)))


def text(r):
    return "".join(r.choice("ab c'\"\\$%#\té✓\n{}") for _ in range(r.randint(1, 20)))


def bytes_b64(r):
    return base64.b64encode(bytes(r.choice(range(1, 256)) for _ in range(9))).decode()


def duration(r):
    return r.choice([1, 90, 3600, 0.5])


# A generator for each field of a definition; a field without one fails the test.
TLS = ["headers", "tls_ca", "tls_cert", "tls_key"]
CALLS = {  # the members of each kind of call
    "http": TLS + ["http", "url", "body", "body_b64", "expect_status", "expect_body", "expect_size", "on_410", "http_async", "sign"],
    "kafka": TLS + ["kafka", "message", "message_b64", "message_key", "message_key_b64", "kafka_tls", "sasl", "sasl_user", "sasl_password"],
    "lambda": ["lambda", "region", "lambda_event", "body", "body_b64"],
}
FUNCTION = {"lambda": "report", "region": "eu-central-1"}
MESSAGE = {"kafka": "kafka1:9092/orders", "message": "text", "secrets": {"KEY": "file:/etc/hostname"}}
CALL = {"http": "POST", "url": "https://example.org/", "secrets": {"KEY": "file:/etc/hostname"}}
FIELDS = {
    "command": lambda r: {"command": ["printf", text(r), word(r)]},
    "command_b64": lambda r: {"command_b64": [base64.b64encode(b"echo").decode(), bytes_b64(r)]},
    "script": lambda r: {"script": "echo " + text(r)},
    "script_b64": lambda r: {"script_b64": base64.b64encode(b"echo \xff\xfe").decode()},
    "schedule": lambda r: {"schedule": r.choice([
        "every 15m", "H H * * *", "@daily", "after-finish 10m", "@reboot", "2199-01-01T00:00:00Z", "in 30d",
        ["0 2 * * *", "*/7 4 * * MON"], "R5/2190-01-31T09:00:00Z/P1M", "0 0 L * *", ["manual"]])},
    "tz": lambda r: {"tz": r.choice(["Europe/Berlin", "Asia/Tokyo", "UTC"])},
    "dst_gap": lambda r: {"dst_gap": r.choice(["after", "skip"])},
    "dst_fold": lambda r: {"dst_fold": r.choice(["first", "last", "both"])},
    "from": lambda r: {"from": "2150-01-01T00:00:00Z", "schedule": "0 2 * * *"},
    "until": lambda r: {"until": "2190-01-01T00:00:00Z", "schedule": "0 2 * * *"},
    "jitter": lambda r: {"jitter": duration(r)},
    "env": lambda r: {"env": {"A" + word(r).replace("-", "_").replace(".", "_"): text(r), "DB_PASSWORD": word(r)}},
    "env_b64": lambda r: {"env_b64": {"RAW": bytes_b64(r)}},
    "tags": lambda r: {"tags": {word(r): word(r), "team": "web"}},
    "cwd": lambda r: {"cwd": "/tmp/" + word(r)},
    "cwd_b64": lambda r: {"cwd_b64": base64.b64encode(b"/tmp/\xff").decode()},
    "stdin": lambda r: {"stdin": text(r)},
    "stdin_b64": lambda r: {"stdin_b64": bytes_b64(r)},
    "umask": lambda r: {"umask": r.choice(["077", "022", "002", "000"])},
    "sandbox": lambda r: {"sandbox": r.choice(["compat", "standard"])},
    "priority": lambda r: {"priority": r.randint(-100, 100)},
    "timeout": lambda r: {"timeout": duration(r)},
    "grace": lambda r: {"grace": r.choice([0, 3, 10])},
    "mem": lambda r: {"mem": 1 << r.randint(26, 33)},
    "cpu": lambda r: {"cpu": r.choice(["50%", "1.5"])},
    "pids": lambda r: {"pids": r.randint(10, 100)},
    "nice": lambda r: {"nice": r.randint(0, 19)},
    "ionice": lambda r: {"ionice": r.choice(["idle", "best-effort:3"])},
    "limits": lambda r: {"limits": {"nofile": "1024", "core": "0"}},
    "output_limit": lambda r: {"output_limit": r.choice([0, 4096, 1 << 20])},
    "catchup": lambda r: {"catchup": r.choice(["none", "latest", "all:3"])},
    "deadline": lambda r: {"deadline": duration(r)},
    "expires": lambda r: {"expires": duration(r)},
    "overlap": lambda r: {"overlap": r.choice(["skip", "queue:3", "replace", "allow"])},
    "max_running": lambda r: {"max_running": r.randint(1, 9), "overlap": "allow"},
    "rate": lambda r: {"rate": "10/1h"},
    "queue": lambda r: {"queue": r.choice(["default", "night"])},
    "when": lambda r: {"when": ["load<%d" % r.randint(100, 900)]},
    "node_labels": lambda r: {"node_labels": ["zone=a"]},
    "retries": lambda r: {"retries": r.randint(0, 9)},
    "backoff": lambda r: {"backoff": r.choice(["fixed:30s", "exp:10s..10m"]), "retries": 1},
    "on_exit": lambda r: {"on_exit": "75=retry,0|2=ok"},
    "run_timeout": lambda r: {"run_timeout": 7200},
    "heartbeat": lambda r: {"heartbeat": duration(r)},
    "heartbeat_on_output": lambda r: {"heartbeat": duration(r), "heartbeat_on_output": r.choice(["no", "yes"])},
    "results": lambda r: {"results": r.choice(["no", "yes"])},
    "checkpoint": lambda r: {"checkpoint": r.choice(["no", "yes"])},
    "state_size": lambda r: {"checkpoint": "yes", "state_size": r.choice([1, 65536, 16 << 20])},
    "gate": lambda r: {"gate": "test -e /" + word(r)},
    "gate_b64": lambda r: {"gate_b64": base64.b64encode(b"test -e /\xff").decode()},
    "gate_timeout": lambda r: {"gate": "true", "gate_timeout": r.choice([1, 90, 3600])},
    "after": lambda r: {},  # see chains.py: a parent has to exist
    "after_mode": lambda r: {"after_mode": r.choice(["all", "any"])},
    "leftovers": lambda r: {"leftovers": r.choice(["end", "keep"])},
    "on_lost": lambda r: {"on_lost": r.choice(["rerun", "fail"])},
    "notify": lambda r: {"notify": ["mail:ops@localhost", "exec:/bin/true"]},
    "secrets": lambda r: {"secrets": {"KEY": "file:/etc/hostname"}},
    "http": lambda r: {"http": r.choice(["GET", "POST", "PUT"]), "url": "https://example.org/" + word(r)},
    "url": lambda r: dict(CALL, url="http://example.org:8080/?q=" + word(r)),
    "headers": lambda r: dict(CALL, headers=["X-A: " + word(r), "X-B:"]),
    "body": lambda r: dict(CALL, body=text(r)),
    "body_b64": lambda r: dict(CALL, body_b64=bytes_b64(r)),
    "expect_status": lambda r: dict(CALL, expect_status=r.choice(["200", "200-299,404"])),
    "expect_body": lambda r: dict(CALL, expect_body="^ok|[a-z]+$"),
    "expect_size": lambda r: dict(CALL, expect_size=r.randint(1, 1 << 20)),
    "on_410": lambda r: dict(CALL, on_410=r.choice(["fail", "suspend"])),
    "http_async": lambda r: dict(CALL, http_async=r.choice(["no"])),
    "sign": lambda r: dict(CALL, sign=["KEY"]),
    "tls_ca": lambda r: dict(CALL, tls_ca="KEY"),
    "tls_cert": lambda r: dict(CALL, tls_cert="KEY", tls_key="KEY"),
    "tls_key": lambda r: dict(CALL, tls_cert="KEY", tls_key="KEY"),
    "kafka": lambda r: dict(MESSAGE, kafka="kafka1:9092,[2001:db8::1]:9092,kafka2/" + word(r)),
    "message": lambda r: dict(MESSAGE, message=text(r)),
    "message_b64": lambda r: dict(MESSAGE, message_b64=bytes_b64(r)),
    "message_key": lambda r: dict(MESSAGE, message_key=text(r)),
    "message_key_b64": lambda r: dict(MESSAGE, message_key_b64=bytes_b64(r)),
    "kafka_tls": lambda r: dict(MESSAGE, kafka_tls="yes"),
    "sasl": lambda r: dict(MESSAGE, sasl="SCRAM-SHA-512", sasl_user="KEY", sasl_password="KEY"),
    "sasl_user": lambda r: dict(MESSAGE, sasl="PLAIN", kafka_tls="yes", sasl_user="KEY", sasl_password="KEY"),
    "sasl_password": lambda r: dict(MESSAGE, sasl="SCRAM-SHA-256", sasl_user="KEY", sasl_password="KEY"),
    "lambda": lambda r: dict(FUNCTION, **{"lambda": "report:$LATEST"}),
    "region": lambda r: dict(FUNCTION, region=r.choice(["eu-central-1", "cn-north-1"])),
    "lambda_event": lambda r: dict(FUNCTION, lambda_event="yes"),
    "artifact": lambda r: {"artifact": "https://localhost/x.tar.gz", "sha256": "%064x" % r.getrandbits(256)},
    "sha256": lambda r: {"artifact": "file:/srv/x", "sha256": "%064x" % r.getrandbits(256)},
    "template": lambda r: {"template": "nightly"},
    "params": lambda r: {"params": {"HOST": word(r)}, "command": ["echo", "{HOST}"]},
    "params_b64": lambda r: {"params_b64": {"HOST": bytes_b64(r)}, "command": ["echo", "{HOST}"]},
    "name": lambda r: {},
}


def definition(r, name, fields):
    d = {"name": name, "command": ["true"], "schedule": "0 2 * * *", "tz": "UTC"}
    for f in fields:
        d.update(FIELDS[f](r))
    if {"script", "script_b64", "command_b64"} & set(d):
        del d["command"]
    kinds = [k for k in ("http", "kafka", "lambda") if k in d]
    if kinds:  # a call has no command, and a job is one kind of call
        others = [m for k, members in CALLS.items() if k != kinds[0] for m in members if m not in CALLS[kinds[0]]]
        for f in others + ["command", "command_b64", "script", "script_b64", "stdin", "stdin_b64", "artifact", "sha256",
                           "results", "checkpoint", "state_size", "gate", "gate_b64", "gate_timeout"]:
            d.pop(f, None)
    if d.get("checkpoint") != "yes":
        d.pop("state_size", None)
    for f in ("env", "cwd", "stdin", "script", "command", "params", "body", "message", "message_key", "gate"):
        if f + "_b64" in d:
            d.pop(f, None)
    return d


def apply(d, jobs, dry_run=False, set_name="test"):
    status, answer = d.api().call("POST", "/v1/apply" + ("?dry_run=true" if dry_run else ""),
                                  {"set": set_name, "jobs": jobs})
    assert status == 200, (status, answer)
    return answer


def export(d, *options):
    return json.loads(d.jobctl("export", *options).stdout)["jobs"]


def definitions_of(d, members):
    """The members of the definitions of all jobs as the API shows them, by name."""
    return {j["name"]: {m: j.get(m) for m in members} for j in d.api().pages("/v1/jobs?state=active,paused", "jobs")}


@case
def every_field_survives_a_round_trip_between_two_stores():
    seed = int(os.environ.get("SEED", time.time_ns() % 1000000))
    print("# SEED=%d" % seed)
    r = random.Random(seed)
    schema = Schema()
    members = set(schema.file["$defs"]["definition"]["properties"])
    assert members == set(FIELDS), "fields without a generator, or generators without a field: %s" % (members ^ set(FIELDS))
    with Daemon() as a, Daemon() as b:
        a.start()
        b.start()
        for d in (a, b):
            d.jobctl("queue", "add", "night")
        jobs = [definition(r, "one-%s-%d" % (f.replace("_", "-"), i), [f]) for f in sorted(FIELDS) for i in range(3)]
        jobs += [definition(r, "mix-%d" % i, r.sample(sorted(FIELDS), 6)) for i in range(150)]
        for j in jobs:
            schema.valid("definition", j)
        plan = apply(a, jobs, dry_run=True)["entries"]
        # fields may exclude each other, and a machine without control groups refuses some limits
        accepted = [j for j, e in zip(jobs, plan) if e["outcome"] == "created"]
        alone = {j["name"].rsplit("-", 1)[0] for j in accepted if j["name"].startswith("one-")}
        missing = {"one-" + f.replace("_", "-") for f in FIELDS} - alone
        assert missing <= {"one-mem", "one-cpu", "one-pids"}, (missing, [e for e in plan if e["error"]])
        assert len(accepted) > 180, [e["error"] for e in plan if e["error"]]
        apply(a, accepted)

        exported = export(a, "--reveal")
        assert len(exported) == len(accepted)
        for j in exported:
            schema.valid("definition", j)
        again = apply(a, exported)
        assert {e["outcome"] for e in again["entries"]} == {"unchanged"}, [e for e in again["entries"] if e["what"]]
        masked = a.jobctl("export", "--format", "jsonl").stdout
        for line in masked.splitlines():
            schema.valid("definition", json.loads(line))
        result = a.jobctl("apply", "-f", "-", "-o", "json", input=masked)
        assert json.loads(result.stdout)["summary"]["unchanged"] == len(accepted), result.stdout[:2000]

        apply(b, exported)
        assert export(b, "--reveal") == exported
        assert definitions_of(b, members) == definitions_of(a, members)
        # the files as written mean the same as the export
        assert {e["outcome"] for e in apply(a, accepted)["entries"]} == {"unchanged"}


@case
def a_killed_daemon_has_applied_all_or_nothing():
    jobs = [{"name": "j%d" % i, "schedule": "0 2 * * *", "command": ["true"]} for i in range(2000)]
    with Daemon() as d:
        outcomes = set()
        for delay in (0.05, 0.15, 0.3):
            d.start()
            body = {"set": "s", "prune": True, "jobs": [dict(j, priority=int(delay * 100)) for j in jobs]}

            def request():
                try:
                    Api(d.socket).call("POST", "/v1/apply", body)
                except Unreachable:
                    pass
            t = threading.Thread(target=request)
            t.start()
            time.sleep(delay)
            d.kill()
            t.join()
            d.start()
            found = d.api().pages("/v1/jobs?state=active", "jobs")
            priorities = {j["priority"] for j in found}
            assert len(found) in (0, len(jobs)) and len(priorities) <= 1, (len(found), priorities)
            outcomes.add((len(found), tuple(priorities)))
            d.stop()
        d.start()
        assert d.api().get("/v1/db/check")["problems"] == []
        print("# outcomes: %s" % sorted(outcomes))


@case
def two_sets_applied_at_the_same_time_do_not_lose_a_definition():
    """Both name the same jobs with other priorities; each apply is consistent in itself."""
    with Daemon() as d:
        d.start()
        answers = []

        def many(priority):
            jobs = [{"name": "j%d" % i, "schedule": "manual", "command": ["true"], "priority": priority} for i in range(100)]
            for _ in range(4):
                answers.append(Api(d.socket).patiently("POST", "/v1/apply", {"set": "s%d" % priority, "jobs": jobs}))
        threads = [threading.Thread(target=many, args=(p,)) for p in (1, 2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert any(status == 200 for status, _ in answers)
        assert all(status == 200 or answer["error"]["code"] == "conflict" for status, answer in answers), answers
        found = d.api().pages("/v1/jobs?state=active", "jobs")
        assert len(found) == 100 and len({j["priority"] for j in found}) == 1


@case
def root_gets_warrants_and_others_apply_for_themselves_only():
    need_root()
    from system import System
    with System() as s:
        s.start()
        root = [{"name": "r1", "schedule": "manual", "tz": "UTC", "command": ["/usr/bin/id", "-u"]},
                {"name": "r2", "schedule": "manual", "tz": "UTC", "command": ["/bin/true"], "env": {"A": "1"}}]

        def applied(user, jobs, *options, check=True):
            return s.jobctl(user, "apply", "-f", "-", "--set", "t", *options, check=check, input=json.dumps({"jobs": jobs}))
        applied("root", root)
        run = s.api("root").post("/v1/jobs/r1/run")
        job = s.api("root").get("/v1/jobs/r1")
        assert s.wait_final("root", job["id"])["state"] == "succeeded"
        assert s.output("root", s.runs("root", job["id"])[0]["id"]) == "0\n", run
        assert "2 unchanged" in applied("root", root).stderr
        # a changed command has a new warrant, and an unchanged one keeps its own
        root[0]["command"] = ["/bin/echo", "new"]
        assert "1 changed, 1 unchanged" in applied("root", root).stderr
        s.api("root").post("/v1/jobs/r1/run")
        wait_until("the second run has ended", 30, lambda: len(s.runs("root", job["id"])) == 2 and
                   s.runs("root", job["id"])[0]["state"] == "succeeded")
        assert "warrant" not in s.jobctl("root", "export").stdout
        # a user changes only jobs of their own, and cannot name another owner
        mine = [{"name": "r1", "schedule": "manual", "tz": "UTC", "command": ["/bin/true"]}]
        assert "1 created" in applied("alice", mine).stderr
        assert applied("alice", mine, "--owner", "bob", check=False).returncode == 4
        assert "1 created" in applied("root", mine, "--owner", "bob").stderr
        assert {j["name"] for j in json.loads(s.jobctl("alice", "export").stdout)["jobs"]} == {"r1"}
        assert s.api("root").get("/v1/jobs/%d" % job["id"])["command"] == ["/bin/echo", "new"]
        # an administrator's prune removes only that owner's members
        assert "1 pruned" in applied("root", [], "--owner", "bob", "--prune", "--yes").stderr
        assert s.api("alice").get("/v1/jobs/r1")["state"] == "active"


if __name__ == "__main__":
    main()
