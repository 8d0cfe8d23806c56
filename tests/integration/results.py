# SPDX-License-Identifier: Apache-2.0
# Results of jobs: what is kept, shown, found and passed on; bad and hostile files; kills and a re-exec of the spawner.
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Daemon, case, main, wait_until


def shell(script, *args):
    return ["sh", "-c", script, "sh"] + list(args)


def run_of(d, **spec):
    job = d.add(results="yes", **spec)["id"]
    run = d.wait_final(job)
    return d.api().get("/v1/runs/%d" % run["id"])


@case
def results_are_kept_shown_found_and_passed_down_a_chain():
    with Daemon() as d:
        d.start()
        out = os.path.join(d.dir, "out")
        d.add(name="load", schedule="manual", results="yes", retries=1, backoff="fixed:50ms", command=shell(
            # the first attempt fails; its results are replaced
            'echo rows=$JOBSCHED_ATTEMPT >>"$JOBSCHED_RESULT"; echo "File=a b=c" >>"$JOBSCHED_RESULT"\n'
            '[ $JOBSCHED_ATTEMPT = 2 ] || { echo only_first=1 >>"$JOBSCHED_RESULT"; exit 1; }'))
        d.add(name="next", after=["load"], command=shell(
            'echo "$JOBSCHED_PARENT_RESULT_ROWS $JOBSCHED_PARENT_RESULT_FILE $JOBSCHED_PARENT_EXIT_CODE" >"$1"; '
            'echo ${JOBSCHED_RESULT-none} >>"$1"', out))
        first = d.api().post("/v1/jobs/load/run", {})
        wait_until("the child has run", 60, lambda: d.runs("next") and d.runs("next")[0]["ended_at"])
        with open(out) as f:
            assert f.read() == "2 a b=c 0\nnone\n"
        run = d.api().get("/v1/runs/%d" % first["id"])
        assert run["results"] == {"rows": "2", "File": "a b=c"}, run
        assert d.runs("next")[0]["results"] == {}
        shown = d.jobctl("show", "load#%d" % run["id"]).stdout
        assert "rows=2" in shown and "File=a b=c" in shown, shown
        d.add(name="other", command=shell("echo rows=2 >$JOBSCHED_RESULT"), results="yes")
        d.wait_final("other")
        found = d.api().get("/v1/runs?result=rows%3D2")["runs"]
        assert sorted(r["job_name"] for r in found) == ["load", "other"], found
        assert [r["job_name"] for r in d.api().get("/v1/runs?result=rows%3D2&job=load")["runs"]] == ["load"]
        assert d.api().get("/v1/runs?result=rows%3D1")["runs"] == []
        listed = d.jobctl("runs", "--result", "rows=2", "-o", "json").stdout
        assert '"File": "a b=c"' in listed or '"File":"a b=c"' in listed, listed
        assert d.jobctl("runs", "--result", "rows", check=False).returncode == 2


@case
def bad_lines_are_reported_and_the_file_is_bounded():
    with Daemon() as d:
        d.start()
        run = run_of(d, command=shell('printf "a=1\\nno result\\nb=2\\n" >$JOBSCHED_RESULT'))
        assert (run["state"], run["results"]) == ("succeeded", {"a": "1", "b": "2"}), run
        assert "line 2 of its results has no '='" in run["attempts"][0]["error"], run
        run = run_of(d, command=shell("yes key=value | head -c 50000000 >$JOBSCHED_RESULT"))
        assert (run["state"], run["results"]) == ("succeeded", {"key": "value"}), run
        assert "more than 16384 bytes" in run["attempts"][0]["error"], run
        # a script with six secrets has its text at descriptor 9; the results must be elsewhere
        secrets = {}
        for i in range(6):
            path = os.path.join(d.dir, "secret%d" % i)
            with open(path, "w") as f:
                f.write("hidden-value-%d\n" % i)
            secrets["S%d" % i] = "file:" + path
        run = run_of(d, secrets=secrets, script='#!/bin/sh\necho "x=$(cat $JOBSCHED_SECRET_S3) y=1" >>"$JOBSCHED_RESULT"\n')
        assert (run["state"], run["results"]) == ("succeeded", {"x": "*** y=1"}), run
        assert "hidden" not in d.jobctl("show", "#%d" % run["id"]).stdout
        # a file that the command has removed or replaced by a link to another one is not followed
        run = run_of(d, command=shell("echo a=1 >$JOBSCHED_RESULT; exec 3>&-; rm -f $JOBSCHED_RESULT; exit 0"))
        assert run["results"] == {"a": "1"}, run


@case
def results_survive_a_dead_daemon_a_new_spawner_program_and_a_new_spawner():
    with Daemon() as d:
        d.start()
        go = os.path.join(d.dir, "go")
        wide = "x" * 1000
        job = d.add(results="yes", command=shell(
            'for i in 1 2 3 4 5; do echo k$i=$2 >>$JOBSCHED_RESULT; done\n'
            'until [ -e "$1" ]; do sleep 0.1; done; echo last=1 >>$JOBSCHED_RESULT', go, wide))["id"]
        wait_until("the job runs", 60, lambda: d.runs(job) and d.runs(job)[0]["state"] == "running")
        os.kill(d.spawner(), signal.SIGHUP)  # executes its program again while the command runs
        pid = d.api().get("/v1/runs/%d/attempts" % d.runs(job)[0]["id"])["attempts"][0]["pid"]
        d.kill()
        open(go, "w").close()
        wait_until("the command has ended", 60, lambda: not os.path.exists("/proc/%d" % pid))
        os.kill(d.spawner(), signal.SIGHUP)  # with an end that no daemon has acknowledged
        saved = os.path.join(d.state, "output", "ends")
        wait_until("the end is on disk", 60, lambda: os.path.exists(saved))
        os.kill(d.spawner(), signal.SIGKILL)
        d.start()
        run = d.wait_final(job)
        assert run["state"] == "succeeded", run
        assert run["results"] == dict({"k%d" % i: wide for i in range(1, 6)}, last="1"), run["results"].keys()


main()
