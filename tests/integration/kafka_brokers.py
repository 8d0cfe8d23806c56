# SPDX-License-Identifier: Apache-2.0
# A Kafka cluster of librdkafka's mock brokers, and jobs that send messages to it.
import os
import queue
import subprocess
import threading

from harness import wait_until

BUILD = os.environ.get("top_builddir", "build")
ALLOW = "http-allow = 127.0.0.0/8, ::1\n"


class Brokers:
    """Three brokers in a process. self.messages has what a consumer read from the topic 'orders'."""

    def __init__(self):
        program = os.path.join(BUILD, "tests", "integration", "kafka_cluster")
        self.process = subprocess.Popen([program, "orders"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.messages, self.answers, self.addresses = [], queue.Queue(), None
        threading.Thread(target=self.read, daemon=True).start()
        wait_until("the brokers run", 60, lambda: self.addresses)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(60)

    def read(self):
        for line in self.process.stdout:
            words = line.split()
            if words[0] == "brokers":
                self.addresses = words[1]
            elif words[0] == "ok":
                self.answers.put(True)
            else:
                value = bytes.fromhex(words[5]) if len(words) > 5 and "=" not in words[5] else b""
                headers = dict(w.split("=", 1) for w in words[5:] if "=" in w)
                self.messages.append(dict(topic=words[1], partition=int(words[2]), offset=int(words[3]),
                                          key=None if words[4] == "-" else bytes.fromhex(words[4]), value=value,
                                          headers={k: bytes.fromhex(v).decode() for k, v in headers.items()}))

    def command(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        self.answers.get(timeout=60)

    def target(self, topic="orders"):
        return self.addresses + "/" + topic

    def effective(self):
        """The keys of slots, as an idempotent consumer counts them."""
        return {m["headers"]["Idempotency-Key"] for m in self.messages}

    def wait(self, n):
        wait_until("%d messages arrive" % n, 60, lambda: len(self.messages) >= n)


def attempts(d, run):
    return d.api().get("/v1/runs/%d" % run)["attempts"]


def output(d, run):
    connection = d.api().connection
    connection.request("GET", "/v1/runs/%d/output" % run)
    return connection.getresponse().read()


def send(d, target, **spec):
    """Adds a message and waits for its run."""
    run = d.wait_final(d.add(**dict(dict(kafka=target, message="text"), **spec))["id"], 90)
    return run, attempts(d, run["id"])
