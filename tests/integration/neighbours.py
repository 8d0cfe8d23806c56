# SPDX-License-Identifier: Apache-2.0
# One user takes all it can get of a shared resource: the other users, and root, still get theirs. Orders and sums are checked, not times.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import case, main, wait_until
from system import System


@case
def notices_of_one_owner_leave_slots_to_the_others():
    with System(engine_conf="notice-slots = 8\n") as s:
        s.start()
        gate = os.path.join(s.home("alice"), "gate")
        os.mkfifo(gate)
        os.chown(gate, s.uid("alice"), s.uid("alice"))
        alice, told = s.api("alice"), os.path.join(s.home("bob"), "told")
        job = s.add("alice", command=["true"], schedule=["manual"], notify=["exec:cat %s; : %d" % (gate, i) for i in range(8)])["id"]
        for _ in range(3):
            alice.post("/v1/jobs/%d/notify-test" % job)

        def under_way():
            return sum(n["tries"] == 1 and n["state"] == "waiting" for n in alice.pages("/v1/notices", "notices"))
        wait_until("alice's share of the slots is in use", 60, lambda: under_way() == 4)
        s.add("bob", command=["false"], notify=["exec:touch " + told])
        wait_until("bob's notice is sent", 60, lambda: os.path.exists(told))
        states = [n["state"] for n in alice.pages("/v1/notices", "notices")]
        assert states == ["waiting"] * 24, states
        assert under_way() == 4, "as many as remained free, and no more"
        open(gate, "w").close()  # ends the commands that wait: the slots go to the next notices
        wait_until("the next ones follow", 60, lambda: sum(n["state"] == "sent" for n in alice.pages(
            "/v1/notices", "notices")) >= 4 and under_way() == 4)


if __name__ == "__main__":
    main()
