# SPDX-License-Identifier: Apache-2.0
# The failpoints, and how a scenario reaches each: the number of the passage, the process, and the event that leads there.
import os
import re
from dataclasses import dataclass

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "base", "failpoint.c")


@dataclass
class Point:
    nth: int = 1            # number of the passage that fails, with several nodes
    alone: int = 0          # ... with one node; 0: the same
    where: str = "engine"   # process: engine, spawner, child (between fork and exec)
    how: str = "run"        # event that leads there, see Case.provoke
    inside: bool = False    # a transaction is open
    error: str = "EIO"      # error to inject; None: this step cannot fail
    server_error: str = None  # ... with PostgreSQL
    stores: tuple = ("one", "sqlite", "postgres")
    several: str = None     # 'how' with several nodes


def pair(name, pre="pre_commit", post="post_commit", **given):
    return {"%s.%s" % (name, pre): Point(inside=True, **given), "%s.%s" % (name, post): Point(**given)}


SEVERAL, FILES = ("sqlite", "postgres"), ("one", "sqlite")
POINTS = {
    **pair("submit", post="post_commit_pre_reply"),
    **pair("mat", nth=2),
    **pair("grant", post="post_commit_pre_spawn", nth=3),
    "grant.pre_send": Point(nth=3, error="EAGAIN"),
    **pair("start", nth=2),
    **pair("result", nth=3),
    "result.post_commit_pre_ack": Point(nth=3, error=None),
    **pair("retry"),
    **pair("dead"),
    **pair("lost", how="spawner-dies", several="node-dies"),
    **pair("giveback", how="no-fork"),
    **pair("cancel"),
    **pair("delete"),
    **pair("renew", nth=8, alone=1),
    "lead.pre_take": Point(inside=True, several="leader-dies", server_error="ECONNRESET"),
    "lead.post_take": Point(several="leader-dies"),
    # a leader without peers renews a long lease: the sixth renewal is one of the short lease
    "lead.pre_renew": Point(nth=6, inside=True, stores=SEVERAL, server_error="ECONNRESET"),
    **pair("reap", how="node-dies", stores=SEVERAL),
    **pair("spread", several="leader-dies"),
    **pair("adopt", how="engine-restarts"),
    **pair("leave", how="engine-leaves"),
    "checkpoint.pre": Point(stores=FILES),
    "checkpoint.post": Point(stores=FILES),
    "spawn.pre_fork": Point(nth=3, where="spawner", error="EAGAIN"),
    "spawn.post_fork_pre_record": Point(nth=3, where="spawner", error=None),
    "spawn.child_pre_drop": Point(nth=3, where="child", error="EAGAIN"),
    "spawn.child_pre_exec": Point(nth=3, where="child", error="EAGAIN"),
    "spawn.post_record": Point(nth=3, where="spawner", error=None),
    "cancel.pre_signal": Point(where="spawner", error=None),
    "cancel.post_signal": Point(where="spawner", error=None),
    "end.post_wait_pre_result": Point(nth=3, where="spawner", error=None),
    "end.pre_report": Point(nth=3, where="spawner", error=None),
    "end.post_result_pre_rename": Point(where="spawner", how="spawner-stops"),
    "reload.pre_exec": Point(where="spawner", how="spawner-reloads"),
}
# migrate.step has its own cases, because it runs before the store exists; the points of calls, of
# the archive and of the state of runs are in integration/calls.py, archive_faults.py and two_nodes.py
ELSEWHERE = {"migrate.step", "state.pre_part", "call.pre_send", "call.post_answer", "call.pre_report", "storage.pre_send", "storage.post_answer",
             "prune.pre_commit", "prune.post_commit"}


def all_named():
    """The names in the source; the table above must have each."""
    with open(SOURCE) as f:
        return set(re.findall(r'^\t\[FP_[A-Z_]+\] = \{"([a-z_.]+)"', f.read(), re.M))
