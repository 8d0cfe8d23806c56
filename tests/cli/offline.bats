#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl where no daemon is: help, usage, exit codes, advice.

setup_file() {
	load daemon
	jobctl_setup
}

teardown_file() {
	rm -rf "$DIR"
}

setup() {
	load daemon
}

@test "help goes to standard output and lists every verb" {
	run --separate-stderr jobctl help
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	for verb in add list show cancel rm runs log wait status version help; do
		grep -q "^  $verb " <<<"$output"
	done
}

@test "help of a verb is the same by either way" {
	[ "$(jobctl help add)" = "$(jobctl add --help)" ]
	[ "$(jobctl help log)" = "$(jobctl log -h)" ]
}

@test "the options of add include those of the job's fields" {
	run jobctl help add
	for option in --at --in --every --name --env --tag --cwd --timeout --key; do
		grep -q -- " $option " <<<"$output"
	done
}

@test "a mistyped verb is answered with a suggestion" {
	run --separate-stderr jobctl lits
	[ "$status" -eq 2 ]
	[ "$stderr" = "jobctl: no verb 'lits'; did you mean 'list'?" ]
}

@test "an unknown option is named, with where to look" {
	run --separate-stderr jobctl list --bogus
	[ "$status" -eq 2 ]
	[ "$stderr" = "jobctl: there is no option '--bogus'; see 'jobctl help list'" ]
}

@test "missing and superfluous operands are usage errors" {
	run jobctl log
	[ "$status" -eq 2 ]
	run jobctl show a b
	[ "$status" -eq 2 ]
	run jobctl status now
	[ "$status" -eq 2 ]
	run jobctl list -o xml
	[ "$status" -eq 2 ]
	run jobctl list --color sometimes
	[ "$status" -eq 2 ]
	run jobctl list --user --system
	[ "$status" -eq 2 ]
}

@test "invalid values are refused before a daemon is looked for" {
	run jobctl add --timeout soon -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *"--timeout"*"soon"* ]]
	run jobctl add -n 12 -- true
	[ "$status" -eq 2 ]
	run jobctl add --at @17 --in 3h -- true
	[ "$status" -eq 2 ]
	run jobctl list --state gone
	[ "$status" -eq 2 ]
	run jobctl runs --since yesterday
	[ "$status" -eq 2 ]
	run jobctl show 'a b'
	[ "$status" -eq 2 ]
}

@test "a command is needed" {
	run jobctl add </dev/null
	[ "$status" -eq 2 ]
	[[ "$output" == *"no command"* ]]
	run jobctl add -- ''
	[ "$status" -eq 2 ]
}

@test "without a daemon the exit code is 5 and the way to start one is named" {
	for verb in "add -- true" list "show 1" "cancel 1" "rm -y 1" runs "log 1" "wait 1" status; do
		run --separate-stderr jobctl $verb
		[ "$status" -eq 5 ]
		[ -z "$output" ]
		[[ "$stderr" == *"jobschedd --user"* ]]
	done
	run jobctl --system list
	[ "$status" -eq 5 ]
	[[ "$output" == *"systemctl start jobschedd"* ]]
	run jobctl --socket "$DIR/none" list
	[ "$status" -eq 5 ]
	[[ "$output" == *"$DIR/none"* ]]
	JOBSCHED_SOCKET=$DIR/other run jobctl list
	[ "$status" -eq 5 ]
	[[ "$output" == *"$DIR/other"* ]]
}

@test "jobctl alone shows five commands to try even then" {
	run --separate-stderr jobctl
	[ "$status" -eq 5 ]
	[ "$(grep -c '^  jobctl ' <<<"$output")" -eq 5 ]
}

@test "the version needs no daemon" {
	run --separate-stderr jobctl version
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^jobctl\ [0-9] ]]
	[ "$output" = "$(jobctl --version)" ]
}

@test "a full disk is noticed" {
	[ -w /dev/full ] || skip "no /dev/full"
	run bash -c 'jobctl help >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot write"* ]]
}

@test "a reader that has seen enough is no error to speak of" {
	run bash -c 'jobctl help | true; echo "${PIPESTATUS[0]}"'
	[[ "$output" =~ ^(0|141)$ ]]
	run bash -c '(trap "" PIPE; jobctl help; echo "code $?" >&2) | true'
	[[ "$output" =~ ^code\ (0|141)$ ]]
}
