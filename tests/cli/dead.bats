#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl dead and the display of retries.

load daemon

# dead_job NAME: adds a job whose run becomes a dead letter
dead_job() {
	run --separate-stderr jobctl add -w -n "$1" --on-exit 78=dead -- sh -c '[ -e mended ] || exit 78'
	[ "$status" -eq 10 ]
}

# run_of JOB: the number of its newest run
run_of() {
	jobctl runs "$1" --json | jq -r '.[0].id'
}

@test "a run that waits for a retry shows attempt, reason and time" {
	jobctl add -n waits --retries 4 --backoff fixed:1h -- sh -c 'exit 3'
	until [ "$(jobctl runs waits --json | jq -r '.[0] | "\(.state) \(.attempt)"')" = "queued 1" ]; do
		sleep 0.05
	done
	[ "$(jobctl runs waits --json | jq -r '.[0].reason')" = "retry 1 of 4 after exit code 3" ]
	[ "$(jobctl runs waits --json | jq -r '.[0].failures')" = 1 ]
	due=$(jobctl runs waits --json | jq -r '.[0].due_at')
	[[ "$(jobctl runs waits)" == *"retry 1 of 4 after exit code 3, at ${due%%[.Z]*}Z"* ]]
	grep -q "^next try      ${due%%[.Z]*}Z" <<<"$(jobctl show "#$(run_of waits)")"
	[ "$(field waits next_at)" = "$due" ]
	[[ "$(on_terminal 200 jobctl runs waits)" == *"retry 1 of 4 after exit code 3, in "* ]]
	jobctl cancel waits
}

@test "states and exit codes distinguish failed, killed and timed out" {
	run --separate-stderr jobctl add -w -n killed -- sh -c 'kill -9 $$'
	[ "$status" -eq 10 ]
	[[ "$stderr" == *"failed"*"killed by SIGKILL"* ]]
	run --separate-stderr jobctl add -w -n late --timeout 100ms -- sleep 60
	[ "$status" -eq 13 ]
	[[ "$stderr" == *"timed out"*"timeout"* ]]
	[ "$(field "#$(run_of killed)" state) $(field "#$(run_of late)" state)" = "failed timed_out" ]
}

@test "dead letters are listed, shown, and found by their job" {
	dead_job one
	dead_job two
	run jobctl dead list one two
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" == RUN*STATE*SLOT*DIED*TRIES*RESULT ]]
	[ "${#lines[@]}" -eq 3 ]
	[ "$(jobctl dead list -j one -o name)" = "one#$(run_of one)" ]
	[ "$(jobctl dead -o name | grep -cE "^(one|two)#")" -eq 2 ]
	[[ "$(jobctl dead show "one#$(run_of one)")" == *"dead letter   20"* ]]
	run jobctl dead show one
	[ "$status" -eq 2 ]
	[[ "$output" == *"'jobctl dead list one'"* ]]
	jobctl add -w -n fine -- true
	run jobctl dead show "fine#$(run_of fine)"
	[ "$status" -eq 3 ]
	[[ "$output" == *"is not a dead letter, it is succeeded"* ]]
}

@test "a retried dead letter is the same run and can succeed" {
	dead_job mend
	run=$(run_of mend)
	[ "$(field mend state)" = finished ]
	touch mended
	run --separate-stderr jobctl dead retry "mend#$run"
	[ "$status" -eq 0 ]
	[ "$stderr" = "run mend#$run is queued again (jobctl wait mend#$run)" ]
	jobctl wait "mend#$run"
	rm mended
	[ "$(field "#$run" state) $(field "#$run" attempt) $(field "#$run" dead_at)" = "succeeded 2 null" ]
	[ "$(field mend state)" = finished ]
	run jobctl dead retry "mend#$run"
	[ "$status" -eq 6 ]
	[[ "$output" == *"is no dead letter"* ]]
}

@test "retry of a dead letter of a removed job is refused" {
	dead_job gone
	run=$(run_of gone)
	jobctl rm --yes gone
	run jobctl dead retry "#$run"
	[ "$status" -eq 6 ]
	[[ "$output" == *"was removed"* ]]
}

@test "retry and purge need a selection, and purge asks" {
	run jobctl dead retry
	[ "$status" -eq 2 ]
	[[ "$output" == *"jobctl dead retry --all"* ]]
	run jobctl dead purge --all one --yes
	[ "$status" -eq 2 ]
	run jobctl dead purge --all
	[ "$status" -eq 2 ]
	[[ "$output" == *"needs --yes"* ]]
	[ "$(jobctl dead list one -o name | wc -l)" -eq 1 ]
	run --separate-stderr jobctl dead purge one --since 1h --yes
	[ "$status" -eq 0 ]
	[ "$stderr" = "1 dead letter purged" ]
	[ -z "$(jobctl dead list one -o name)" ]
	[ "$(field "#$(run_of one)" state)" = failed ]
	[ "$(jobctl dead purge --all --until 1h --yes --json | jq -c '.[0].count')" = 0 ]
	[ "$(jobctl dead purge --all --yes --json | jq -c '.[0].count >= 1')" = true ]
	[ "$(jobctl dead list --json)" = "[]" ]
}
