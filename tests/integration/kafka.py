# SPDX-License-Identifier: Apache-2.0
# Jobs that are Kafka messages: delivery, errors, secrets, addresses.
import os
import shlex
import ssl
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from certificates import make_certificates
from harness import Daemon, case, main, wait_until
from kafka_broker import Broker
from kafka_brokers import ALLOW, Brokers, attempts, output, send

PRODUCE, INIT_PRODUCER_ID = 0, 22


@case
def a_message_has_the_headers_of_its_slot():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        d.jobctl("add", "-n", "report", "--kafka", k.target(), "--message-key", "day {DAY}", "--message", '{"day": {DAY}}', "--param", "DAY=7",
                 "--header", "X-Own: yes")
        job = d.api().get("/v1/jobs/report")["id"]
        run = d.wait_final(job, 60)
        tries = attempts(d, run["id"])
        assert run["state"] == "succeeded" and tries[0]["exit_code"] == 0, (run, tries)
        k.wait(1)
        m = k.messages[0]
        assert (m["key"], m["value"]) == (b"day 7", b'{"day": 7}'), m
        assert output(d, run["id"]).decode() == "topic orders, partition %d, offset %d\n" % (m["partition"], m["offset"]), output(d, run["id"])
        h = m["headers"]
        assert h["Idempotency-Key"].endswith("-%d" % run["id"]) and h["Jobsched-Run"] == str(run["id"]) and h["Jobsched-Attempt"] == "1", h
        assert h["Jobsched-Job"] == "report %d" % job and h["Jobsched-Slot"].endswith("Z") and h["X-Own"] == "yes", h
        assert h["traceparent"].startswith("00-") and "webhook-id" not in h, h
        shown = d.jobctl("show", "report").stdout
        assert "kafka" in shown and k.target() in shown and "message_key" in shown, shown
        again = d.jobctl("show", "--as-command", "report").stdout.replace("-n report", "-n again").replace("--name report", "--name again")
        d.jobctl(*shlex.split(again.replace("jobctl ", "", 1)))
        assert d.wait_final(d.api().get("/v1/jobs/again")["id"], 60)["state"] == "succeeded"
        with open(os.path.join(d.dir, "raw"), "wb") as f:
            f.write(b"\0raw\xff")
        d.jobctl("add", "-n", "raw", "--kafka", k.target(), "--message", "@" + f.name)
        assert d.wait_final(d.api().get("/v1/jobs/raw")["id"], 60)["state"] == "succeeded"
        k.wait(3)
        got = sorted((m["value"], m["key"]) for m in k.messages)  # partitions are read in any order
        assert got == [(b"\0raw\xff", None), (b'{"day": 7}', b"day 7"), (b'{"day": 7}', b"day 7")], k.messages


@case
def invalid_definitions_are_refused():
    with Daemon() as d:
        d.start()
        good = dict(kafka="kafka.example.org:9092/orders", message="x", secrets={"S": "file:/etc/hostname"})
        cases = [dict(kafka="kafka.example.org"), dict(kafka="/orders"), dict(kafka="a/b/c"), dict(kafka="SSL://a:1/t"), dict(kafka="a,/t"),
                 dict(kafka="a:x/t"), dict(kafka="a/" + "t" * 250), dict(command=["true"]), dict(http="GET", url="https://example.org/"),
                 dict(sasl="GSSAPI"), dict(sasl="PLAIN", sasl_user="S", sasl_password="S"), dict(sasl="SCRAM-SHA-256", sasl_user="S"),
                 dict(sasl_user="S"), dict(sasl="SCRAM-SHA-256", sasl_user="S", sasl_password="NONE"), dict(body="x"), dict(sign=["S"]),
                 dict(kafka="127.0.0.1:9092/t"), dict(kafka="kafka.example.org,[::1]:9092/t"), dict(kafka="localhost/t"),
                 dict(headers=["Idempotency-Key: x"])]
        assert d.api().call("POST", "/v1/jobs?dry_run=true", good)[0] in (200, 201)
        for bad in cases:
            status, answer = d.api().call("POST", "/v1/jobs", dict(good, **bad))[:2]
            assert status == 400, (bad, status, answer)
        status, answer = d.api().call("POST", "/v1/jobs", dict(kafka=good["kafka"]))[:2]
        assert status == 400 and answer["error"]["field"] == "message", answer
        status, answer = d.api().call("POST", "/v1/jobs", dict(command=["true"], message="x"))[:2]
        assert status == 400 and answer["error"]["field"] == "message", answer


@case
def each_error_has_its_meaning():
    retried_inside = ((6, "not the leader"), (7, "request timed out"), (56, "storage error"))
    final = ((10, "message too large"), (29, "topic authorization"), (87, "invalid record"))
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        for code, what in retried_inside:
            k.command("clear", PRODUCE)
            k.command("errors", PRODUCE, code, 2)
            run, tries = send(d, k.target(), retries=2)
            assert run["state"] == "succeeded" and len(tries) == 1, (what, tries)
        k.wait(3)
        assert len(k.messages) == 3, k.messages
        for code, what in final:
            k.command("clear", PRODUCE)
            k.command("errors", PRODUCE, code, 1)
            run, tries = send(d, k.target(), retries=2)
            assert run["state"] == "failed" and len(tries) == 1 and run["dead_at"], (what, tries)
        k.command("clear", PRODUCE)
        k.command("errors", PRODUCE, -1, 1)  # unknown server error
        run, tries = send(d, k.target(), retries=2, backoff="fixed:100ms")
        assert run["state"] == "succeeded" and [t["outcome"] for t in tries] == ["failed", "succeeded"], tries
        k.wait(4)
        assert sorted(m["headers"]["Jobsched-Attempt"] for m in k.messages) == ["1", "1", "1", "2"], k.messages


@case
def an_unknown_topic_is_final_until_it_exists():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("topic", "orders", 3)
        run, tries = send(d, k.target(), retries=2, timeout=6)
        assert run["state"] == "failed" and len(tries) == 1 and "nknown topic" in tries[0]["error"], tries
        k.command("topic", "orders", 0)
        run, tries = send(d, k.target(), timeout=6)
        assert run["state"] == "succeeded", tries
        k.wait(1)
        assert len(k.messages) == 1


@case
def brokers_without_idempotent_producers_are_a_final_failure():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("without", INIT_PRODUCER_ID)
        run, tries = send(d, k.target(), retries=2, timeout=20)
        assert run["state"] == "failed" and len(tries) == 1 and "0.11" in tries[0]["error"], tries


@case
def unreachable_brokers_time_out_before_the_attempt():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("down")
        job = d.add(kafka=k.target(), message="text", timeout=3, retries=20, backoff="fixed:100ms")["id"]
        wait_until("an attempt has timed out", 60, lambda: d.runs(job) and len(attempts(d, d.runs(job)[0]["id"])) > 1)
        first = attempts(d, d.runs(job)[0]["id"])[0]
        assert first["outcome"] == "timed_out" and "onnect" in first["error"], first
        k.command("up")
        run = d.wait_final(job, 90)
        assert run["state"] == "succeeded", attempts(d, run["id"])
        k.wait(1)
        assert len(k.messages) == 1 and k.messages[0]["headers"]["Jobsched-Attempt"] != "1", k.messages


@case
def a_cancelled_message_is_not_sent_later():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("down")
        jobs = [d.add(kafka=k.target(), message="text %d" % i)["id"] for i in range(3)]
        for job in jobs:
            d.wait_running(job)
        d.jobctl("cancel", "--running", str(jobs[1]))
        assert d.wait_final(jobs[1])["state"] == "cancelled"
        k.command("up")
        for job in (jobs[0], jobs[2]):  # the others share the producer
            run = d.wait_final(job, 90)
            assert run["state"] == "succeeded" and len(attempts(d, run["id"])) == 1, attempts(d, run["id"])
        run, _ = send(d, k.target(), message="text 3")
        assert run["state"] == "succeeded"
        k.wait(3)
        assert sorted(m["value"] for m in k.messages) == [b"text 0", b"text 2", b"text 3"], k.messages


@case
def calls_share_a_producer():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        run, _ = send(d, k.target())
        tasks = len(os.listdir("/proc/%d/task" % d.net()))
        for i in range(10):
            run, tries = send(d, k.target(), message="text %d" % i)
            assert run["state"] == "succeeded", tries
        assert len(os.listdir("/proc/%d/task" % d.net())) <= tasks + 2, "a producer has at least two threads"
        k.wait(11)
        assert len(k.effective()) == 11


@case
def the_address_of_each_broker_is_checked():
    with Brokers() as k, Broker(advertised="127.0.0.2") as stray, Daemon("http-allow = 127.0.0.1\n") as d:
        d.start()
        run, tries = send(d, "127.0.0.1:%d/orders" % stray.port, timeout=4, retries=2)  # its metadata leads elsewhere
        assert run["state"] == "failed" and len(tries) == 1 and "127.0.0.2 (loopback) is refused" in tries[0]["error"], tries
        assert not stray.produced
        run, tries = send(d, k.target())
        assert run["state"] == "succeeded", tries
        d.stop()
        d.write_config("")
        d.start()
        port = k.addresses.split(",")[0].rsplit(":", 1)[1]
        run, tries = send(d, "2130706433:%s/orders" % port, retries=2)  # resolved to 127.0.0.1
        assert run["state"] == "failed" and len(tries) == 1 and "127.0.0.1 (loopback) is refused" in tries[0]["error"], tries
        k.wait(1)
        assert len(k.messages) == 1


def secret_files(d, **values):
    for name, value in values.items():
        with open(os.path.join(d.state, name), "w") as f:
            f.write(value + "\n")
    return {name: "file:" + os.path.join(d.state, name) for name in values}


@case
def tls_is_verified_and_a_wrong_password_is_final():
    with Daemon(ALLOW) as d:
        d.start()
        pki = make_certificates(d)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki + "/server.pem", pki + "/server.key")
        context.load_verify_locations(pki + "/ca.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        secrets = dict(secret_files(d, USER="the-user", PASSWORD="the-password", WRONG="another-password"), CA="file:%s/ca.pem" % pki,
                       CERT="file:%s/client.pem" % pki, KEY="file:%s/client.key" % pki)
        spec = dict(secrets=secrets, sasl="PLAIN", sasl_user="USER", tls_ca="CA", tls_cert="CERT", tls_key="KEY")
        with Broker(context, ("the-user", "the-password")) as b:
            target = "localhost:%d/orders" % b.port
            run, tries = send(d, target, sasl_password="PASSWORD", headers=["X: {secret:USER}"], **spec)
            assert run["state"] == "succeeded" and b.logins == [("the-user", "the-password")] * len(b.logins), (tries, b.logins)
            assert len(b.produced) == 1 and b"the-user" in b.produced[0] and b"text" in b.produced[0], b.produced
            run, tries = send(d, target, sasl_password="WRONG", retries=2, **spec)
            assert run["state"] == "failed" and len(tries) == 1 and "uthentication" in tries[0]["error"], tries
            assert "another-password" not in d.said() + str(tries)
            run, tries = send(d, target, sasl_password="PASSWORD", timeout=4, **{k: v for k, v in spec.items() if not k.startswith("tls_")}, kafka_tls="yes")
            assert run["state"] == "timed_out" and "SSL" in tries[0]["error"], tries
            assert len(b.produced) == 1
        run, tries = send(d, target, **dict(spec, secrets=dict(secrets, USER="file:/nonexistent"), sasl_password="PASSWORD"))
        assert run["state"] == "failed" and tries[0]["outcome"] == "not_started" and "USER" in tries[0]["error"], tries


main()
