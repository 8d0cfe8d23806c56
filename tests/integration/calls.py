# SPDX-License-Identifier: Apache-2.0
# Jobs that are HTTP calls: requests, statuses, secrets, addresses, restarts of each process.
import base64
import hashlib
import hmac
import http.client
import json
import os
import select
import shutil
import signal
import socket
import ssl
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from certificates import make_certificates
from harness import Daemon, case, main, wait_until
from nodes import Cluster
from strike import needs_failpoints, struck
from system import System
from web import Web

ALLOW = "http-allow = 127.0.0.0/8\n"


class Target(Web):
    """Records each request; the path says what it answers: /STATUS, /slow, /cut, /echo, /large/BYTES."""

    def __init__(self, headers=()):
        self.requests, self.times, self.left, self.release = [], [], [], threading.Event()
        self.peers = []  # subject of the client certificate of each request, and the connection

        def answer(request):
            length = int(request.headers.get("Content-Length") or 0)
            body = request.rfile.read(length)
            self.times.append(time.monotonic())
            self.requests.append((request.command, request.path, request.headers, body))
            if isinstance(request.connection, ssl.SSLSocket):
                self.peers.append((dict(request.connection.getpeercert()["subject"][0])["commonName"], request.client_address))
            word = request.path.split("/")[1].split("?")[0]
            while word == "slow" and not self.release.wait(0.05):
                if select.select([request.connection], [], [], 0)[0] and not request.connection.recv(1, socket.MSG_PEEK):
                    self.left.append(time.monotonic())  # the client has closed the connection
                    request.close_connection = True
                    return
            if word == "cut":
                request.send_response(200)
                request.send_header("Content-Length", "1000")
                request.end_headers()
                request.wfile.write(b"part")
                request.wfile.flush()
                request.close_connection = True
                return
            text = body if word == "echo" else b"x" * int(request.path.split("/")[2]) if word == "large" else b"answer"
            status = int(word) if word.isdigit() else 200
            request.send_response(status)
            for name, value in headers:
                request.send_header(name, value)
            if 300 <= status < 400 and status != 304:
                request.send_header("Location", "/200")
            request.send_header("Content-Length", "0" if status in (204, 304) or request.command == "HEAD" else str(len(text)))
            request.end_headers()
            if status not in (204, 304) and request.command != "HEAD":
                request.wfile.write(text)
        super().__init__(protocol_version="HTTP/1.1", **{"do_" + m: answer for m in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")})

    def effective(self):
        """How often each idempotency key was seen, as an idempotent target counts them."""
        return {h["Idempotency-Key"] for _, _, h, _ in self.requests}


def attempts(d, run):
    return d.api().get("/v1/runs/%d" % run)["attempts"]


def output(d, run):
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read()


def call(d, web, path="/200", **spec):
    """Adds a call and waits for its run."""
    spec = dict(dict(http="POST", url=web.url + path), **spec)
    run = d.wait_final(d.add(**spec)["id"], 60)
    return run, attempts(d, run["id"])


@case
def a_call_has_the_headers_of_its_slot_and_its_response_is_the_output():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        run, tries = call(d, web, "/echo?a=1", name="report", body='{"day": 1}', headers=["X-Own: yes"])
        method, path, headers, body = web.requests[0]
        assert run["state"] == "succeeded" and tries[0]["exit_code"] == 0, (run, tries)
        assert (method, path, body) == ("POST", "/echo?a=1", b'{"day": 1}'), web.requests
        assert output(d, run["id"]) == b'{"day": 1}'
        assert headers["Idempotency-Key"] == headers["webhook-id"] and headers["Idempotency-Key"].endswith("-%d" % run["id"])
        assert headers["Jobsched-Run"] == str(run["id"]) and headers["Jobsched-Attempt"] == "1", headers
        assert headers["Jobsched-Job"] == "report %d" % run["job"] and headers["Jobsched-Slot"].endswith("Z"), headers
        assert headers["traceparent"].startswith("00-") and headers["X-Own"] == "yes", headers
        assert headers["Content-Type"] == "application/json" and headers["User-Agent"].startswith("jobsched/"), headers
        d.stop()
        d.start()
        assert output(d, run["id"]) == b'{"day": 1}', "the output is in the store"


@case
def every_status_has_its_meaning():
    final = (300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 405, 409, 410, 422, 451)
    temporary = (408, 425, 429, 500, 501, 502, 503, 504, 599)
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        jobs = {s: d.add(http="POST", url=web.url + "/%d" % s, retries=1, backoff="fixed:1s")["id"]
                for s in (200, 201, 202, 204, 206) + final + temporary}
        for status, job in jobs.items():
            run = d.wait_final(job, 60)
            tries = attempts(d, run["id"])
            good, n = status < 300, 1 if status < 300 or status in final else 2
            assert run["state"] == ("succeeded" if good else "failed") and len(tries) == n, (status, run, tries)
            assert good or "answered %d" % status in tries[0]["error"], tries
            assert good or run["dead_at"], run
        key = {}
        for _, path, headers, _ in web.requests:
            key.setdefault(path, set()).add(headers["Idempotency-Key"])
        assert all(len(v) == 1 for v in key.values()), "all attempts of a slot have one key"


@case
def expectations_decide_about_success():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        cases = [(dict(path="/404", expect_status="404,200-204"), "succeeded"), (dict(path="/202", expect_status="200"), "failed"),
                 (dict(path="/200", expect_body="^ans.er$"), "succeeded"), (dict(path="/200", expect_body="^other$"), "failed"),
                 (dict(path="/large/5000", expect_size=4096), "failed"), (dict(path="/large/4096", expect_size=4096), "succeeded"),
                 (dict(path="/200", http="HEAD"), "succeeded"), (dict(path="/200", http="DELETE"), "succeeded")]
        for spec, state in cases:
            run, tries = call(d, web, **spec)
            assert run["state"] == state, (spec, run, tries)
        run, tries = call(d, web, "/large/100000")
        assert run["state"] == "succeeded" and tries[0]["output_bytes"] == 100000 and len(output(d, run["id"])) == 65536, tries
        for bad in (dict(expect_body="(a"), dict(expect_body="a{1,9}"), dict(expect_status="9"), dict(http="BREW"), dict(url="ftp://x"),
                    dict(headers=["Host: x"]), dict(headers=["no colon"]), dict(url="http://u:p@host/"), dict(command=["true"])):
            spec = dict(dict(http="GET", url=web.url), **bad)
            status, answer = d.api().call("POST", "/v1/jobs", spec)[:2]
            assert status == 400, (bad, status, answer)


@case
def a_server_that_asks_to_wait_is_not_called_earlier():
    with Target(headers=[("Retry-After", "3")]) as web, Daemon(ALLOW) as d:
        d.start()
        begun = time.time()
        run, tries = call(d, web, "/503", retries=1, backoff="fixed:100ms")
        assert run["state"] == "failed" and len(tries) == 2 and time.time() - begun > 3, tries


@case
def results_are_read_from_a_json_response():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        good = {"results": {"rows": 17, "file": "a.csv", "rate": 0.5, "done": True, "bad key": 1, "list": [1], "lines": "a\nb=c"}, "more": [1, 2]}
        run, tries = call(d, web, "/echo", name="report", results="yes", body=json.dumps(good))
        assert run["results"] == {"rows": "17", "file": "a.csv", "rate": "0.5", "done": "true"}, run
        assert run["state"] == "succeeded" and "'bad key'" in tries[0]["error"], tries
        assert [r["id"] for r in d.api().pages("/v1/runs?result=rows%3D17", "runs")] == [run["id"]]
        # they reach the jobs that run after the call
        out = os.path.join(d.dir, "out")
        d.add(name="parent", schedule="manual", http="POST", url=web.url + "/echo", results="yes", body=json.dumps(good))
        d.add(name="child", after="parent", command=["sh", "-c", 'echo "$JOBSCHED_PARENT_RESULT_ROWS" >"$1"', "sh", out])
        d.api().post("/v1/jobs/parent/run", {})
        wait_until("the child has run", 30, lambda: os.path.exists(out) and os.path.getsize(out))
        with open(out) as f:
            assert f.read() == "17\n"
        # responses without results, failures, and jobs that did not ask for them
        for body in ("plain", "{", "[]", '{"results": "x"}', '{"results": {}}', '{"results": {"a": 1, "a": 2}}', "[" * 100000):
            run, tries = call(d, web, "/echo", results="yes", body=body)
            assert run["state"] == "succeeded" and not run.get("results"), (body[:40], run)
        for more in (dict(), dict(results="yes", expect_status="500")):
            run, tries = call(d, web, "/echo", body='{"results": {"a": 1}}', **more)
            assert not run.get("results"), run
        run, tries = call(d, web, "/echo", results="yes", body=json.dumps({"results": {"a": 1}, "long": "x" * 70000}))
        assert run["state"] == "succeeded" and not run.get("results") and "65536 bytes" in tries[0]["error"], (run, tries)
        many = {"k%d" % i: "v" * 1000 for i in range(40)}
        run, tries = call(d, web, "/echo", results="yes", body=json.dumps({"results": many}))
        assert 16 <= len(run["results"]) <= 32 and tries[0]["error"], (len(run["results"]), tries)
        status, answer = d.api().call("POST", "/v1/jobs", dict(kafka="127.0.0.1:9092/t", message="x", results="yes"))[:2]
        assert status == 400 and "'http'" in answer["error"]["message"], answer


@case
def gone_suspends_the_job():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        job = d.add(http="POST", url=web.url + "/410", schedule=["every 1h"], on_410="suspend")["id"]
        d.jobctl("run", str(job))
        wait_until("the job is suspended", 30, lambda: d.api().get("/v1/jobs/%d" % job)["state"] == "suspended")
        assert d.api().get("/v1/jobs/%d" % job)["reason"] == "gone"
        assert "gone" in d.jobctl("why", str(job)).stdout


@case
def slow_cut_and_unreachable_targets_fail_and_are_retried():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        run, tries = call(d, web, "/slow", timeout=1)
        assert run["state"] == "timed_out" and tries[0]["outcome"] == "timed_out", (run, tries)
        web.release.set()
        run, tries = call(d, web, "/cut", retries=1, backoff="fixed:1s")
        assert run["state"] == "failed" and len(tries) == 2, tries
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            url = "http://127.0.0.1:%d/" % unused.getsockname()[1]
            run = d.wait_final(d.add(http="GET", url=url)["id"])
            assert run["state"] == "failed", run
            run = d.wait_final(d.add(http="GET", url="http://no-such-host.invalid/")["id"], 60)
            assert run["state"] == "failed", run


@case
def an_address_is_refused_when_it_is_connected():
    with Target() as web, Daemon() as d:
        d.start()
        for host in ("127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254", "[fd00:ec2::254]", "[::ffff:127.0.0.1]", "0.0.0.0"):
            status, answer = d.api().call("POST", "/v1/jobs", dict(http="GET", url="http://%s:1/" % host))[:2]
            assert status == 400 and "http-allow" in str(answer), (host, status, answer)
        told = d.jobctl("add", "--http", "POST", web.url, "--header", "X: y", check=False)
        assert told.returncode != 0 and "http-allow" in told.stderr, told
        # the check of the submission sees no literal address here; libcurl resolves both to 127.0.0.1
        port = web.url.rsplit(":", 1)[1]
        for host in ("2130706433", "0x7f000001"):
            run = d.wait_final(d.add(http="GET", url="http://%s:%s/" % (host, port), retries=2)["id"])
            tries = attempts(d, run["id"])
            assert run["state"] == "failed" and len(tries) == 1 and "127.0.0.1 (loopback) is refused" in tries[0]["error"], tries
        assert web.requests == [], web.requests


@case
def a_connection_that_another_configuration_opened_is_not_used():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        run, _ = call(d, web)
        assert run["state"] == "succeeded"
        job = d.add(http="POST", url=web.url + "/200", schedule=["every 1h"])["id"]
        d.stop()
        d.write_config("")
        d.start()
        n = len(web.requests)
        d.jobctl("run", str(job))
        run = d.wait_final(job)
        assert run["state"] == "failed" and "refused" in attempts(d, run["id"])[0]["error"], attempts(d, run["id"])
        assert len(web.requests) == n


def verify(key, headers, body):
    """Standard Webhooks, computed by another implementation."""
    raw = base64.b64decode(key[6:]) if key.startswith("whsec_") else key.encode()
    signed = b"%s.%s." % (headers["webhook-id"].encode(), headers["webhook-timestamp"].encode()) + body
    return "v1," + base64.b64encode(hmac.new(raw, signed, hashlib.sha256).digest()).decode()


@case
def secrets_are_read_at_the_start_and_shown_nowhere():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        keys = {"TOKEN": "token-of-this-test", "OLD": "whsec_" + base64.b64encode(b"old key of 24 bytes.....").decode(), "NEW": "a plain new key"+"!"*9}
        paths = {}
        for name, text in keys.items():
            paths[name] = os.path.join(d.state, name)
            with open(paths[name], "w") as f:
                f.write(text + "\n")
        spec = dict(secrets={n: "file:" + p for n, p in paths.items()}, headers=["Authorization: Bearer {secret:TOKEN}"],
                    sign=["OLD", "NEW"], body="echo token-of-this-test")
        run, tries = call(d, web, "/echo/{secret:TOKEN}", **spec)
        assert run["state"] == "succeeded", tries
        _, path, headers, body = web.requests[0]
        assert headers["Authorization"] == "Bearer token-of-this-test" and path == "/echo/token-of-this-test", headers
        assert headers["webhook-signature"].split() == [verify(keys[k], headers, body) for k in ("OLD", "NEW")], headers
        assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
        assert output(d, run["id"]) == b"echo ***", output(d, run["id"])
        shown = d.jobctl("show", str(run["job"])).stdout + d.said()
        assert "token-of-this-test" not in shown.replace("echo token-of-this-test", ""), shown
        os.unlink(paths["TOKEN"])
        run, tries = call(d, web, "/echo", **spec)
        assert run["state"] == "failed" and tries[0]["outcome"] == "not_started" and "TOKEN" in tries[0]["error"], tries
        status, answer = d.api().call("POST", "/v1/jobs", dict(http="GET", url=web.url, headers=["A: {secret:NONE}"]))[:2]
        assert status == 400 and "NONE" in str(answer), answer


@case
def proxy_variables_are_ignored_and_parameters_are_expanded():
    with Target() as web, Daemon(ALLOW) as d:
        d.start(env=dict(os.environ, http_proxy="http://127.0.0.1:9", HTTP_PROXY="http://127.0.0.1:9", ALL_PROXY="http://127.0.0.1:9"))
        run, tries = call(d, web, "/echo?day={DAY}", body='{"d": "{DAY}"}', headers=["X-Day: {DAY}"], params={"DAY": "7"})
        assert run["state"] == "succeeded", tries
        _, path, headers, body = web.requests[0]
        assert path == "/echo?day=7" and headers["X-Day"] == "7" and body == b'{"d": "7"}', web.requests
        job = d.add(http="POST", url=web.url + "/200", headers=["X: {V}"], params={"V": "1"}, schedule=["every 1h"])["id"]
        d.jobctl("run", str(job), "--param", "V=a\r\nEvil: 1")
        run = d.wait_final(job)
        assert run["state"] == "failed" and len(web.requests) == 1, (run, web.requests)


@case
def a_call_is_cancelled_at_once():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        job = d.add(http="POST", url=web.url + "/slow")["id"]
        wait_until("the request arrives", 30, lambda: web.requests)
        d.jobctl("cancel", "--running", str(job))
        assert d.wait_final(job)["state"] == "cancelled"
        web.release.set()


@case
def a_restart_of_the_daemon_does_not_end_or_repeat_a_call():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        jobs = [d.add(http="POST", url=web.url + "/slow", on_lost="fail")["id"] for _ in range(5)]
        wait_until("the requests arrive", 30, lambda: len(web.requests) == 5)
        d.kill()
        d.start()
        wait_until("the runs are taken over", 30, lambda: all(d.runs(j)[0]["state"] == "running" for j in jobs))
        d.kill()
        web.release.set()  # the calls end while there is no daemon
        d.start()
        for job in jobs:
            run = d.wait_final(job)
            assert run["state"] == "succeeded" and len(attempts(d, run["id"])) == 1, attempts(d, run["id"])
        assert len(web.requests) == 5 and len(web.effective()) == 5, web.requests


@case
def a_killed_jobsched_net_loses_its_calls_and_they_run_again_with_the_same_key():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        again = d.add(http="POST", url=web.url + "/slow")["id"]
        never = d.add(http="POST", url=web.url + "/slow", on_lost="fail")["id"]
        wait_until("the requests arrive", 30, lambda: len(web.requests) == 2)
        os.kill(d.net(), signal.SIGKILL)
        assert d.wait_final(never, 60)["state"] == "lost"
        wait_until("the call is repeated", 60, lambda: len(web.requests) == 3)
        web.release.set()
        run = d.wait_final(again)
        tries = attempts(d, run["id"])
        assert run["state"] == "succeeded" and [t["outcome"] for t in tries] == ["lost", "succeeded"], tries
        assert len(web.requests) == 3 and len(web.effective()) == 2, web.requests


@case
def killed_daemon_and_jobsched_net_lose_the_call_once():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        job = d.add(http="POST", url=web.url + "/slow")["id"]
        wait_until("the request arrives", 30, lambda: web.requests)
        net = d.net()
        d.kill()
        os.kill(net, signal.SIGKILL)
        d.start()
        wait_until("the call is repeated", 60, lambda: len(web.requests) == 2)
        web.release.set()
        run = d.wait_final(job)
        assert run["state"] == "succeeded" and len(web.effective()) == 1, attempts(d, run["id"])


@case
def a_call_waits_while_jobsched_net_cannot_be_started():
    with Target() as web, Daemon(ALLOW) as d:
        d.start(env=dict(JOBSCHED_NET_PATH="/nonexistent/jobsched-net"))
        job = d.add(http="POST", url=web.url + "/200", schedule=["every 1h"])["id"]
        d.jobctl("run", str(job))

        def reason():
            now = d.api().get("/v1/jobs/%d/why" % job)["now"]
            return now["code"] == "net" and now["message"]
        wait_until("the reason is shown", 60, reason)
        assert "jobsched-net is not running" in reason(), reason()
        assert not web.requests


@case
def a_stopped_jobsched_net_is_waited_for():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        call(d, web)
        net = d.net()
        os.kill(net, signal.SIGSTOP)
        job = d.add(http="POST", url=web.url + "/200")["id"]
        time.sleep(1)
        assert len(web.requests) == 1
        os.kill(net, signal.SIGCONT)
        assert d.wait_final(job)["state"] == "succeeded" and len(web.requests) == 2


@case
def tls_is_verified_and_certificates_of_the_job_are_used():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        pki = make_certificates(d)
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(pki + "/server.pem", pki + "/server.key")
        server.load_verify_locations(pki + "/ca.pem")
        server.verify_mode = ssl.CERT_REQUIRED
        web.server.socket = server.wrap_socket(web.server.socket, server_side=True)
        url = web.url.replace("http://127.0.0.1", "https://localhost")
        files = dict(secrets={"CA": "file:%s/ca.pem" % pki, "CERT": "file:%s/client.pem" % pki, "KEY": "file:%s/client.key" % pki})
        for spec, state in ((dict(), "failed"), (dict(files, tls_ca="CA"), "failed"),
                            (dict(files, tls_ca="CA", tls_cert="CERT", tls_key="KEY"), "succeeded")):
            run = d.wait_final(d.add(http="GET", url=url + "/200", **spec)["id"], 60)
            assert run["state"] == state, (spec, attempts(d, run["id"]))
        assert len(web.requests) == 1 and output(d, run["id"]) == b"answer"
        wrong = url.replace("localhost", "127.0.0.1")  # the certificate is for localhost
        run = d.wait_final(d.add(http="GET", url=wrong, **dict(files, tls_ca="CA", tls_cert="CERT", tls_key="KEY"))["id"], 60)
        assert run["state"] == "failed" and len(web.requests) == 1, attempts(d, run["id"])


@case
def a_tls_connection_is_used_by_calls_with_the_same_certificates_only():
    with Target() as web, Daemon(ALLOW) as d:
        d.start()
        pki = make_certificates(d, ("server", "first", "second"))
        shutil.copy(pki + "/first.pem", pki + "/wrong-ca.pem")
        server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        server.load_cert_chain(pki + "/server.pem", pki + "/server.key")
        server.load_verify_locations(pki + "/ca.pem")
        server.verify_mode = ssl.CERT_REQUIRED
        web.server.socket = server.wrap_socket(web.server.socket, server_side=True)
        url = web.url.replace("http://127.0.0.1", "https://localhost") + "/200"

        def call(name, ca="ca"):
            files = {"CA": "file:%s/%s.pem" % (pki, ca), "CERT": "file:%s/%s.pem" % (pki, name), "KEY": "file:%s/%s.key" % (pki, name)}
            run = d.wait_final(d.add(http="GET", url=url, secrets=files, tls_ca="CA", tls_cert="CERT", tls_key="KEY")["id"], 60)
            return run["state"]
        # the memory files of one call have the numbers of those of the call before
        assert [call(name) for name in ("first", "second", "first")] == ["succeeded"] * 3
        assert [name for name, _ in web.peers] == ["first", "second", "first"], web.peers
        assert call("first", "wrong-ca") == "failed" and len(web.requests) == 3, web.peers


@case
def jobsched_net_ends_the_call_of_a_stopped_daemon_before_another_node_repeats_it():
    with Target() as web, Cluster(2, config=ALLOW) as c:
        job = c.nodes[0].add(http="POST", url=web.url + "/slow")["id"]
        wait_until("the request arrives", 30, lambda: web.requests)
        name = c.nodes[0].wait_running(job)["node_name"]
        stopped = c.nodes[int(name[1:])]
        other = c.nodes[1 - int(name[1:])]
        stopped.process.send_signal(signal.SIGSTOP)
        wait_until("another node repeats the call", 60, lambda: len(web.requests) == 2)
        assert web.left and web.left[0] < web.times[1], (web.left, web.times)
        web.release.set()
        run = other.wait_final(job, 60)
        tries = attempts(other, run["id"])
        assert run["state"] == "succeeded" and [t["outcome"] for t in tries] == ["lost", "succeeded"], tries
        stopped.process.send_signal(signal.SIGCONT)
        assert len(web.requests) == 2 and len(web.effective()) == 1


@case
def in_system_mode_secrets_are_read_with_the_rights_of_the_owner():
    with Target() as web, System(engine_conf=ALLOW) as s, tempfile.TemporaryDirectory(dir="/var/lib") as room:
        os.chmod(room, 0o755)
        path = os.path.join(room, "token")
        with open(path, "w") as f:
            f.write("the token of alice")
        os.chown(path, s.uid("alice"), 0)
        os.chmod(path, 0o600)
        s.start()
        spec = dict(http="POST", url=web.url + "/echo", body="the token of alice", headers=["Authorization: {secret:T}"], secrets={"T": "file:" + path})
        run = s.wait_final("alice", s.add("alice", **spec)["id"])
        assert run["state"] == "succeeded", s.api("alice").get("/v1/runs/%d" % run["id"])
        assert web.requests[0][2]["Authorization"] == "the token of alice"
        run = s.wait_final("bob", s.add("bob", **spec)["id"])
        tries = s.api("bob").get("/v1/runs/%d" % run["id"])["attempts"]
        assert run["state"] == "failed" and "Permission denied" in tries[0]["error"] and len(web.requests) == 1, tries
        status, answer = s.api("root").call("POST", "/v1/jobs", spec)
        assert status == 400 and answer["error"]["field"] == "secrets", answer
        del spec["secrets"], spec["headers"]
        run = s.wait_final("root", s.add("root", **spec)["id"])  # root's call needs no warrant
        assert run["state"] == "succeeded" and len(web.requests) == 2, run
        assert s.api("bob").call("GET", "/v1/runs/%d/output" % run["id"])[0] == 404


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def report(url, **body):
    """Posts to a callback URL as its target does, without a token. Returns the status."""
    host, path = url.split("/", 3)[2:]
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request("POST", "/" + path, json.dumps(body), {"Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


@case
def the_target_of_an_asynchronous_call_reports_its_end_once():
    port = free_port()
    config = ALLOW + "listen = 127.0.0.1:%d\nhttp-callback-url = http://127.0.0.1:%d/\n" % (port, port)
    with Target() as web, Daemon(config) as d:
        d.start()
        d.jobctl("add", "-n", "long", "--http", "POST", web.url + "/202", "--http-async", "--retries", "2", "--backoff", "fixed:100ms", "--results")
        job = d.api().get("/v1/jobs/long")["id"]

        def callback(n):
            wait_until("the request arrives", 30, lambda: len(web.requests) >= n)
            return web.requests[n - 1][2]["Jobsched-Callback"]
        first = callback(1)
        d.wait_running(job)
        assert report(first, state="running") == 200
        assert report(first[:-1] + ("0" if first[-1] != "0" else "1"), state="succeeded") == 404, "the signature is checked"
        assert report(first, state="unknown") == 400 and report(first, state="succeeded", results=[1]) == 400 and report(first, state="running", more=1) == 400
        d.kill()
        d.start()  # jobsched-net still has the call
        d.wait_running(job)
        assert report(first, state="retry", error="no space") == 200
        second = callback(2)
        assert report(first, state="succeeded") == 404, "the first attempt has ended"
        wait_until("the end is recorded", 30, lambda: report(second, state="succeeded", output="done\n", results={"rows": 3}) == 200)
        run = d.wait_final(job)
        assert run["results"] == {"rows": "3"}, run
        tries = attempts(d, run["id"])
        assert run["state"] == "succeeded" and [t["outcome"] for t in tries] == ["failed", "succeeded"], tries
        assert "no space" in tries[0]["error"] and output(d, run["id"]) == b"done\n", tries
        assert report(second, state="succeeded") == 404 and len(web.requests) == 2
        run, tries = call(d, web, "/202", http_async="yes", timeout=1)
        assert run["state"] == "timed_out" and "not reported" in tries[0]["error"], tries
        run, tries = call(d, web, "/200", http_async="yes")
        assert run["state"] == "succeeded", "the target can also answer at once"
        waits = d.add(http="POST", url=web.url + "/202", http_async="yes")["id"]
        last = callback(5)
        d.wait_running(waits)
        d.jobctl("cancel", "--running", str(waits))
        assert d.wait_final(waits)["state"] == "cancelled" and report(last, state="running") == 404
    with Daemon() as d:
        d.start()
        status, answer = d.api().call("POST", "/v1/jobs", dict(http="POST", url="https://example.org/", http_async="yes"))[:2]
        assert status == 400 and "http-callback-url" in str(answer), answer


@case
def each_step_of_a_call_survives_the_end_of_each_process():
    """An idempotent target sees one effective call per slot, whatever process is killed, stopped or fails where."""
    needs_failpoints()
    steps = [("call.pre_send", "kill"), ("call.pre_send", "stop:1"), ("call.pre_send", "error:EIO"), ("call.post_answer", "kill"),
             ("call.post_answer", "stop:1"), ("call.pre_report", "kill"), ("call.pre_report", "stop:1"), ("grant.pre_send", "kill"),
             ("grant.post_commit_pre_spawn", "kill"), ("result.pre_commit", "kill"), ("result.post_commit", "kill"),
             ("result.post_commit_pre_ack", "kill")]
    with Target() as web, Daemon(ALLOW) as d:
        for n, (point, action) in enumerate(steps):
            assert struck(d, dict(http="POST", url=web.url + "/200"), point, action), "the step %s was not reached" % point
            assert len(web.effective()) == 3 * (n + 1), (point, action, len(web.effective()))


main()
