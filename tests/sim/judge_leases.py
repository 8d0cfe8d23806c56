# SPDX-License-Identifier: Apache-2.0
# Judges the journal of sim_leases: leaders, terms, leases, departures and segments. Shares no code with the product.
"""usage: judge_leases.py JOURNAL

The first line is 'world NODES LEASE RUN-LEASE TAKEOVER SEGMENTS'. Each other line begins with the time in microseconds:
  T grant N ID TERM LEADS   the store has renewed the lease of ID; LEADS: and the leader lease
  T trust|distrust N ID     the node begins or ceases to trust its lease; T lead|unlead N ID: ... the leader lease
  T kill N ID AT            its spawner will kill its runs at AT; 0: no deadline
  T fault N KIND            a fault begins; T healed N ID: it ends; T leave N ID: an orderly departure; T again N ID: opened again
  T members ID=SEGMENTS...  the open nodes and how many segments each has
"""
import sys

SETTLED = 3  # leases after its last fault a node is healthy


class Judge:
    def __init__(self, words):
        self.nodes, self.lease, self.run_lease, self.takeover, self.segments = map(int, words)
        self.found, self.leader, self.term, self.holder = [], None, 0, None
        self.granted, self.kills, self.left = {}, {}, set()
        self.faulty, self.healed = {}, {n: 0 for n in range(self.nodes)}
        self.open, self.last_led, self.now, self.lines = {}, 0, 0, 0
        self.longest = 0

    def say(self, text):
        self.found.append("%d s: %s" % (self.now // 1000000, text))

    def grant(self, n, node, term, leads):
        if node in self.left:
            return  # a renewal that was sent before the departure
        term = int(term)
        self.granted[node] = self.now + self.lease
        if term < self.term:
            self.say("the term went from %d to %d" % (self.term, term))
        if leads == "1":
            if term == self.term and self.holder not in (None, node):
                self.say("term %d was held by %s and %s" % (term, self.holder, node))
            self.holder = node
        elif term > self.term:
            self.holder = None
        self.term = max(self.term, term)

    def trust(self, n, node):
        if self.granted.get(node, 0) <= self.now:
            self.say("%s trusts a lease that the store does not know" % node)

    def distrust(self, n, node):
        if node in self.granted and self.granted[node] < self.now - self.slack:
            self.say("%s trusted its lease %.3f s too long" % (node, (self.now - self.granted[node]) / 1e6))

    def lead(self, n, node):
        if self.leader is not None:
            self.say("%s leads while %s leads" % (node, self.leader))
        self.leader = node

    def unlead(self, n, node):
        if self.leader == node:
            self.leader = None

    def kill(self, n, node, at):
        self.kills[node] = int(at)

    def again(self, n, node):
        self.kills.pop(node, None)  # the daemon ends its runs before it opens the node again

    def leave(self, n, node):
        self.left.add(node)

    def fault(self, n, kind):
        self.faulty[int(n)] = kind

    def healed_(self, n, node):
        self.faulty.pop(int(n), None)
        self.healed[int(n)] = self.now

    def members(self, *words):
        now = {w.rsplit("=", 1)[0]: int(w.rsplit("=", 1)[1]) for w in words}
        names = {node.split("-")[0] for node in now}
        for node in set(self.open) - set(now) - self.left:
            if node.split("-")[0] in names:
                continue  # a new daemon of the same node has taken over from the crashed one, with its runs
            if self.kills.get(node, 0) > self.now:
                self.say("%s was given up %.3f s before its runs are killed" % (node, (self.kills[node] - self.now) / 1e6))
            if self.granted.get(node, 0) > self.now:
                self.say("%s was given up with a lease of %.3f s" % (node, (self.granted[node] - self.now) / 1e6))
        self.open = now
        total = sum(now.values())
        if total > self.segments:
            self.say("%d segments are assigned" % total)
        alive = [v for k, v in now.items() if self.granted.get(k, 0) > self.now and k not in self.left]
        if total == self.segments and alive and max(alive) > -(-self.segments // len(alive)) + 1:
            self.say("a node has %d of %d segments, %d nodes are alive" % (max(alive), self.segments, len(alive)))

    def check_leader(self):
        """A usable leader is missing for at most the takeover time while a healthy node exists."""
        usable = self.leader is not None and self.faulty.get(int(self.leader.split("-")[0][4:]) - 1) != "pause"
        healthy = any(n not in self.faulty and self.now - self.healed[n] > SETTLED * self.lease for n in range(self.nodes))
        if usable or not healthy:
            self.last_led = self.now
        self.longest = max(self.longest, self.now - self.last_led)
        if self.now - self.last_led > self.takeover:
            self.say("no leader for %.1f s" % ((self.now - self.last_led) / 1e6))
            self.last_led = self.now

    def run(self, journal):
        previous = 0
        for line in journal:
            words = line.split()
            self.lines += 1
            self.slack = int(words[0]) - self.now if int(words[0]) > self.now else getattr(self, "slack", 0)
            self.now = int(words[0])
            if self.now < previous:
                self.say("time goes back")
            previous = self.now
            kind = "healed_" if words[1] == "healed" else words[1]
            getattr(self, kind)(*words[2:])
            self.check_leader()


def main():
    with open(sys.argv[1]) as journal:
        judge = Judge(journal.readline().split()[1:])
        judge.run(journal)
    print("# judge: %d lines, %d terms, longest time without a leader %.1f s, %d findings" % (
        judge.lines, judge.term, judge.longest / 1e6, len(judge.found)))
    for text in judge.found[:20]:
        print("# judge: " + text)
    sys.exit(bool(judge.found) or judge.lines < 1000)


if __name__ == "__main__":
    main()
