#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# pause, resume, freeze, thaw, run and cancel.

load daemon

@test "pausing a job reports author, end and reason, and runs that are still running" {
	jobctl add -n busy --every 1h -- sleep 30
	run=$(jobctl run busy)
	[[ "$run" =~ ^busy#[0-9]+$ ]]
	while [ "$(jobctl show "$run" -o json | jq -r .state)" != running ]; do sleep 0.02; done
	run --separate-stderr jobctl pause busy --until 2h --reason 'too loud'
	[ "$status" -eq 0 ]
	[ -z "$output" ]
	[[ "$stderr" =~ ^job\ [0-9]+\ \'busy\'\ is\ paused\ by\ [^\ ]+\ since\ .*\ until\ .*:\ too\ loud\;\ run\ busy#[0-9]+\ is\ still\ running ]]
	run jobctl show busy
	[[ "$output" =~ state\ +paused ]]
	[[ "$output" =~ pause\ +paused\ by\ .*until.*too\ loud ]]
	[ "$(jobctl list busy -o json | jq -r '.[0].pause.reason')" = "too loud" ]
	jobctl cancel busy --running
}

@test "resume reports its result, also when nothing was paused" {
	jobctl add -n again --every 1h -- true
	jobctl pause again
	run --separate-stderr jobctl resume again
	[ "$status" -eq 0 ]
	[[ "$stderr" =~ ^resumed\ job\ [0-9]+\ \'again\'$ ]]
	run --separate-stderr jobctl resume again
	[ "$status" -eq 0 ]
	[[ "$stderr" == "nothing to do: job "*" 'again' was not paused" ]]
}

@test "resume --until lifts a pause now and sets it again at that time" {
	jobctl add -n nights --every 1h -- true
	run jobctl resume nights --until 2h
	[ "$status" -eq 6 ]
	[[ "$output" == *"not paused"* ]]
	jobctl pause nights --reason 'too loud'
	run --separate-stderr jobctl next nights
	[ "$stderr" = "job nights is paused; its slots are skipped until 'jobctl resume nights'" ]
	run --separate-stderr jobctl resume nights --until 30m
	[ "$status" -eq 0 ]
	[[ "$stderr" =~ ^resumed\ job\ [0-9]+\ \'nights\'\;\ it\ will\ be\ paused\ by\ [^\ ]+\ from\ .*:\ too\ loud$ ]]
	run jobctl show nights
	[[ "$output" =~ state\ +active ]]
	[[ "$output" =~ pauses\ +paused\ by\ .*\ from\ .*too\ loud ]]
	[[ "$(jobctl why nights)" == *"paused by "*" from "*"too loud"* ]]
	run -0 jobctl run nights --wait
	run jobctl resume nights --until 2020-01-01T00:00:00Z
	[ "$status" -eq 2 ]
	jobctl resume nights
	[ "$(jobctl show nights -o json | jq -r .next_pause)" = null ]
	jobctl pause nights
	jobctl resume nights --until 4s --reason again
	while [ "$(jobctl show nights -o json | jq -r .state)" != paused ]; do sleep 0.1; done
	[ "$(jobctl show nights -o json | jq -r .pause.reason)" = again ]
	jobctl pause --all --reason works
	run --separate-stderr jobctl resume --all --until 2099-01-01T00:00:00Z
	[ "$stderr" = "the pause is lifted until 2099-01-01T00:00:00Z" ]
	[[ "$(jobctl status 2>&1)" == *"everything"*" will be paused by "*" from 2099-"*works* ]]
	jobctl resume --all
}

@test "--until accepts a duration, a phrase and a time, and refuses past and repeated times" {
	jobctl add -n terms --every 1h -- true
	jobctl pause terms --until 90m
	jobctl pause terms --until 'tomorrow 9am'
	jobctl pause terms --until 2099-01-01T00:00:00Z
	[ "$(jobctl show terms -o json | jq -r .pause.until)" = 2099-01-01T00:00:00Z ]
	run jobctl pause terms --until 2020-01-01T00:00:00Z
	[ "$status" -eq 2 ]
	for wrong in 'every 5m' 'in 1h' bogus '0 3 * * *'; do
		run jobctl pause terms --until "$wrong"
		[ "$status" -eq 2 ]
		[[ "$output" == "jobctl: --until: '$wrong' is not a single time; write 2h,"* ]]
	done
}

@test "pause needs jobs or one scope" {
	run jobctl pause
	[ "$status" -eq 2 ]
	[[ "$output" == *"give a job, or one of --all"* ]]
	run jobctl pause x --all
	[ "$status" -eq 2 ]
	run jobctl pause --all --tag a=b
	[ "$status" -eq 2 ]
	[[ "$output" == *"either --all or --tag"* ]]
	run jobctl pause --tag plain
	[ "$status" -eq 2 ]
	run jobctl pause nobody
	[ "$status" -eq 3 ]
	run jobctl pause --owner nobody-of-this-name
	[ "$status" -eq 3 ]
}

@test "a finished job cannot be paused or resumed" {
	jobctl add -n over --wait -- true
	run jobctl pause over
	[ "$status" -eq 6 ]
	[[ "$output" == *"is finished: there is nothing to pause"* ]]
	run jobctl resume over
	[ "$status" -eq 6 ]
	jobctl pause --all # a scope can be paused without jobs
	jobctl resume --all
}

@test "run of a paused job is refused with the reason and the command to type" {
	jobctl add -n still --every 1h -- true
	jobctl pause still --reason audit
	run jobctl run still
	[ "$status" -eq 6 ]
	[[ "$output" == *"paused by "*": audit ('jobctl resume still' ends that; with --force it runs anyway)"* ]]
	run jobctl run still --force --wait
	[ "$status" -eq 0 ]
	[ "$(jobctl show still -o json | jq -r .state)" = paused ]
}

@test "run --wait exits as wait, and with --propagate as the command" {
	jobctl add -n seven --every 1h -- sh -c 'echo out; exit 7'
	run --separate-stderr jobctl run seven --wait
	[ "$status" -eq 10 ]
	run --separate-stderr jobctl run seven --follow --propagate
	[ "$status" -eq 7 ]
	[ "$output" = out ]
	run jobctl run nobody
	[ "$status" -eq 3 ]
	run jobctl run 'seven#1'
	[ "$status" -eq 2 ]
}

@test "run sets a parameter of the job and refuses an undeclared one" {
	jobctl add -n plain --every 1h -- true
	run jobctl run plain --param colour=red
	[ "$status" -eq 2 ]
	[[ "$output" == *"'colour'"* ]]
	run jobctl run plain --param red
	[ "$status" -eq 2 ]
	run jobctl run plain --param a=1 --param a=2
	[ "$status" -eq 2 ]
}

@test "a cancelled job is refused until it is resumed" {
	id=$(jobctl add -n back --every 1h -- true)
	run --separate-stderr jobctl cancel back
	[ "$stderr" = "cancelled job $id 'back'; to undo: jobctl resume $id" ]
	run --separate-stderr jobctl cancel back
	[ "$stderr" = "job $id 'back' was already cancelled; 'jobctl resume $id' reactivates it" ]
	for words in "run back" "set back priority=3"; do
		run jobctl $words
		[ "$status" -eq 6 ]
		[[ "$output" == *"'jobctl resume $id' brings it back"* ]]
	done
	[[ "$(jobctl why "$id")" == *"(jobctl resume $id)"* ]]
	run --separate-stderr jobctl resume back
	[ "$stderr" = "resumed job $id 'back'" ]
	[ "$(field back state)" = active ]
	[ "$(field back next_at)" != null ]
	jobctl set back priority=3
	jobctl run back --wait
	jobctl cancel back
	jobctl add -n back --every 2h -- true
	run jobctl resume "$id"
	[ "$status" -eq 6 ]
	[[ "$output" == *"has its name 'back' now"* ]]
}

@test "a cancelled job without further slots is finished after resume and can be run" {
	id=$(jobctl add -n late --in 1h -- true)
	jobctl cancel late
	jobctl resume late
	[ "$(field late state)" = active ]
	id=$(jobctl add -n past --paused -- true)
	jobctl cancel past
	run --separate-stderr jobctl resume past
	[ "$stderr" = "resumed job $id 'past'; its schedule has no more slots ('jobctl run $id' runs it again)" ]
	run jobctl resume past
	[ "$status" -eq 6 ]
	[[ "$output" == *"'jobctl run $id' runs it once more"* ]]
	jobctl run "$id" --wait
}

@test "cancel removes runs that were planned ahead" {
	jobctl add -n soon --in 4s -- true
	eventually listed 1 soon --planned
	jobctl cancel soon
	[ "$(jobctl runs soon --planned --json | jq length)" = 0 ]
}

@test "cancel lists running runs and the command that ends them" {
	id=$(jobctl add -n many --manual --overlap allow -- sleep 600)
	for i in 1 2 3 4 5; do
		jobctl run many
	done
	eventually listed 5 many --state running
	run --separate-stderr jobctl cancel many
	[[ "$stderr" == *" and 2 more are still running (jobctl cancel --running $id); to undo: "* ]]
	run --separate-stderr jobctl cancel --running "$id"
	[[ "$stderr" == *" are being ended"* ]]
}

@test "a finished job can be run again unless its name was reused" {
	id=$(jobctl add -n done --wait -- true)
	run jobctl run "$id" --wait
	[ "$status" -eq 0 ]
	[ "$(jobctl show "$id" -o json | jq -r .state)" = finished ]
	jobctl add -n done --every 1h -- true
	run jobctl run "$id"
	[ "$status" -eq 6 ]
	[[ "$output" == *"has its name 'done' now"* ]]
}

@test "list and status show a freeze; --except and --force still start runs" {
	jobctl add -n cold --every 1h -- true
	jobctl add -n warm --every 1h --tag keep=yes -- true
	run --separate-stderr jobctl freeze --except keep=yes --reason works
	[[ "$stderr" =~ ^everything\ is\ frozen\ by\ .*keep=yes:\ works$ ]]
	run --separate-stderr jobctl list
	[[ "$stderr" == "everything is frozen by "* ]]
	run --separate-stderr jobctl status
	[[ "$stderr" == "everything is frozen by "* ]]
	[ "$(jobctl status -o json | jq -r .frozen.reason)" = works ]
	run jobctl run cold
	[ "$status" -eq 6 ]
	[[ "$output" == *"'jobctl thaw' ends that; with --force it runs anyway"* ]]
	jobctl run warm --wait
	jobctl run cold --force --wait
	run --separate-stderr jobctl thaw
	[ "$stderr" = "the freeze has ended" ]
	run --separate-stderr jobctl thaw
	[ "$stderr" = "nothing to do: there is no freeze" ]
	[ "$(jobctl status -o json | jq -r .frozen)" = null ]
}

@test "freeze --except KEY excludes every value of the tag" {
	jobctl freeze --except team --reason works
	run --separate-stderr jobctl add -n chilled -- true
	[[ "$stderr" == *"; it does not start now: frozen by "*": works (jobctl why "*")" ]]
	run --separate-stderr jobctl add -n chilled2 --every 1h -- true
	[[ "$stderr" == *"; its first slot is at "*"; currently: frozen by "* ]]
	jobctl add --tag team=web --wait -- true
	jobctl add --tag team=db --wait -- true
	run jobctl freeze --except a=1 --except b=2
	[ "$status" -eq 2 ]
	run jobctl freeze --except =x
	[ "$status" -eq 2 ]
	jobctl thaw --reason "release is out"
	[[ "$(jobctl events --what thaw)" == *"release is out"* ]]
	jobctl wait chilled
	jobctl rm --yes chilled2
}

@test "add reports why a job does not start at once" {
	jobctl pause --all --reason audit
	run --separate-stderr jobctl add -n stuck1 -- true
	[[ "$stderr" == *"; it does not start now: paused by "*": audit (jobctl why "*")" ]]
	jobctl resume --all --reason "audit is over"
	[[ "$(jobctl events --what resume)" == *"audit is over"* ]]
	run --separate-stderr jobctl add -n stuck2 --node-label gpu=yes -- true
	[[ "$stderr" == *"; it does not start now: no available node has gpu=yes"* ]]
	jobctl rm --yes stuck2
	node=$(jobctl nodes --json | jq -r '.[0].name')
	jobctl node drain "$node"
	run --separate-stderr jobctl add -n stuck3 -- true
	jobctl node undrain "$node"
	[[ "$stderr" == *"; it does not start now: every node is drained"* ]]
	jobctl wait stuck1 stuck3
}

@test "add with the key of an ended job reports its state" {
	add() { jobctl add -n keyed --key K1 --every 1h -- true; }
	id=$(add)
	jobctl cancel keyed
	run --separate-stderr add
	[ "$stderr" = "job $id 'keyed' was added with this key before and has been cancelled since; nothing was added (jobctl resume $id)" ]
	jobctl rm --yes keyed
	run --separate-stderr add
	[[ "$stderr" == "job $id 'keyed' was added with this key before and has been removed since; nothing was added (use another --key"* ]]
}

@test "options with default values override a template" {
	jobctl template add strict --retries 3 --overlap queue --timeout 5m --nice 5 -- true
	jobctl add -n loose --template strict --every 1h --retries 0 --overlap skip --nice 0
	[ "$(jobctl show loose --json | jq -c '[.retries, .overlap, .timeout, .nice]')" = '[0,"skip",300,0]' ]
	jobctl rm --yes loose
}

@test "a job whose queue was removed cannot be reactivated" {
	jobctl queue add short
	id=$(jobctl add -n ended -q short --wait -- true)
	gone=$(jobctl add -n stopped -q short --every 1h -- true)
	jobctl cancel stopped
	jobctl queue rm short
	run jobctl run ended
	[ "$status" -eq 6 ]
	[[ "$output" == *"its queue 'short' was removed since"*"'jobctl set $id queue=default' moves the job" ]]
	run jobctl set ended schedule="every 1h"
	[ "$status" -eq 2 ]
	run jobctl resume stopped
	[ "$status" -eq 6 ]
	[[ "$output" == *"'jobctl queue add short' makes it again" ]]
	jobctl set "$id" queue=default
	jobctl run ended --wait
	jobctl queue add short
	jobctl resume stopped
	jobctl rm --yes stopped
	jobctl queue rm short
}

@test "log -f of a job without runs waits for one" {
	id=$(jobctl add -n byhand --manual -- 'echo hello')
	jobctl log -f byhand >"$DIR/out" 2>"$DIR/err" 3>&- &
	follower=$!
	eventually [ -s "$DIR/err" ]
	[ "$(cat "$DIR/err")" = "job $id has no run yet; waiting for one (jobctl why $id)" ]
	jobctl run byhand
	wait $follower
	[ "$(cat "$DIR/out")" = hello ]
	jobctl add -n unborn --in 1h -- true
	jobctl cancel unborn
	run jobctl log -f unborn
	[ "$status" -eq 3 ]
	[[ "$output" == *"has ended and never ran"* ]]
}

@test "a pause of a scope is shown, and ended with the same options" {
	jobctl add -n tagged --every 1h --tag env=test -- true
	run --separate-stderr jobctl pause --tag env=test --reason why
	[[ "$stderr" =~ ^everything\ with\ the\ tag\ env=test\ is\ paused\ by\ .*:\ why$ ]]
	run jobctl run tagged
	[ "$status" -eq 6 ]
	[[ "$output" == *"jobctl resume --tag env=test"* ]]
	run --separate-stderr jobctl list
	[[ "$stderr" == "everything with the tag env=test is paused"* ]]
	run --separate-stderr jobctl resume --tag env=other
	[[ "$stderr" == "nothing to do: there is no such pause"* ]]
	run --separate-stderr jobctl resume --tag env=test
	[ "$stderr" = "the pause has ended" ]
	jobctl run tagged --wait
}

@test "add --paused starts nothing until resume" {
	run --separate-stderr jobctl add -n later --paused -- true
	[[ "$stderr" =~ \;\ it\ is\ paused\ \(jobctl\ resume\ [0-9]+\)$ ]]
	sleep 0.5
	[ "$(jobctl runs later -o json | jq -r '.[0].state')" = queued ]
	run --separate-stderr jobctl resume later
	[[ "$stderr" == *"; 1 run that was held back can start now" ]]
	jobctl wait later
}

@test "set and undo of a paused job do not announce a run" {
	jobctl add -n held --every 10s -- true
	jobctl pause held --until 1d
	run --separate-stderr jobctl set held timeout=2h
	[ "$status" -eq 0 ]
	[[ "$stderr" == *"(revision 2); it is paused (jobctl resume "* ]]
	run --separate-stderr jobctl undo held
	[[ "$stderr" == *"(revision 3); it is paused (jobctl resume "* ]]
	jobctl resume held
	run --separate-stderr jobctl set held timeout=2h
	[[ "$stderr" == *"; it runs in "* ]]
	jobctl rm --yes held
}

@test "of several pauses, why names the one that ends last" {
	jobctl add -n twice -t team=db --every 10s -- true
	jobctl pause --all --reason move
	jobctl pause --tag team=db --until 1h --reason deploy
	jobctl pause twice --until 30m
	run jobctl why twice
	[[ "$output" == *": move"*"(jobctl resume --all)"* ]]
	[[ "$output" == *"next:  none until that ends"* ]]
	jobctl resume --all
	run jobctl why twice
	[[ "$output" == *": deploy"*"(jobctl resume --tag team=db)"* ]]
	jobctl resume --tag team=db
	run jobctl why twice
	[[ "$output" == *"(jobctl resume twice)"*"next:"* ]]
	jobctl rm --yes twice
}

@test "a refused undo is one event" {
	jobctl add -n over --every 1h -- true
	jobctl set over timeout=1m
	jobctl cancel over
	run -6 jobctl undo over
	[[ "$output" == *"is cancelled; 'jobctl resume "* ]]
	[ "$(jobctl events --what job.undo -o json | jq '[.[] | select(.result == "conflict")] | length')" = 1 ]
}
