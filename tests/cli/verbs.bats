#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The verbs with a real daemon: effects, messages and exit codes.

load daemon

# ---- add ----

@test "add prints a number to a script and a sentence to a terminal" {
	run --separate-stderr jobctl add -- true
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^[0-9]+$ ]]
	[ "$stderr" = "added job $output; it runs now (jobctl log -f $output)" ]
	run on_terminal 80 jobctl add -n person -- true
	[[ "$output" =~ ^added\ job\ [0-9]+\ \'person\'\;\ it\ runs\ now ]]
}

@test "add shows the first slot in the zone of the job, and the jitter" {
	run --separate-stderr jobctl add --tz Asia/Kathmandu --cron '30 2 * * *' --jitter 5m -- true
	[[ "$stderr" =~ ";"\ it\ runs\ in\ .*,\ at\ [0-9-]+T02:30:00\+05:45,\ or\ up\ to\ 5m\ later$ ]]
	run --separate-stderr jobctl add --jitter 1s -- true
	[[ "$stderr" == *"; it runs within 1s" ]]
}

@test "add -o name prints the reference to the job" {
	[ "$(jobctl add -o name -n typed -- true)" = typed ]
	[[ "$(jobctl add -o name -- true)" =~ ^[0-9]+$ ]]
}

@test "add --dry-run shows the meaning, five slots and warnings, and adds nothing" {
	before=$(jobctl list --all -o name | wc -l)
	run --separate-stderr jobctl add --dry-run --tz Europe/Berlin --cron '*/35 2 * * *' -n dry -- true
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "schedule      at 02:00 and 02:35 every day, Europe/Berlin" ]
	[ "$(grep -cE '^(next)? +[0-9]{4}-[0-9-]+T02:(00|35):00\+0[12]:00' <<<"$output")" -eq 5 ]
	[[ "$output" =~ "note          minute '*/35' starts again at 0".*" (uneven-step)" ]]
	[ "$stderr" = "nothing was added (--dry-run)" ]
	run jobctl add --dry-run --tz UTC --cron '0 3 * * *' -o json -- true
	[ "$(jq -r '.explain, (.next | length), (.findings | length), .id' <<<"$output" | xargs)" = \
		"at 03:00 every day, UTC 5 0 null" ]
	[ "$(jobctl list --all -o name | wc -l)" -eq "$before" ]
}

@test "add --dry-run refuses invalid jobs and incompatible options" {
	run jobctl add --dry-run --cron '0 0 30 2 *' -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *"never fires"* ]]
	run jobctl add --dry-run --wait -- true
	[ "$status" -eq 2 ]
	run jobctl add --dry-run -o csv -- true
	[ "$status" -eq 2 ]
}

@test "add prints warnings once to standard error and adds the job" {
	run --separate-stderr jobctl add --tz UTC --cron '*/35 * * * *' -n doubtful -- true
	[ "$status" -eq 0 ]
	[[ "$output" =~ ^[0-9]+$ ]]
	[ "$(grep -c '^note: .* (uneven-step)$' <<<"$stderr")" -eq 1 ]
	run --separate-stderr jobctl add --tz UTC --cron '*/35 * * * *' -o json -- true
	[ "$stderr" = "" ]
	[ "$(jq -r '.findings[].code' <<<"$output")" = uneven-step ]
}

@test "list shows schedules as they were typed" {
	jobctl add -n short1 --after-finish 90s -- true
	jobctl add -n short2 --every 2d -- true
	jobctl add -n short3 --on boot -- true
	jobctl add -n short4 --iso R3/PT1H -- true
	run jobctl list 'short*' -o csv
	[ "$(jobctl list 'short*' -o csv | grep -oE '(after-finish|every|on boot|R3/)[^,]*' | xargs)" = \
		"after-finish 1m30s every 2d on boot R3/PT1H" ]
	[[ "$(jobctl show short1 -o json | jq -r '.schedule[0]')" == "after-finish PT1M30S since "* ]]
}

@test "several words are run without a shell" {
	job=$(jobctl add -- printf '<%s>' 'a b' '$HOME' '' '*' -n --)
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = '<a b><$HOME><><*><-n><-->' ]
}

@test "one word with shell syntax is run by a shell" {
	job=$(jobctl add -- 'echo a b | tr a-z A-Z')
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = "A B" ]
	[ "$(field "$job" script)" = 'echo a b | tr a-z A-Z' ]
}

@test "a script with #! is run by that program" {
	local job

	job=$(printf '#!/usr/bin/env -S python3 -u\nimport sys\nprint("python", sys.argv[1:], sys.stdin.read())\n' | jobctl add)
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = "python [] " ]
	job=$(printf '#!/bin/bash\na=(x y)\necho "${a[1]} $JOBSCHED_JOB"; exit 3\n' | jobctl add)
	run -10 jobctl wait "$job"
	[ "$(jobctl log "$job" | head -1)" = "y $job" ]
	job=$(printf '#!/no/such/program\n' | jobctl add)
	run -10 jobctl wait "$job"
	[[ $(jobctl log "$job") == *"/no/such/program: not found"* ]]
}

@test "without a command, standard input is the script" {
	job=$(printf 'x=5\necho $((x + 1))\n' | jobctl add -n from-stdin)
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = 6 ]
}

@test "bytes that are not UTF-8 reach the command unchanged" {
	job=$(jobctl add -e $'BYTES=a\xffb' -- sh -c 'printf %s "$BYTES$1" | od -An -tx1' sh $'\xfe')
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = " 61 ff 62 fe" ]
}

@test "--stdin reads a file or standard input" {
	printf 'a\0b\xff' >"$DIR/payload"
	job=$(jobctl add --stdin "$DIR/payload" -- od -An -tx1)
	other=$(printf 'hello' | jobctl add --stdin - -- cat)
	jobctl wait "$job" "$other"
	[ "$(jobctl log "$job")" = " 61 00 62 ff" ]
	[ "$(jobctl log "$other")" = hello ]
}

@test "the job starts in the current directory or in --cwd" {
	mkdir -p "$DIR/here/below"
	cd "$DIR/here"
	a=$(jobctl add -- pwd) b=$(jobctl add -C below -- pwd) c=$(jobctl add --cwd / -- pwd)
	jobctl wait "$a" "$b" "$c"
	[ "$(jobctl log "$a")" = "$DIR/here" ]
	[ "$(jobctl log "$b")" = "$DIR/here/below" ]
	[ "$(jobctl log "$c")" = / ]
}

@test "only the given variables are in the environment" {
	printf '# comment\n\nA=1\nB=x y\n' >"$DIR/env"
	export FROM_HERE=mine NOT_COPIED=1
	job=$(jobctl add --env-file "$DIR/env" -e A=2 -e FROM_HERE -- env)
	jobctl wait "$job"
	run jobctl log "$job"
	grep -qx 'A=2' <<<"$output"
	grep -qx 'B=x y' <<<"$output"
	grep -qx 'FROM_HERE=mine' <<<"$output"
	! grep -q NOT_COPIED <<<"$output"
}

@test "show --env prints the variables that the command gets" {
	job=$(jobctl add -n enviable -e MINE=1 -- env)
	jobctl wait "$job"
	jobctl log "$job" | cut -d= -f1 | sort >"$DIR/real"
	jobctl show --env "$job" | cut -d= -f1 | sort >"$DIR/shown"
	diff "$DIR/real" "$DIR/shown"
	run=$(jobctl runs "$job" -o name)
	jobctl show --env "$run" | grep -v '=<' | sort >"$DIR/known"
	[ "$(jobctl log "$job" | sort | comm -13 - "$DIR/known")" = "" ]
}

@test "the time zone of the user is stored in the job" {
	job=$(TZ=Europe/Berlin jobctl add -- 'echo $TZ')
	[ "$(field "$job" tz)" = Europe/Berlin ]
	jobctl wait "$job"
	[ "$(jobctl log "$job")" = Europe/Berlin ]
}

@test "a future job waits, and add reports when it runs" {
	run --separate-stderr jobctl add --in 1h -- true
	[ "$status" -eq 0 ]
	[[ "$stderr" =~ it\ runs\ in\ (1h|59m59s|1h1s),\ at\ 20 ]]
	[ "$(field "$output" state)" = active ]
	run --separate-stderr jobctl add --at 2199-01-01T00:00:00Z -n far -- true
	[ "$(field far next_at)" = 2199-01-01T00:00:00Z ]
	run jobctl add --at 2001-01-01T00:00:00Z -- true
	[ "$status" -eq 2 ]
	[[ "$output" == *past* ]]
}

@test "a job can be repeated" {
	job=$(jobctl add -n again --every 1s -- true)
	repeated() { [ "$(jobctl runs "$job" --state succeeded -o jsonl | wc -l)" -ge 2 ]; }
	eventually repeated
	jobctl cancel again
}

@test "the same key adds one job; another definition is a conflict" {
	a=$(jobctl add --key k1 -- true)
	run --separate-stderr jobctl add --key k1 -- true
	[ "$status" -eq 0 ]
	[ "$output" = "$a" ]
	[ "$stderr" = "job $a was added with this key before" ]
	run jobctl add --key k1 -- false
	[ "$status" -eq 6 ]
}

@test "a name in use is a conflict" {
	jobctl add -n taken --in 1h -- true
	run jobctl add -n taken --in 1h -- true
	[ "$status" -eq 6 ]
	[[ "$output" == *taken* ]]
}

@test "add --follow shows the output and exits with the result of the run" {
	run --separate-stderr jobctl add -f -- 'echo one; sleep 0.2; echo two; exit 3'
	[ "$status" -eq 10 ]
	[ "$output" = $'one\ntwo' ]
	[[ "$stderr" == *"failed after"*"exit code 3"* ]]
}

@test "add --wait exits with the result of the run" {
	run --separate-stderr jobctl add --wait -- true
	[ "$status" -eq 0 ]
	run --separate-stderr jobctl add --wait --in 1s -- false
	[ "$status" -eq 10 ]
}

# ---- show ----

@test "show prints a job or a run" {
	job=$(jobctl add -n shown -t team=web -e API_TOKEN=hush --timeout 90s -- echo 'a b')
	jobctl wait "$job"
	run jobctl show shown
	[ "$status" -eq 0 ]
	grep -qx "job           $job 'shown'" <<<"$output"
	grep -qx "command       echo 'a b'" <<<"$output"
	grep -qx "timeout       1m30s" <<<"$output"
	grep -qx "tags          team=web" <<<"$output"
	grep -qx 'env           API_TOKEN=\*\*\*' <<<"$output"
	grep -qE "^last run      shown#[0-9]+ succeeded" <<<"$output"
	grep -qE "^durations     p50 [0-9.]+m?s, p95 [0-9.]+m?s of 1 successful run; last [0-9.]+m?s$" <<<"$output"
	run jobctl show --reveal shown
	grep -qx 'env           API_TOKEN=hush' <<<"$output"
	run jobctl show "$(jobctl runs shown -o name)"
	grep -qE '^state         succeeded' <<<"$output"
	grep -qE "^attempt 1     succeeded on $(uname -n), took .*output 4 B" <<<"$output"
	grep -qx "node          $(uname -n)" <<<"$output"
	[ "$(jobctl runs shown -o csv | tail -1 | cut -d, -f15)" = "$(uname -n)" ]
}

@test "show explains the schedule and shows the next slot in its zone" {
	jobctl add -n spoken --tz Asia/Kathmandu --cron '30 2 * * 5L' -- true
	run jobctl show spoken
	grep -qx "schedule      30 2 \* \* FRIL" <<<"$output"
	grep -qx "meaning       at 02:30 on the last Friday of every month, Asia/Kathmandu" <<<"$output"
	grep -qE "^next          [0-9-]+T20:45:00Z, [0-9-]+T02:30:00\+05:45 Asia/Kathmandu$" <<<"$output"
	grep -qx "tz            Asia/Kathmandu" <<<"$output"
}

@test "show --as-command writes intervals as they are typed" {
	jobctl add -n lap --tz UTC --every 90m -- true
	jobctl add -n rest --tz UTC --after-finish 10m -- true
	[[ "$(jobctl show --as-command lap)" == *" --every '1h30m since "*"Z' -- true" ]]
	[[ "$(jobctl show --as-command rest)" == *" --after-finish 10m -- true" ]]
	slot=$(jobctl show lap --json | jq -r .next_at)
	jobctl rm -y lap
	eval "$(jobctl show --as-command rest | sed 's/rest/rest2/')"
	[ "$(jobctl next rest2)" = "$(jobctl show rest2 --json | jq -r .next_at)" ]
	[ "$(jobctl next -n 1 --every "1h30m since $(date -u -d "$slot - 90 minutes" +%Y-%m-%dT%H:%M:%SZ)")" = "$slot" ]
}

@test "next reports why there is no slot" {
	jobctl add -n kernel --on boot -- true
	run --separate-stderr jobctl next kernel
	[ "$status" -eq 0 ] && [ -z "$output" ]
	[ "$stderr" = "no upcoming slots; the schedule is: once after every boot of the machine" ]
}

@test "show --as-command creates an equal job" {
	cd /
	jobctl add -n original -e "A=it's" -t k=v --umask 022 -p 3 --in 1h --stdin - -- printf '%s\n' 'a b' '$x' <<<"text"
	command=$(jobctl show --as-command original)
	jobctl rm -y original
	eval "$command"
	jobctl rm -y original
	eval "${command//--at*Z --/--in 1h --}"
	[ "$(jobctl show --as-command original | sed 's/--at [^ ]*//')" = "$(sed 's/--at [^ ]*//' <<<"$command")" ]
}

@test "an unknown object gives exit code 3 and a suggestion" {
	jobctl add -n backup --in 1h -- true
	run --separate-stderr jobctl show bakcup
	[ "$status" -eq 3 ]
	[ "$stderr" = "jobctl: no job 'bakcup'; did you mean 'backup'?" ]
	run jobctl show 999999
	[ "$status" -eq 3 ]
	run jobctl show '#999999'
	[ "$status" -eq 3 ]
	other=$(jobctl add --wait -n other -- true)
	run jobctl show "backup#$(jobctl runs other --json | jq '.[0].id')"
	[ "$status" -eq 3 ]
	[[ "$output" == *"did you mean 'other#"* ]]
}

# ---- cancel, rm ----

@test "cancel reports the result and the runs that are still running" {
	job=$(jobctl add -n long -- sleep 30)
	until [ "$(jobctl runs long --state running -o name)" ]; do sleep 0.02; done
	run=$(jobctl runs long -o name)
	run --separate-stderr jobctl cancel long
	[ "$status" -eq 0 ]
	[ "$stderr" = "cancelled job $job 'long'; run $run is still running (jobctl cancel $run); to undo: jobctl resume $job" ]
	[ "$(field long state)" = cancelled ]
	run --separate-stderr jobctl cancel "$run"
	[ "$status" -eq 0 ]
	[ "$stderr" = "run $run is being ended (jobctl wait $run)" ]
	run --separate-stderr jobctl wait "$run"
	[ "$status" -eq 11 ]
	run --separate-stderr jobctl cancel "$run"
	[ "$stderr" = "cancelled run $run" ] || [ "$stderr" = "run $run had already ended: cancelled" ]
}

@test "cancel --running ends running runs and their children" {
	jobctl add -n tree -- 'sleep 31 & echo $!; sleep 32'
	until [ "$(jobctl log tree 2>/dev/null)" ]; do sleep 0.02; done
	child=$(jobctl log tree)
	kill -0 "$child"
	run --separate-stderr jobctl cancel --running tree
	[ "$status" -eq 0 ]
	[[ "$stderr" == *"is being ended; to undo: jobctl resume "* ]]
	run jobctl wait tree
	[ "$status" -eq 11 ]
	! kill -0 "$child" 2>/dev/null
}

@test "cancel reports that there was nothing to cancel" {
	job=$(jobctl add -n over1 --wait -- true 2>/dev/null)
	run --separate-stderr jobctl cancel over1
	[ "$status" -eq 0 ]
	[ "$stderr" = "job $job 'over1' was already finished; 'jobctl run $job' runs it again" ]
	jobctl add -n over2 --in 1h -- true
	jobctl cancel over2
	run --separate-stderr jobctl cancel over2
	[[ "$stderr" == *"was already cancelled; 'jobctl resume "*"' reactivates it" ]]
}

@test "cancel continues after an unknown job and exits with its code" {
	jobctl add -n c1 --in 1h -- true
	run jobctl cancel nosuch c1
	[ "$status" -eq 3 ]
	[ "$(field c1 state)" = cancelled ]
}

@test "rm needs --yes without a terminal" {
	jobctl add -n removable --in 1h -- true
	run jobctl rm removable </dev/null
	[ "$status" -eq 2 ]
	[[ "$output" == *--yes* ]]
	[ "$(field removable state)" = active ]
	run --separate-stderr jobctl rm --yes removable
	[ "$status" -eq 0 ]
	[[ "$stderr" =~ ^removed\ job\ [0-9]+\ \'removable\' ]]
	run jobctl show removable
	[ "$status" -eq 3 ]
	jobctl add -n removable --in 1h -- true
}

@test "rm asks on a terminal" {
	jobctl add -n asked --in 1h -- true
	run script -qec "jobctl rm asked" /dev/null <<<"n"
	[[ "$output" == *"remove 'asked'? [y/N]"* ]]
	[ "$(field asked state)" = active ]
	run script -qec "jobctl rm asked" /dev/null <<<"y"
	run jobctl show asked
	[ "$status" -eq 3 ]
}

@test "rm refuses runs" {
	run jobctl rm -y '#1'
	[ "$status" -eq 2 ]
}

# ---- status, version ----

@test "status and jobctl without arguments show the daemon" {
	run --separate-stderr jobctl status
	[ "$status" -eq 0 ]
	[[ "${lines[0]}" =~ ^jobschedd\ [0-9] ]]
	grep -qx "socket  $XDG_RUNTIME_DIR/jobsched/jobsched.sock" <<<"$output"
	run --separate-stderr jobctl
	[ "$status" -eq 0 ]
	[ "$(grep -c '^  jobctl ' <<<"$output")" -eq 5 ]
	jobctl status --json | jq -e '.version and .jobs and .runs'
	[[ "$(jobctl version)" == *jobschedd* ]]
}

@test "--socket and JOBSCHED_SOCKET select the socket" {
	jobctl --socket "$XDG_RUNTIME_DIR/jobsched/jobsched.sock" list >/dev/null
	JOBSCHED_SOCKET=$XDG_RUNTIME_DIR/jobsched/jobsched.sock XDG_RUNTIME_DIR=/nowhere jobctl list >/dev/null
	run jobctl --system list
	[ "$status" -ne 0 ]
}

@test "a stopped daemon is reported, and its late answer is used" {
	pid=$(cat "$DIR/pid")
	kill -STOP "$pid"
	jobctl status >"$DIR/silent.out" 2>"$DIR/silent.err" 3>&- &
	asking=$!
	eventually [ -s "$DIR/silent.err" ]
	kill -CONT "$pid"
	wait "$asking"
	[[ "$(cat "$DIR/silent.err")" == "the daemon at '$DIR/run/jobsched/jobsched.sock' is stopped ('kill -CONT $pid' resumes it) and has not answered for 3 s"* ]]
	grep -q "^jobschedd " "$DIR/silent.out"
}
