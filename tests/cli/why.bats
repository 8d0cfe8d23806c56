#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl why; tests/integration/why.py tests every reason.

load daemon

setup_file() {
	daemon_start
	jobctl add -n hourly --every 1h -- true
	jobctl add -n once -- 'exit 3'
	jobctl add -n hand --manual -- true
	jobctl add -n again --retries 2 --backoff fixed:1h -- false
	jobctl wait once || true
}

@test "why JOB shows the reason, the next slots and the results of past slots" {
	run -0 jobctl why hourly
	[ "${lines[0]}" = "job 1 'hourly' is active" ]
	[[ ${lines[1]} == "now:   nothing is due; its next slot is "* ]]
	[ "${lines[2]}" = "       (jobctl next hourly)" ]
	[[ ${lines[3]} == "next:  "* ]]
	run -0 jobctl why once
	[[ $output == *"now:   its schedule has ended"*"last slots:"*"failed"*"its command failed: exit code 3"*"(jobctl log once#"* ]]
}

@test "planned slots are shown separately from past ones" {
	local i

	jobctl add -n soon --every 2s -- true 2>/dev/null
	for i in $(seq 200); do
		run jobctl why soon
		[[ $output != *"planned slots:"*"queued"*"last slots:"*"succeeded"* ]] || break
		sleep 0.1
	done
	[ "$i" -lt 200 ]
	[[ ${output%%last slots:*} != *succeeded* ]]
	jobctl rm -y soon
}

@test "why RUN shows its result" {
	run -0 jobctl why "once#$(jobctl runs once --json | jq '.[0].id')"
	[ "${#lines[@]}" = 3 ]
	[[ ${lines[1]} == *"its command failed: exit code 3" ]]
}

@test "why --at shows whether a time is a slot" {
	[[ $(jobctl why hourly --at 2h) == "the job did not exist at "* ]]
	[[ $(jobctl why hourly --at "$(jobctl next hourly --count 1)") == *"is a slot in the future"* ]]
	[[ $(jobctl why once --at "$(jobctl runs once --json | jq -r '.[0].slot')") == *"exit code 3"* ]]
	run -2 jobctl why hourly --at yesterday-ish
	[[ $output == "jobctl: --at: 'yesterday-ish', character 10: "* ]]
	[[ $(jobctl why hourly --at yesterday) == "the job did not exist at "* ]]
}

@test "JSON has codes, sentences and commands" {
	[ "$(jobctl why hand --json | jq -r '.now.code + " " + .now.command')" = "manual jobctl run hand" ]
	[ "$(jobctl why again --json | jq -r '.now.code, .runs[0].why.code' | xargs)" = "retry retry" ]
	[ "$(jobctl why hourly -o jsonl | jq '.next | length')" = 5 ]
	run -2 jobctl why hourly -o csv
}

@test "a job with --after names its parents" {
	local meaning="after job 'hand' succeeds, or job 'hourly' fails"

	[ "$(jobctl add -n child --after hand --after hourly:failure --after-mode any --dry-run --json -- true | jq -r .explain)" = "$meaning" ]
	jobctl add -n child --after hand --after hourly:failure --after-mode any -- true
	[ "$(jobctl why child --json | jq -r '.now.code + ", " + .now.message')" = "after, it runs $meaning" ]
	[ "$(jobctl why child --json | jq -r .now.command)" = "jobctl show --graph child" ]
	[[ $(jobctl show child) == *"meaning"*" $meaning"* ]]
	[[ $(jobctl next child 2>&1) == *"no upcoming slots; the job runs $meaning" ]]
	jobctl rm -y child
}

@test "list and show show what a job waits for" {
	again_waits() { [[ $(jobctl list again) == *" retry "* ]]; }
	eventually again_waits
	[[ $(jobctl show again) == *"waits"*"1 attempt failed; the next one is due at "* ]]
	[ "$(jobctl runs again --json | jq -r '.[0].waiting_for.code')" = retry ]
	[ "$(jobctl list hourly --json | jq '.[0].waiting_for')" = null ]
}

@test "why of an unknown job is an error" {
	run -3 jobctl why nothing
	run -3 jobctl why 4711
	run -2 jobctl why
}

@test "a command that could not be started differs from one that failed" {
	jobctl add -n absent --retries 1 --backoff fixed:1s -- ./absent
	run -10 jobctl wait absent
	[[ "$(jobctl why absent)" == *"its command could not be started after 2 attempts: could not run './absent': No such file or directory, retries used up; it is a dead letter"* ]]
	[[ "$(jobctl runs absent)" == *"not started, retries used up"* ]]
}

@test "a job that is due at once and waits has no next slot" {
	jobctl add -n nowhere --node-label no=where -- true
	[[ "$(jobctl why nowhere)" != *"next:"* ]]
	jobctl cancel nowhere
}

@test "while every node is drained, why of a job that is not due says so" {
	jobctl node drain "$(jobctl nodes -o name)"
	[[ "$(jobctl why hourly)" == *"every node that could take it is drained"*"(jobctl node undrain "* ]]
	jobctl node undrain "$(jobctl nodes -o name)"
	[[ "$(jobctl why hourly)" != *"drained"* ]]
}
