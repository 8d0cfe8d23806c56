# SPDX-License-Identifier: Apache-2.0
# Tests W3C trace context and the export of spans to a receiver for OTLP over HTTP; also the JSON log.
import http.server
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import BUILD, Connection, Daemon, case, main, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = "00-%s-%s-01" % (TRACE, SPAN)
SHOW = ["sh", "-c", 'echo "$TRACEPARENT|$TRACESTATE|$BAGGAGE"']


class Receiver:
    """Accepts OTLP requests; 'refuse' is the number of requests that are answered with 503 first."""

    def __init__(self, refuse=0):
        self.spans, self.refused, self.requests = [], 0, []
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.requests.append((self.path, self.headers["Content-Type"]))
                status = 503 if receiver.refused < refuse else 200
                receiver.refused += status == 503
                if status == 200:
                    for resource in json.loads(body)["resourceSpans"]:
                        names = {a["key"]: a["value"] for a in resource["resource"]["attributes"]}
                        assert names["service.name"] == {"stringValue": "jobsched"}
                        for scope in resource["scopeSpans"]:
                            receiver.spans += scope["spans"]
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d" % self.server.server_address[1]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def attributes(span):
    return {a["key"]: list(a["value"].values())[0] for a in span["attributes"]}


def post(d, path, body, headers):
    connection = Connection(d.socket, 30)
    connection.request("POST", path, json.dumps(body), headers)
    answer = connection.getresponse()
    text = json.loads(answer.read())
    connection.close()
    assert answer.status == 201, (answer.status, text)
    return text


def output(d, run):
    connection = Connection(d.socket, 30)
    connection.request("GET", "/v1/runs/%d/output" % run)
    text = connection.getresponse().read().decode().strip()
    connection.close()
    return text.split("|")


@case
def a_submission_passes_its_trace_context_to_the_command():
    with Daemon() as d:
        d.start()
        job = post(d, "/v1/jobs", {"command": SHOW}, {"traceparent": PARENT, "tracestate": "a=b", "baggage": "k=v"})
        assert job["traceparent"] == PARENT
        parent, state, baggage = output(d, d.wait_final(job["id"])["id"])
        version, trace, span, flags = parent.split("-")
        assert (version, trace, flags, state, baggage) == ("00", TRACE, "01", "a=b", "k=v") and span != SPAN
        # an invalid header is ignored, as the specification demands; then the run has a trace of its own
        job = post(d, "/v1/jobs", {"command": SHOW}, {"traceparent": PARENT.replace("4bf", "XYZ"), "tracestate": "a=b"})
        parent, state, baggage = output(d, d.wait_final(job["id"])["id"])
        assert parent.split("-")[1] not in (TRACE, "0" * 32) and state == baggage == ""
        assert parent.endswith("-00")  # there is no receiver
        status, answer = d.api().call("POST", "/v1/jobs", {"command": SHOW, "traceparent": "00-x"})
        assert status == 400 and answer["error"]["field"] == "traceparent"


@case
def jobctl_takes_the_context_of_its_environment():
    with Daemon() as d:
        d.start()
        d.env.update(TRACEPARENT=PARENT, TRACESTATE="s=1", BAGGAGE="b=2")
        d.jobctl("add", "--name", "once", "--wait", "--", *SHOW)
        assert output(d, d.runs("once")[0]["id"])[0].split("-")[1] == TRACE
        for name in ("TRACEPARENT", "TRACESTATE", "BAGGAGE"):
            d.env.pop(name)
        d.jobctl("add", "--name", "often", "--every", "1h", "--", *SHOW)
        d.env.update(TRACEPARENT=PARENT, TRACESTATE="s=1", BAGGAGE="b=2")
        d.jobctl("run", "often", "--wait")
        parent, state, baggage = output(d, d.runs("often")[-1]["id"])
        assert (parent.split("-")[1], state, baggage) == (TRACE, "s=1", "b=2")


@case
def a_repeated_submission_with_another_trace_is_the_same_submission():
    with Daemon() as d:
        d.start()
        first = post(d, "/v1/jobs", {"command": SHOW, "key": "k", "name": "n", "schedule": ["PT1H"], "tz": "UTC"}, {"traceparent": PARENT})
        status, again = d.api().call("POST", "/v1/jobs", {"command": SHOW, "key": "k", "name": "n", "schedule": ["PT1H"], "tz": "UTC",
                                                          "traceparent": PARENT.replace("4bf", "abc")})
        assert status == 200 and again["existed"] and again["id"] == first["id"] and again["traceparent"] == PARENT


def metrics(d):
    connection = Connection(d.socket, 30)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text.splitlines()


@case
def a_receiver_gets_the_spans_of_a_retried_run():
    with Receiver(refuse=1) as receiver, Daemon("otlp = %s\notlp-interval = 1\n" % receiver.url) as d:
        d.start()
        job = post(d, "/v1/jobs", {"name": "fails", "command": ["sh", "-c", "exit 3"], "retries": 1, "backoff": "fixed:10ms"},
                   {"traceparent": PARENT})
        run = d.wait_final(job["id"])
        wait_until("the spans have arrived", 60, lambda: len(receiver.spans) == 3)
        assert {r for r in receiver.requests} == {("/v1/traces", "application/json")} and receiver.refused == 1
        assert {s["traceId"] for s in receiver.spans} == {TRACE}
        root = [s for s in receiver.spans if s["parentSpanId"] == SPAN]
        attempts = [s for s in receiver.spans if s["name"] == "attempt"]
        assert len(root) == 1 and len(attempts) == 2 and len({s["spanId"] for s in receiver.spans}) == 3
        assert root[0]["name"] == "run fails" and root[0]["status"]["code"] == 2
        assert {s["parentSpanId"] for s in attempts} == {root[0]["spanId"]}
        assert sorted(attributes(s)["jobsched.attempt"] for s in attempts) == ["1", "2"]
        assert all(attributes(s)["process.exit.code"] == "3" and attributes(s)["jobsched.run"] == str(run["id"]) for s in attempts)
        for s in attempts:
            assert int(root[0]["startTimeUnixNano"]) <= int(s["startTimeUnixNano"]) <= int(s["endTimeUnixNano"]) \
                <= int(root[0]["endTimeUnixNano"])
        # the daemon counts a request when its answer has arrived, which is after the receiver has the spans
        wait_until("the spans are counted", 60, lambda: {'jobsched_spans_total{result="exported"} 3',
                                                         'jobsched_otlp_requests_total{result="failed"} 1'} <= set(metrics(d)))


@case
def each_run_of_a_recurring_job_has_a_trace_with_a_link():
    with Receiver() as receiver, Daemon("otlp = %s/\notlp-interval = 1\n" % receiver.url) as d:
        d.start()
        post(d, "/v1/jobs", {"name": "often", "command": SHOW, "schedule": ["PT1S"], "tz": "UTC"}, {"traceparent": PARENT})
        wait_until("two runs have arrived", 60, lambda: len([s for s in receiver.spans if s["name"] == "run often"]) >= 2)
        runs = [s for s in receiver.spans if s["name"] == "run often"]
        assert len({s["traceId"] for s in runs}) == len(runs) and TRACE not in {s["traceId"] for s in runs}
        assert all(s["links"] == [{"traceId": TRACE, "spanId": SPAN}] and "parentSpanId" not in s for s in runs)


@case
def spans_beyond_the_queue_are_dropped_and_counted():
    with Daemon("otlp = http://127.0.0.1:9\notlp-queue = 2\notlp-interval = 3600\n") as d:
        d.start()
        for i in range(3):
            d.wait_final(d.add(command=["true"])["id"])
        wait_until("the spans are counted", 60, lambda: {'jobsched_spans_total{result="dropped"} 4',
                                                         "jobsched_spans_waiting 2"} <= set(metrics(d)))


@case
def a_submission_that_is_not_sampled_sends_no_spans():
    with Receiver() as receiver, Daemon("otlp = %s\notlp-interval = 1\n" % receiver.url) as d:
        d.start()
        quiet = post(d, "/v1/jobs", {"name": "quiet", "command": SHOW}, {"traceparent": PARENT[:-1] + "0"})
        assert output(d, d.wait_final(quiet["id"])["id"])[0].endswith("-00")
        d.wait_final(d.add(command=SHOW, name="loud")["id"])
        wait_until("the other run has arrived", 60, lambda: "run loud" in [s["name"] for s in receiver.spans])
        assert "run quiet" not in [s["name"] for s in receiver.spans]


@case
def a_wrong_url_is_refused_at_the_start():
    with Daemon("otlp = localhost:4318\n") as d:
        status, said = d.run()
        assert status == 78 and "'otlp' is 'localhost:4318', not a URL" in said, (status, said)


@case
def the_log_has_one_json_object_per_line_if_configured():
    with Daemon('log-format = json\nnode-name = n1\n') as d:
        d.start()
        d.add(command=["true"], schedule=["every 1h"], name='x')
        d.jobctl("pause", "x")
        d.stop()
        lines = [json.loads(line) for line in d.said().splitlines() if line.startswith("{")]
        assert len(lines) >= 4 and all(l["program"] == "jobschedd" and l["level"] == "info" and l["time"] and l["message"] for l in lines)
        assert [l for l in lines if l.get("job") == 1 and l.get("node") == "n1"]
        # the spawner follows the setting of the daemon that starts it
        with open(os.path.join(d.runtime, "jobsched", "spawner.log")) as f:
            lines = [json.loads(line) for line in f.read().splitlines()]
        assert lines and all(l["program"] == "jobsched-spawner" and l["message"] for l in lines), lines
    for program in ("jobsched-spawner", "jobsched-net"):
        r = subprocess.run([os.path.join(BUILD, program), "--log-format", "xml"], capture_output=True, text=True, check=False)
        assert r.returncode == 2 and ("'xml' is not text or json" in r.stderr or "--help" in r.stderr), (program, r)


main()
