#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests the progress lines of long operations: on a terminal only, and removed at the end.

load daemon

# The stopped daemon has a client that it has not accepted: Recv-Q is the length of the queue. The daemon binds its socket
# as .api and renames it.
client_waits() {
	[ "$(ss -xlH src "$XDG_RUNTIME_DIR/jobsched/.api" | awk '{ print $3 }')" -ge 1 ]
}

# Stops the daemon until a command has waited for it for longer than the delay of the progress line.
# slowly COMMAND...
slowly() {
	kill -STOP "$(cat "$DIR/pid")"
	(eventually client_waits; sleep 2.2; kill -CONT "$(cat "$DIR/pid")") 3>&- &
	"$@"
	wait
}

@test "a check that takes long shows the time on a terminal and removes the line" {
	run -0 slowly on_terminal 80 jobctl db check
	[[ $output == *"checking the store: 1"*$'\033[K'*"the store is intact"* ]]
}

@test "a backup shows its progress on standard error" {
	run -0 slowly on_terminal 80 jobctl db backup "$DIR/one.db"
	[[ $output == *"writing a backup: "*$'\033[K'*"wrote a backup of "* ]]
	[ -s "$DIR/one.db" ]
}

@test "without a terminal there is no progress line" {
	run -0 slowly jobctl db check
	[ "$output" = "the store is intact" ]
	run -0 slowly jobctl db prune --yes
	[[ $output == "deleted 0 runs, "* ]]
}

@test "a short operation shows no progress line" {
	run -0 on_terminal 80 jobctl db check
	[ "$output" = "the store is intact" ]
}
