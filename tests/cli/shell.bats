#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests jobctl shell, jobctl env-diff and jobctl run --as-scheduled.

load daemon

setup_file() {
	daemon_start
	mkdir -p "$DIR/work"
	jobctl add -n plain --manual --cwd "$DIR/work" --umask 027 --nice 3 --limit nofile=99 -e COLOUR=blau -e API_TOKEN=hush \
		--tz Asia/Tokyo --timeout 1h --mem 100M -- sort
}

@test "a command has the environment, directory, umask and limits of the job" {
	export MINE=caller
	run -0 jobctl shell -q plain -- sh -c 'pwd; umask; ulimit -n; nice; echo "$COLOUR $TZ $JOBSCHED_NAME ${MINE-unset}"'
	[ "${lines[0]}" = "$DIR/work" ]
	[ "${lines[1]}" = 0027 ]
	[ "${lines[2]}" = 99 ]
	[ "${lines[3]}" = 3 ]
	[ "${lines[4]}" = "blau Asia/Tokyo plain unset" ]
}

# Only the values that belong to a run, and variables of the shell itself, may differ.
@test "the environment equals that of a run" {
	jobctl add -n prints --manual -e COLOUR=blau -- env
	jobctl run prints --wait
	jobctl log prints | sed -E '/^(JOBSCHED_(RUN|SLOT|SLOT_MS|ATTEMPT|KEY|FENCE|NODE|SPAWNER)|TRACEPARENT|LANG)=/d' | sort >"$DIR/env-run"
	jobctl shell -q prints -- env | grep -v '^LANG=' | sort >"$DIR/env-shell"
	grep -q '^COLOUR=blau$' "$DIR/env-run"
	diff "$DIR/env-run" "$DIR/env-shell"
}

@test "what is not applied is reported on standard error" {
	run -0 --separate-stderr jobctl shell plain -- true
	[ "$stderr" = "environment of job 1 'plain'; not applied here: the sandbox, mem, time limits" ]
	[ -z "$output" ]
}

@test "the exit code is that of the command" {
	run -7 jobctl shell -q plain -- sh -c 'exit 7'
	run -127 jobctl shell -q plain -- no-such-command-here
	[[ $output == "jobctl: could not execute 'no-such-command-here' with the PATH of the job: "* ]]
	run -3 jobctl shell -q missing
}

@test "without a command an interactive shell is started" {
	run -0 bash -c "echo 'echo \"shell \$COLOUR\" \$TERM; exit' | TERM=dumb jobctl shell -q plain 2>/dev/null"
	[[ $output == *"shell blau dumb"* ]]
}

@test "a directory that does not exist is an error" {
	jobctl add -n lost --manual --cwd "$DIR/gone" -- true
	run -1 jobctl shell -q lost -- true
	[[ $output == "jobctl: could not enter the directory '$DIR/gone' of the job: "* ]]
}

@test "only the owner gets a shell" {
	[ "$(id -u)" -eq 0 ] || skip "needs root to have another user"
	# the daemon sees the effective user, which is the owner; the real user is another one
	run -4 setpriv --ruid 65534 jobctl shell -q plain -- id -u
	[[ $output == "jobctl: job 'plain' belongs to 'root', and its commands run with the rights of the owner: "*"su --pty root -c"* ]]
}

@test "env-diff shows what differs" {
	export MINE=caller COLOUR=rot
	run -0 jobctl env-diff plain
	[[ $output == *"+ JOBSCHED_NAME=plain"* ]]
	[[ $output == *"+ JOBSCHED_RUN=<set at the start of a run>"* ]]
	[[ $output == *"- MINE=caller"* ]]
	[[ $output == *"~ COLOUR: job 'blau', here 'rot'"* ]]
	[[ $output == *"+ API_TOKEN=***"* ]]
	[[ $output == *"~ cwd: job '$DIR/work', here '$HOME'"* ]]
	[[ $output == *"~ umask: job '027', here '"* ]]
	[[ $output == *"~ PATH"*"  - $(cd "$top_builddir" && pwd)"* ]]
	[[ $(jobctl env-diff --reveal plain) == *"+ API_TOKEN=hush"* ]]
	[ "$(jobctl env-diff --json plain | jq -c '[.different.COLOUR, .only_here.MINE, .umask.job]')" = \
		'[{"job":"blau","here":"rot"},"caller","027"]' ]
}

@test "env-diff says which file the command is" {
	mkdir -p "$DIR/bin"
	cp /bin/true "$DIR/bin/sort"
	PATH=$DIR/bin:$PATH run -0 jobctl env-diff plain
	[[ $output == *"the command 'sort' is /usr/bin/sort with the PATH of the job, and $DIR/bin/sort here"* ]]
}

@test "a run as scheduled has a slot of a whole second" {
	run -0 jobctl run plain --as-scheduled --wait
	[[ $(jobctl runs plain --json | jq -r '.[0].slot') =~ ^[^.]*Z$ ]]
	jobctl run plain --as-scheduled --wait
	[ "$(jobctl runs plain --json | jq '[.[].slot] | unique | length')" = 2 ]
	run jobctl events plain --what run.trigger -o csv
	[[ $output == *"as scheduled"* ]]
}

@test "a run as scheduled of a paused job is recorded as skipped" {
	jobctl add -n resting --manual -- true
	jobctl pause resting
	run -6 jobctl run resting
	run -12 jobctl run resting --as-scheduled --wait
	[[ $output == *"is skipped: paused"* ]]
	[ "$(jobctl runs resting --json | jq -r '.[0].state + " " + .[0].reason')" = "skipped paused" ]
	jobctl resume resting
	run -0 jobctl run resting --as-scheduled --wait
}

@test "jitter delays a run as scheduled" {
	jobctl add -n shaken --manual --jitter 1h -- true
	jobctl run shaken --as-scheduled
	[ "$(jobctl runs shaken --json | jq '.[0].state == "queued" and .[0].due_at > .[0].slot')" = true ]
	jobctl cancel shaken
}

@test "--as-scheduled excludes --force and --param" {
	run -2 jobctl run plain --as-scheduled --force
	[[ $output == *"--as-scheduled runs the job as its schedule does; it excludes --force and --param"* ]]
	run -2 jobctl run plain --as-scheduled --param a=b
}
