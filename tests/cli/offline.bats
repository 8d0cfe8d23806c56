#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl without a daemon: help, usage, exit codes, messages.

load daemon

setup_file() {
	jobctl_setup
}

teardown_file() {
	rm -rf "$DIR"
}

@test "help goes to standard output and lists every verb" {
	run --separate-stderr jobctl help
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	for verb in add list show cancel rm runs log wait status version help; do
		grep -q "^  $verb " <<<"$output"
	done
}

@test "help VERB and VERB --help are equal" {
	[ "$(jobctl help add)" = "$(jobctl add --help)" ]
	[ "$(jobctl help log)" = "$(jobctl log -h)" ]
}

@test "the options of add include those of the job fields" {
	run jobctl help add
	for option in --at --in --every --name --env --tag --cwd --timeout --key; do
		grep -q -- " $option " <<<"$output"
	done
}

@test "a mistyped verb gives a suggestion" {
	run --separate-stderr jobctl lits
	[ "$status" -eq 2 ]
	[ "$stderr" = "jobctl: no verb 'lits'; did you mean 'list'?" ]
}

@test "a verb of another tool gives the jobctl command" {
	run --separate-stderr jobctl kill 1
	[ "$status" -eq 2 ]
	[ "$stderr" = "jobctl: no verb 'kill'; use 'jobctl cancel RUN'" ]
	for word in atq delete describe disable drain enable jobs ls ps queues retry start stop tail undrain update; do
		run --separate-stderr jobctl $word
		read -ra here <<<"$(tr -d "'" <<<"${stderr#*use \'jobctl }")"
		jobctl help "${here[0]}" >/dev/null
	done
}

@test "an unknown option is named, with the help to read" {
	run --separate-stderr jobctl list --bogus
	[ "$status" -eq 2 ]
	[ "$stderr" = "jobctl: there is no option '--bogus'; see 'jobctl help list'" ]
}

@test "a mistyped option, key of set or zone gives a suggestion" {
	run -2 --separate-stderr jobctl list --lmit=3
	[ "$stderr" = "jobctl: there is no option '--lmit' (did you mean '--limit'?); see 'jobctl help list'" ]
	run -2 --separate-stderr jobctl add --retires 3 -- true
	[[ $stderr == *"did you mean '--retries'?"* ]]
	run -2 --separate-stderr jobctl set 1 prioritiy=3
	[ "$stderr" = "jobctl: unknown key 'prioritiy'; did you mean 'priority'?" ]
	run -2 --separate-stderr jobctl set 1 evry=3m
	[ "$stderr" = "jobctl: unknown key 'evry'; did you mean 'every'?" ]
	run -2 --separate-stderr jobctl next --tz Europe/Belrin -- @daily
	[ "$stderr" = "jobctl: no time zone 'Europe/Belrin'; did you mean 'Europe/Berlin'?" ]
	run -2 --separate-stderr jobctl next --tz tokyo -- @daily
	[ "$stderr" = "jobctl: no time zone 'tokyo'; did you mean 'Asia/Tokyo'?" ]
	run -2 --separate-stderr jobctl next --tz Nowhere/Atall -- @daily
	[ "$stderr" = "jobctl: no time zone 'Nowhere/Atall'; names are like 'Europe/Berlin' or 'UTC'" ]
}

@test "a schedule of another form names the option for it" {
	run -2 --separate-stderr jobctl add --at '0 2 * * *' -- true
	[ "$stderr" = "jobctl: --at: '0 2 * * *' is a cron expression; use --cron" ]
	run -2 --separate-stderr jobctl add --cron 'tomorrow 9am' -- true
	[ "$stderr" = "jobctl: --cron: 'tomorrow 9am' is a time; use --at" ]
	run -2 --separate-stderr jobctl set 1 'at=0 2 * * *'
	[ "$stderr" = "jobctl: at: '0 2 * * *' is a cron expression; use cron" ]
}

@test "a crontab on the standard input of add is refused" {
	run -2 --separate-stderr jobctl add < <(printf 'PATH=/bin\n*/5 * * * * check | logger\n')
	[ -z "$output" ]
	[[ $stderr == "jobctl: standard input is a crontab, not a script; nothing was added: 'jobctl import crontab -'"* ]]
	for words in - "-- -" "--manual -- - -f"; do
		run -2 --separate-stderr jobctl add $words < <(printf '*/5 * * * * check | logger\n')
		[ -z "$output" ]
		[[ $stderr == "jobctl: '-' is not a command; nothing was added: "*"'jobctl import crontab -'"* ]]
	done
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

@test "a format that a verb does not support is refused" {
	for words in "status -o csv" "log 1 --json" "cancel 1 -o name" "show 1 --env --json"; do
		run jobctl $words
		[ "$status" -eq 2 ]
	done
}

@test "invalid values are refused before connecting" {
	run jobctl add --timeout soon -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *"--timeout"*"soon"* ]]
	run jobctl add -n 12 -- true
	[ "$status" -eq 2 ]
	run jobctl add --at @17 --in 3h -- true
	[ "$status" -eq 2 ]
	run jobctl list --state gone
	[ "$status" -eq 2 ]
	run jobctl runs --since yesteday
	[ "$status" -eq 2 ]
	run jobctl show 'a b'
	[ "$status" -eq 2 ]
}

@test "add needs a command" {
	run jobctl add </dev/null
	[ "$status" -eq 2 ]
	[[ "$output" == *"no command"* ]]
	run jobctl add -- ''
	[ "$status" -eq 2 ]
}

@test "without a daemon the exit code is 5 and the message says how to start one" {
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
	JOBSCHED_SOCKET=$DIR/other run jobctl --instance two list
	[ "$status" -eq 5 ]
	[[ "$output" == *"$XDG_RUNTIME_DIR/jobsched-two/jobsched.sock' or '/run/jobsched-two/jobsched.sock'"* ]]
	run jobctl --instance ../two list
	[ "$status" -eq 2 ]
}

@test "jobctl without arguments shows five commands, also without a daemon" {
	run --separate-stderr jobctl
	[ "$status" -eq 5 ]
	[ "$(grep -c '^  jobctl ' <<<"$output")" -eq 5 ]
}

@test "version needs no daemon" {
	run --separate-stderr jobctl version
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^jobctl\ [0-9] ]]
	[ "$output" = "$(jobctl --version)" ]
}

@test "a full disk is reported" {
	[ -w /dev/full ] || skip "no /dev/full"
	run bash -c 'jobctl help >/dev/full'
	[ "$status" -eq 1 ]
	[[ "$output" == *"cannot write"* ]]
}

@test "a closed pipe ends jobctl without a message" {
	run bash -c 'jobctl help | true; echo "${PIPESTATUS[0]}"'
	[[ "$output" =~ ^(0|141)$ ]]
	run bash -c '(trap "" PIPE; jobctl help; echo "code $?" >&2) | true'
	[[ "$output" =~ ^code\ (0|141)$ ]]
}

# fake_daemon STATUS BODY: answers one request and exits
fake_daemon() {
	python3 - "$DIR/fake" "$1" "$2" 3>&- <<'PY' &
import os, socket, sys
path, status, body = sys.argv[1:]
s = socket.socket(socket.AF_UNIX)
s.bind(path + ".new")
s.listen()
os.rename(path + ".new", path)
c = s.accept()[0]
c.recv(65536)
c.sendall(("HTTP/1.1 %s x\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)).encode())
os.unlink(path)
PY
	until [ -S "$DIR/fake" ]; do sleep 0.02; done
}

@test "exit codes: 7 for a limit, 4 for a refusal, 1 for an invalid answer" {
	fake_daemon 429 '{"error":{"code":"limit","message":"too many jobs"}}'
	run --separate-stderr jobctl --socket "$DIR/fake" add -- true
	[ "$status" -eq 7 ]
	[ "$stderr" = "jobctl: too many jobs" ]
	fake_daemon 403 '{"error":{"code":"denied","message":"not yours"}}'
	run jobctl --socket "$DIR/fake" add -- true
	[ "$status" -eq 4 ]
	fake_daemon 500 'oops'
	run jobctl --socket "$DIR/fake" list
	[ "$status" -eq 1 ]
}

@test "a lost answer is reported as uncertain" {
	fake_daemon '' ''
	run jobctl --socket "$DIR/fake" list
	[ "$status" -eq 1 ]
	python3 -c "import socket; s = socket.socket(socket.AF_UNIX); s.bind('$DIR/mute'); s.listen(); s.accept()[0].recv(9)" 3>&- &
	until [ -S "$DIR/mute" ]; do sleep 0.02; done
	run jobctl --socket "$DIR/mute" add -- true
	[ "$status" -eq 1 ]
	[[ "$output" == *"may or may not have been added"*"--key"* ]]
}

@test "escape sequences in an answer do not reach the terminal" {
	fake_daemon 400 '{"error":{"code":"invalid","message":"\u001b[2Jx"}}'
	run jobctl --socket "$DIR/fake" list
	[ "$output" = 'jobctl: \x1b[2Jx' ]
}

@test "a socket without permission gives exit code 4" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to become somebody else"
	mkdir -m 700 "$DIR/private"
	chmod 711 "$DIR"
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$(command -v jobctl)" --socket "$DIR/private/s" list
	[ "$status" -eq 4 ]
}
