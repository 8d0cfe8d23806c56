# SPDX-License-Identifier: Apache-2.0
# Who a job is: users, groups, environment, directory, and what the root spawner refuses whatever the engine says.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main
from system import System


def refused(s, user, job):
    """The attempts of a job that was not started."""
    run = s.wait_final(user, job)
    assert run["state"] == "failed", run
    return s.attempts(user, run["id"])


@case
def a_job_runs_as_its_owner_with_all_groups():
    with System() as s:
        s.start()
        for user in ("alice", "bob", "carol"):
            said = s.run_job(user, "sh", "-c", "id -u; id -ru; id -g; id -rg; id -G | tr ' ' '\\n' | sort -n | xargs")
            uid = str(s.uid(user))
            groups = " ".join(map(str, sorted([s.uid(user), *s.gids(user)])))
            assert said.split("\n")[:5] == [uid, uid, uid, uid, groups], (user, said)


if __name__ == "__main__":
    main()
