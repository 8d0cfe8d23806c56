#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Tests 'jobctl import crontab': reports, findings, jobs.
load daemon

setup_file() { daemon_start; }
teardown_file() { daemon_stop; }

table() { printf '%b' "$1" >"$DIR/table"; }

@test "a dry run shows what each line becomes" {
	table '# backups\nSHELL=/bin/bash\n\n30 2 * * 1-5 /bin/true\n@daily echo hi%in\n'
	run -0 --separate-stderr jobctl import crontab --dry-run "$DIR/table"
	[[ $output == "$DIR/table: user table, mode debian"* ]]
	[[ $output == *"line 2: sets SHELL to '/bin/bash' for the entries below"* ]]
	[[ $output == *"runs      at 02:30 on Monday to Friday"* ]]
	[[ $output == *"input     in\\n"* ]]
	[[ $output == *"5 lines: 2 entries, 1 setting, 1 comment, 1 blank" ]]
	[ "$(grep -c '^  next\|^            20' <<<"$output")" -eq 6 ]
	[ "$stderr" = "nothing was added (--dry-run)" ]
	[ -z "$(jobctl list -o name)" ]
}

@test "findings name the mistake and its column" {
	table '0 5 * * * backup-$(date +%F)\n0 22-6 * * * true\n*/35 * * * * true\n0 0 1 * 1 true\n0 1 * * * scripts/x\n0 1 * * * no-such-program -v\n'
	run -0 --separate-stderr jobctl import crontab --dry-run "$DIR/table"
	[[ $output == *"(percent, column 26)"* ]]
	[[ $output == *"matches nothing; write two ranges: 22-23,0-6 (reversed-range, column 3)"* ]]
	[[ $output == *"the last interval is 25 minutes (uneven-step, column 1)"* ]]
	[[ $output == *"(day-or-weekday, column 1)"* ]]
	[[ $output == *"'scripts/x' is relative to the home directory; write an absolute path (relative-path)"* ]]
	[[ $output == *"'no-such-program' is not in PATH=/usr/bin:/bin (not-found)"* ]]
}

@test "clock changes are found in the zone of the machine" {
	table '30 2 * * * true\n'
	TZ=Europe/Berlin run -0 --separate-stderr jobctl import crontab --dry-run "$DIR/table"
	[[ $output == *"(dst-gap)"* ]]
	[[ $output == *"(dst-fold)"* ]]
	run -0 --separate-stderr jobctl import crontab --dry-run "$DIR/table"
	[[ $output != *dst-* ]]
}

@test "one bad line refuses the table and nothing is added" {
	table '1 2 * * * true\n61 * * * * true\n'
	run -2 --separate-stderr jobctl import crontab "$DIR/table"
	[[ ${stderr_lines[0]} == "$DIR/table: cron refuses the whole table and runs nothing of it because of line 2, column 1: minute field:"* ]]
	[[ ${stderr_lines[1]} == *"--mode cronie"* ]]
	[ -z "$(jobctl list -o name)" ]
	run -2 --separate-stderr jobctl import crontab --dry-run "$DIR/table"
	[[ $output == *"line 2: refused"* ]]
	[[ $output == *"2 lines: 1 entry, 1 refused" ]]
}

@test "a system table needs users that exist" {
	table '1 2 * * * root true\n'
	printf 'ann\n' >"$DIR/users"
	run -2 --separate-stderr jobctl import crontab --dry-run --table system --users "$DIR/users" "$DIR/table"
	[[ $output == *"there is no user 'root' (bad-username, column 11)"* ]]
	printf 'root\nann\n' >"$DIR/users"
	run -0 --separate-stderr jobctl import crontab --dry-run --table system --users "$DIR/users" "$DIR/table"
	[[ $output == *"user      root"* ]]
	run -0 --separate-stderr jobctl import crontab --dry-run --users "$DIR/users" "$DIR/table"
	[[ $stderr == *"for a system table give --table system"* ]]
}

@test "json is one object per line and adds nothing" {
	table 'A=1\n*/30 0 1 jan * x%in\n@reboot y\n'
	run -0 jobctl import crontab --format json "$DIR/table"
	[ "$(jq -c 'select(.command) | [.line, .command, .stdin, .env.A, .minute, .hour, .dom, .month, .dom_star, .dow_star, .reboot]' <<<"$output")" = \
		'[2,"x","in\n","1",[0,30],[0],[1],[1],false,true,null]
[3,"y",null,"1",null,null,null,null,null,null,true]' ]
	printf '1 * * * * x' >"$DIR/table"
	run -2 jobctl import crontab --format json "$DIR/table"
	[ "$(jq -c 'select(.file_error) | [.line, .file_error]' <<<"$output")" = '[1,"missing newline before EOF"]' ]
	printf '1 * * * * caf\351\n' >"$DIR/table"
	[ "$(jobctl import crontab --format json "$DIR/table" | jq -r .command_b64 | base64 -d | od -An -tx1)" = " 63 61 66 e9" ]
	[ -z "$(jobctl list -o name)" ]
}

@test "cronie mode skips bad lines, strict mode refuses doubtful ones" {
	table '61 * * * * true\nCRON_TZ=Asia/Tokyo\n0 9 * * * true\n'
	run -0 --separate-stderr jobctl import crontab --dry-run --mode cronie "$DIR/table"
	[[ $output == *"at 09:00 every day, Asia/Tokyo"* ]]
	table '0 22-6 * * * true\n'
	run -2 --separate-stderr jobctl import crontab --dry-run --mode strict "$DIR/table"
	[[ $stderr == *"strict mode refuses the whole table because of line 1, column 3"* ]]
	run -2 jobctl import crontab --mode vixie "$DIR/table"
}

@test "an import adds jobs that behave as under cron" {
	table 'MAILTO=ann@example.org\nGREETING="hello world"\n5 4 * * * cat; echo $GREETING $SHELL {x}%in\n0 22-6 * * * never\n'
	run -0 --separate-stderr jobctl import crontab "$DIR/table"
	[[ $stderr == *"$DIR/table:3: added job 1 'cat-"* ]]
	[[ $stderr == *"$DIR/table:4: not added: it never runs"* ]]
	[[ $stderr == *"$DIR/table: 4 lines: 2 entries, 2 settings"* ]]
	[[ $stderr == *"1 added, 0 replaced, 0 unchanged, 1 not added, 0 failed"* ]]
	run -0 jobctl show 1 -o json
	[ "$(jq -c '[.schedule[0], .sandbox, .overlap, .catchup, .umask, .notify, .env.PATH, .tags.crontab]' <<<"$output")" = \
		"[\"5 4 * * *\",\"compat\",\"allow\",\"none\",\"022\",[\"output:ann@example.org\"],\"/usr/bin:/bin\",\"$DIR/table\"]" ]
	run -0 jobctl run 1 --follow
	[[ $output == *"in"*"hello world /bin/sh {x}"* ]]
}

@test "a second import changes only what has changed" {
	table 'SHELL=/bin/sh\n5 4 * * * cat; echo a\n5 5 * * * echo b\n5 5 * * * echo b\n'
	run -0 --separate-stderr jobctl import crontab "$DIR/table"
	[[ $stderr == *"3 added, 0 replaced, 0 unchanged"* ]]
	run -0 --separate-stderr jobctl import crontab "$DIR/table"
	[[ $stderr == *"0 added, 0 replaced, 3 unchanged"* ]]
	table 'SHELL=/bin/sh\n6 4 * * * cat; echo a\n5 5 * * * echo b\n5 5 * * * echo b\n'
	run -0 --separate-stderr jobctl import crontab "$DIR/table"
	[[ $stderr == *"0 added, 1 replaced, 2 unchanged"* ]]
}

@test "options that do not go together are refused" {
	table '1 * * * * true\n'
	run -2 jobctl import crontab --system "$DIR/table"
	run -2 jobctl import crontab --table system
	run -2 jobctl import crontab --table other "$DIR/table"
	run -2 jobctl import crontab --format xml "$DIR/table"
	run -3 jobctl import crontab "$DIR/no-such-table"
	run -3 jobctl import crontab --user no-such-user
	run -0 jobctl import crontab --dry-run - <"$DIR/table"
}
