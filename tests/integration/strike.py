# SPDX-License-Identifier: Apache-2.0
# Three runs of jobs that are requests, while one process executes the action of a failpoint.
import http.client
import os
import signal

from harness import BUILD, Skip, Unreachable, wait_until


def needs_failpoints():
    with open(os.path.join(BUILD, "config.h")) as f:
        if "#define JOBSCHED_FAILPOINTS 1" not in f.read():
            raise Skip("built without --enable-failpoints")


def struck(d, spec, point, action, env=None):
    """Waits until three jobs with this spec have succeeded. The daemon is started again when it has ended. Returns whether the step was reached."""
    env = env or {}
    marks = os.path.join(d.dir, "marks-%s-%s" % (point, action.split(":")[0]))
    os.makedirs(marks)
    d.start(wait=False, env=dict(env, JOBSCHED_FAILPOINTS="%s=%s" % (point, action), JOBSCHED_FAILPOINTS_DIR=marks))
    specs = [dict(spec, retries=3, backoff="fixed:100ms", key="%s-%s-%d" % (point, action, i)) for i in range(3)]
    seen = {}

    def succeeded():
        if d.process.poll() is not None:
            d.start(wait=False, env=env)
        try:
            status, answer = d.api().call("POST", "/v1/jobs/bulk", {"jobs": specs})[:2]
            if status not in (200, 201):
                return False
            seen.update((j["id"], [r["state"] for r in d.runs(j["id"])]) for j in answer["jobs"])
        except (OSError, http.client.HTTPException, Unreachable):
            return False  # it was just killed
        return list(seen.values()) == [["succeeded"]] * 3
    try:
        wait_until("the runs succeed", 90, succeeded, 0.1)
    except AssertionError as e:
        raise AssertionError("%s=%s: %s: %s\n%s" % (point, action, e, seen, d.said()[-2000:]))
    net = d.net()
    d.stop()
    if net:  # the next one has its own failpoints
        os.kill(net, signal.SIGTERM)
        wait_until("jobsched-net has ended", 30, lambda: d.net() != net)
    return os.listdir(marks)
