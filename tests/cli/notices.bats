#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl notices.

load daemon

setup_file() {
	daemon_start
	jobctl add -n tells --manual --notify 'exec:exit 3' -- true
	jobctl add -n silent --manual -- true
}

@test "a failed channel is shown with its error" {
	run jobctl notices test tells
	[ "$status" -eq 1 ]
	[[ "${lines[0]}" == ID*WHEN*ABOUT*KIND*STATE*TRIES*CHANNEL*ERROR ]]
	[[ "${lines[1]}" == *tells*test*failed*"exec:exit 3"*"exit code 3" ]]
	run jobctl notices --failed
	[ "$status" -eq 0 ]
	[[ "${lines[1]}" == *"exit code 3" ]]
	[ "$(jobctl notices list tells --json | jq -r '.[0].error')" = "exit code 3" ]
	jobctl show tells | grep -q '^notice .*could not be sent to exec:exit 3: exit code 3'
	jobctl status | grep -q '^notices .*jobctl notices --failed'
}

@test "notices test of a job without channels is refused" {
	run jobctl notices test silent
	[ "$status" -eq 6 ]
	[[ "$output" == *"has no notify channel"* ]]
	[ "$(jobctl notices list silent --json)" = "[]" ]
}

@test "operands that are not jobs are refused" {
	run jobctl notices list 'tells#1'
	[ "$status" -eq 2 ]
	[[ "$output" == *"is a run"* ]]
	run jobctl notices test nobody
	[ "$status" -eq 3 ]
}
