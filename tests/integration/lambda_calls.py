# SPDX-License-Identifier: Apache-2.0
# Jobs that invoke AWS Lambda functions: signatures, credentials, results, restarts of each process.
import base64
import json
import os
import shlex
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from aws_server import Aws
from harness import Daemon, case, main, wait_until
from strike import needs_failpoints, struck
from system import System

KEYS = dict(AWS_ACCESS_KEY_ID="AKIDTEST", AWS_SECRET_ACCESS_KEY="secret/of+the=test")


def config(aws):
    return "lambda-endpoint = %s/\n" % aws.url


def attempts(d, run):
    return d.api().get("/v1/runs/%d" % run)["attempts"]


def output(d, run):
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read()


def invoke(d, function, **spec):
    """Adds an invocation and waits for its run."""
    run = d.wait_final(d.add(**dict({"lambda": function, "region": Aws.region}, **spec))["id"], 60)
    return run, attempts(d, run["id"])


@case
def an_invocation_is_signed_and_its_response_and_log_are_the_output():
    with Aws() as aws, Daemon(config(aws)) as d:
        d.start(env=KEYS)
        d.jobctl("add", "-n", "report", "--lambda", "echo:$LATEST", "--region", aws.region, "--body", '{"day": {DAY}}', "--param", "DAY=7")
        run = d.wait_final(d.api().get("/v1/jobs/report")["id"], 60)
        tries = attempts(d, run["id"])
        assert run["state"] == "succeeded" and tries[0]["exit_code"] == 0, (tries, aws.errors)
        c = aws.calls[0]
        assert (c["name"], c["query"], c["body"]) == ("echo", "Qualifier=%24LATEST", b'{"day": 7}'), c
        h = c["headers"]
        assert h["X-Amz-Invocation-Type"] == "RequestResponse" and h["X-Amz-Log-Type"] == "Tail", h
        context = json.loads(base64.b64decode(h["X-Amz-Client-Context"]))["custom"]
        for name in ("Idempotency-Key", "Jobsched-Job", "Jobsched-Run", "Jobsched-Attempt", "Jobsched-Slot", "traceparent"):
            assert context[name] == h[name], (name, context)
        assert h["Jobsched-Job"] == "report %d" % run["job"] and h["Idempotency-Key"].endswith("-%d" % run["id"])
        assert output(d, run["id"]) == b'{"day": 7}\nSTART\nline of the log\nEND\n', output(d, run["id"])
        shown = d.jobctl("show", "report").stdout
        assert "lambda" in shown and "echo:$LATEST" in shown and aws.region in shown, shown
        again = d.jobctl("show", "--as-command", "report").stdout.replace("-n report", "-n again").replace("--name report", "--name again")
        d.jobctl(*shlex.split(again.replace("jobctl ", "", 1)))
        assert d.wait_final(d.api().get("/v1/jobs/again")["id"], 60)["state"] == "succeeded"
        d.jobctl("add", "-n", "event", "--lambda", "echo:prod", "--region", aws.region, "--lambda-event", "yes", "--body", "{}")
        run = d.wait_final(d.api().get("/v1/jobs/event")["id"], 60)
        h = aws.calls[2]["headers"]
        assert run["state"] == "succeeded" and h["X-Amz-Invocation-Type"] == "Event" and h["X-Amz-Log-Type"] is None, h
        assert aws.calls[2]["query"] == "Qualifier=prod" and not aws.errors, aws.errors
        run, tries = invoke(d, "echo")
        assert run["state"] == "succeeded" and aws.calls[3]["body"] == b"" and aws.calls[3]["query"] == "", tries
        run, tries = invoke(d, "large")
        assert run["state"] == "succeeded" and len(output(d, run["id"])) == 65536 and output(d, run["id"]).endswith(b"x\nSTART\nline of the log\nEND\n")
        assert "secret/of+the=test" not in d.said()


@case
def each_answer_has_its_meaning():
    final, temporary = (400, 403, 404, 409, 413, 415), (429, 500, 502, 503)
    with Aws() as aws, Daemon(config(aws)) as d:
        d.start(env=KEYS)
        jobs = {s: d.add(**{"lambda": "status-%d" % s, "region": aws.region, "retries": 1, "backoff": "fixed:100ms"})["id"] for s in final + temporary}
        for status, job in jobs.items():
            run = d.wait_final(job, 60)
            tries = attempts(d, run["id"])
            assert run["state"] == "failed" and len(tries) == (1 if status in final else 2), (status, tries)
            assert "answered %d" % status in tries[0]["error"] and "as asked" in tries[0]["error"], tries
        run, tries = invoke(d, "fails", retries=1, backoff="fixed:100ms")
        assert run["state"] == "failed" and len(tries) == 2 and "Unhandled" in tries[0]["error"] and "no space" in tries[0]["error"], tries
        assert b"line of the log" in output(d, run["id"])
        run, tries = invoke(d, "cut", retries=1, backoff="fixed:100ms")
        assert run["state"] == "failed" and len(tries) == 2, tries
        run, tries = invoke(d, "slow", timeout=1)
        assert run["state"] == "timed_out", tries
        job = d.add(**{"lambda": "throttled", "region": aws.region, "retries": 3, "backoff": "fixed:100ms"})["id"]
        wait_until("it is throttled", 60, lambda: [c for c in aws.calls if c["name"] == "throttled"])
        aws.release.set()
        run = d.wait_final(job, 60)
        calls = [c for c in aws.calls if c["name"] == "throttled"]
        assert run["state"] == "succeeded" and calls[1]["at"] - calls[0]["at"] > 0.9, attempts(d, run["id"])
        assert len({c["headers"]["Idempotency-Key"] for c in calls}) == 1 and not aws.errors, aws.errors


@case
def invalid_definitions_are_refused():
    with Daemon() as d:
        d.start()
        good = {"lambda": "report", "region": "eu-central-1"}
        assert d.api().call("POST", "/v1/jobs?dry_run=true", good)[0] in (200, 201)
        for bad in ({"lambda": ""}, {"lambda": "a b"}, {"lambda": "a:"}, {"lambda": "a:b:c"}, {"lambda": "a/../b"}, {"region": "EU"}, {"region": "a.b"},
                    {"region": "x@evil.example"}, {"command": ["true"]}, {"url": "https://example.org/"}, {"message": "x"}, {"kafka": "a/b"}):
            status, answer = d.api().call("POST", "/v1/jobs", dict(good, **bad))[:2]
            assert status == 400, (bad, status, answer)
        status, answer = d.api().call("POST", "/v1/jobs", {"lambda": "report"})[:2]
        assert status == 400 and answer["error"]["field"] == "region", answer


@case
def credentials_come_from_each_source_and_are_cached():
    with Aws() as aws, Daemon(config(aws)) as d:
        none = {k: "" for k in KEYS}
        path = os.path.join(d.dir, "credentials")
        with open(path, "w") as f:
            f.write("[default]\naws_access_key_id = WRONG\naws_secret_access_key = WRONG\n[test]\naws_access_key_id=AKIDTEST\n"
                    "aws_secret_access_key = secret/of+the=test\n")
        container = dict(none, AWS_CONTAINER_CREDENTIALS_FULL_URI=aws.url + "/container", AWS_CONTAINER_AUTHORIZATION_TOKEN="container-token")
        instance = dict(none, AWS_EC2_METADATA_SERVICE_ENDPOINT=aws.url)
        for n, env in enumerate((dict(none, AWS_SHARED_CREDENTIALS_FILE=path, AWS_PROFILE="test"), container, instance)):
            d.start(env=env)
            for _ in range(3):
                run, tries = invoke(d, "echo")
                assert run["state"] == "succeeded", (env, tries, aws.errors)
            assert len(aws.fetches) == n, "the keys are cached: %s" % aws.fetches
            net = d.net()
            d.stop()
            os.kill(net, signal.SIGTERM)
            wait_until("jobsched-net has ended", 30, lambda: d.net() != net)
        d.start(env=instance)
        aws.slow_keys, n = 2, len(aws.fetches)
        jobs = [d.add(**{"lambda": "echo", "region": aws.region})["id"] for _ in range(5)]
        status = d.api().get("/v1/status")  # jobsched-net and the daemon go on
        assert status and all(d.wait_final(j, 60)["state"] == "succeeded" for j in jobs)
        assert len(aws.fetches) == n + 1, "five calls wait for one fetch: %s" % aws.fetches
        aws.slow_keys = 0
        net = d.net()
        d.stop()
        os.kill(net, signal.SIGTERM)
        wait_until("jobsched-net has ended", 30, lambda: d.net() != net)
        d.start(env=dict(none, AWS_EC2_METADATA_DISABLED="true"))
        run, tries = invoke(d, "echo")
        assert run["state"] == "failed" and "credentials" in tries[0]["error"], tries


@case
def keys_are_fetched_again_before_they_expire_and_after_a_refusal():
    with Aws() as aws, Daemon(config(aws)) as d:
        del aws.secrets["AKIDTEST"]
        aws.lifetime = 60  # less than the margin of five minutes
        d.start(env=dict({k: "" for k in KEYS}, AWS_CONTAINER_CREDENTIALS_FULL_URI=aws.url + "/container",
                         AWS_CONTAINER_AUTHORIZATION_TOKEN="container-token"))
        for _ in range(2):
            run, tries = invoke(d, "echo")
            assert run["state"] == "succeeded", tries
        assert len(aws.fetches) == 2, aws.fetches
        aws.lifetime = 3600
        run, tries = invoke(d, "echo")
        assert run["state"] == "succeeded" and len(aws.fetches) == 3, tries
        aws.secrets = {k: v for k, v in aws.secrets.items() if k == "ASIATEST2"}
        aws.secrets["OTHER"] = ("x", None)  # two keys: the function 'expired' refuses
        run, tries = invoke(d, "expired", retries=2, backoff="fixed:100ms")
        assert run["state"] == "succeeded" and len(tries) == 2 and len(aws.fetches) == 4, (tries, aws.fetches)
        assert "expired" in tries[0]["error"], tries


@case
def a_wrong_secret_is_final():
    with Aws() as aws, Daemon(config(aws)) as d:
        d.start(env=dict(KEYS, AWS_SECRET_ACCESS_KEY="another"))
        run, tries = invoke(d, "echo", retries=2)
        assert run["state"] == "failed" and len(tries) == 1 and "wrong signature" in aws.errors[0] and not aws.calls, (tries, aws.errors)


@case
def an_invocation_is_cancelled_and_survives_a_restart_of_the_daemon():
    with Aws() as aws, Daemon(config(aws)) as d:
        d.start(env=KEYS)
        job = d.add(**{"lambda": "slow", "region": aws.region})["id"]
        wait_until("the request arrives", 30, lambda: aws.calls)
        d.jobctl("cancel", "--running", str(job))
        assert d.wait_final(job)["state"] == "cancelled"
        wait_until("the connection is closed", 30, lambda: aws.left)
        job = d.add(**{"lambda": "slow", "region": aws.region, "on_lost": "fail"})["id"]
        wait_until("the request arrives", 30, lambda: len(aws.calls) == 2)
        d.kill()
        aws.release.set()
        d.start(env=KEYS)
        run = d.wait_final(job, 60)
        assert run["state"] == "succeeded" and len(aws.calls) == 2, attempts(d, run["id"])


@case
def in_system_mode_the_administrator_lists_the_functions():
    with Aws() as aws, System(engine_conf=config(aws) + "lambda-functions = alice:echo-*, ping\n") as s:
        s.start()
        for user, function, status in (("alice", "echo-1", 201), ("alice", "other", 403), ("bob", "echo-1", 403), ("bob", "ping", 201), ("root", "other", 403)):
            spec = {"lambda": function, "region": aws.region, "schedule": ["every 1h"]}
            got, answer = s.api(user).call("POST", "/v1/jobs", spec)[:2]
            assert got == status, (user, function, got, answer)
            assert status == 201 or "lambda-functions" in str(answer), answer
        job = s.add("bob", **{"lambda": "ping", "region": aws.region, "schedule": ["every 1h"]})["id"]
        got, answer = s.api("bob").call("PATCH", "/v1/jobs/%d" % job, {"lambda": "other"})[:2]
        assert got == 403, (got, answer)


@case
def each_step_of_an_invocation_survives_the_end_of_each_process():
    """An idempotent function sees one effective invocation per slot, whatever process is killed, stopped or fails where."""
    needs_failpoints()
    steps = [("call.pre_send", "kill"), ("call.pre_send", "error:EIO"), ("call.post_answer", "kill"), ("call.post_answer", "stop:1"),
             ("call.pre_report", "kill"), ("result.post_commit_pre_ack", "kill")]
    with Aws() as aws, Daemon(config(aws)) as d:
        for n, (point, action) in enumerate(steps):
            assert struck(d, {"lambda": "echo", "region": aws.region}, point, action, KEYS), "the step %s was not reached" % point
            assert len(aws.effective()) == 3 * (n + 1), (point, action, len(aws.effective()))


main()
