# SPDX-License-Identifier: Apache-2.0
# Jobs that are Kafka messages: restarts and failures of each process.
import os
import signal
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until
from kafka_brokers import ALLOW, Brokers, attempts
from nodes import Cluster
from strike import needs_failpoints, struck


@case
def a_restart_of_the_daemon_does_not_end_or_repeat_a_message():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("down")
        jobs = [d.add(kafka=k.target(), message="text", on_lost="fail")["id"] for _ in range(3)]
        for job in jobs:
            d.wait_running(job)
        d.kill()
        d.start()
        wait_until("the runs are taken over", 30, lambda: all(d.runs(j)[0]["state"] == "running" for j in jobs))
        d.kill()
        k.command("up")
        k.wait(3)  # delivered while there is no daemon
        d.start()
        for job in jobs:
            run = d.wait_final(job, 60)
            assert run["state"] == "succeeded" and len(attempts(d, run["id"])) == 1, attempts(d, run["id"])
        assert len(k.messages) == 3 and len(k.effective()) == 3, k.messages


@case
def a_killed_jobsched_net_loses_its_messages_and_they_are_sent_again():
    with Brokers() as k, Daemon(ALLOW) as d:
        d.start()
        k.command("down")
        again = d.add(kafka=k.target(), message="again")["id"]
        never = d.add(kafka=k.target(), message="never", on_lost="fail")["id"]
        for job in (again, never):
            d.wait_running(job)
        os.kill(d.net(), signal.SIGKILL)
        assert d.wait_final(never, 60)["state"] == "lost"
        k.command("up")
        run = d.wait_final(again, 90)
        assert run["state"] == "succeeded" and [t["outcome"] for t in attempts(d, run["id"])] == ["lost", "succeeded"], attempts(d, run["id"])
        k.wait(1)
        assert [m["value"] for m in k.messages] == [b"again"], k.messages


@case
def jobsched_net_purges_the_message_of_a_stopped_daemon_before_another_node_sends_it():
    with Brokers() as k, Cluster(2, config=ALLOW) as c:
        k.command("down")
        job = c.nodes[0].add(kafka=k.target(), message="text")["id"]
        name = c.nodes[0].wait_running(job)["node_name"]
        stopped = c.nodes[int(name[1:])]
        other = c.nodes[1 - int(name[1:])]
        stopped.process.send_signal(signal.SIGSTOP)
        wait_until("the other node has the run", 90, lambda: other.wait_running(job)["node_name"] != name)
        k.command("up")
        run = other.wait_final(job, 90)
        assert run["state"] == "succeeded" and [t["outcome"] for t in attempts(other, run["id"])] == ["lost", "succeeded"], attempts(other, run["id"])
        k.wait(1)
        time.sleep(2)  # a message that was kept would have arrived by now, with the first attempt
        stopped.process.send_signal(signal.SIGCONT)
        assert [m["headers"]["Jobsched-Attempt"] for m in k.messages] == ["2"], k.messages


@case
def each_step_of_a_message_survives_the_end_of_each_process():
    """An idempotent consumer sees one effective message per slot, whatever process is killed, stopped or fails where."""
    needs_failpoints()
    steps = [("call.pre_send", "kill"), ("call.pre_send", "error:EIO"), ("call.post_answer", "kill"), ("call.post_answer", "stop:1"),
             ("call.pre_report", "kill"), ("result.post_commit_pre_ack", "kill")]
    with Brokers() as k, Daemon(ALLOW) as d:
        for n, (point, action) in enumerate(steps):
            assert struck(d, dict(kafka=k.target(), message="text"), point, action), "the step %s was not reached" % point
            wait_until("the messages arrive", 60, lambda: len(k.effective()) >= 3 * (n + 1))
            assert len(k.effective()) == 3 * (n + 1), (point, action, len(k.effective()))


main()
