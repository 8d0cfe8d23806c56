#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# jobctl next and jobctl explain, which need no daemon.

load daemon

setup_file() {
	jobctl_setup
}

teardown_file() {
	rm -rf "$DIR"
}

FROM=2024-03-30T00:00:00Z

@test "the output is one time per line" {
	run --separate-stderr jobctl next --tz Europe/Berlin --from "$FROM" -n 2 -- '30 2 * * *'
	[ "$status" -eq 0 ]
	[ -z "$stderr" ]
	[ "$output" = $'2024-03-30T01:30:00Z\n2024-03-31T01:00:00Z' ]
}

@test "a terminal shows the local time first" {
	run on_terminal 80 "jobctl next --tz Asia/Kathmandu --from $FROM -n 1 -- '@daily'"
	[[ ${lines[0]} == LOCAL*WHEN*UTC* ]]
	[[ ${lines[1]} == "2024-03-31T00:00:00+05:45  "*"  2024-03-30T18:15:00Z"* ]]
	[ "$(jobctl next --tz Asia/Kathmandu --from "$FROM" -n 1 -- '@daily')" = 2024-03-30T18:15:00Z ]
}

@test "JSON has the local time and the clock change" {
	run jobctl next --tz Europe/Berlin --from "$FROM" -n 2 --json -- '30 2 * * *'
	[ "$(jq -c '.[1]' <<<"$output")" = \
		'{"at":"2024-03-31T01:00:00Z","local":"2024-03-31T03:00:00+02:00","clock_change":3600}' ]
	[ "$(jobctl next --tz UTC --json -- @reboot)" = "[]" ]
}

@test "CSV has a header" {
	run jobctl next --tz Asia/Kathmandu --from "$FROM" -n 1 -o csv -- '@daily'
	[ "${lines[0]}" = "at,local,clock_change" ]
	[ "${lines[1]}" = "2024-03-30T18:15:00Z,2024-03-31T00:00:00+05:45," ]
}

@test "the default time zone is that of the user" {
	[ "$(TZ=Asia/Tokyo jobctl next --from "$FROM" -n 1 -- '0 9 * * *')" = 2024-03-31T00:00:00Z ]
	[ "$(TZ=Asia/Tokyo jobctl next --tz UTC --from "$FROM" -n 1 -- '0 9 * * *')" = 2024-03-30T09:00:00Z ]
}

# tomorrow HH:MM in UTC, computed before and after the command, in case midnight passes meanwhile
tomorrow() {
	date -u -d "tomorrow $1" +%FT%TZ
}

@test "--from accepts a phrase" {
	local days

	days=$(tomorrow 10:00; tomorrow 09:00)
	from=$(jobctl next --tz UTC --from 'tomorrow 9am' -n 1 -- '0 * * * *')
	at=$(jobctl next --tz UTC -n 1 --at 'tomorrow at 9am')
	days+=$(tomorrow 10:00; tomorrow 09:00)
	[[ $days == *"$from"* && $from == *T10:00:00Z ]]
	[[ $days == *"$at"* && $at == *T09:00:00Z ]]
	[ "$(jobctl next --tz Asia/Tokyo --from 2026-11-16 -n 1 -- '30 0 * * *')" = 2026-11-15T15:30:00Z ]
}

@test "several expressions give the union of their slots" {
	run jobctl next --tz UTC --from "$FROM" -n 3 --cron '0 6 * * *' --cron '0 */6 * * *'
	[ "$output" = $'2024-03-30T06:00:00Z\n2024-03-30T12:00:00Z\n2024-03-30T18:00:00Z' ]
}

@test "a schedule can be several words" {
	[ "$(jobctl next --tz UTC --from "$FROM" -n 1 -- every 90 minutes)" = 2024-03-30T01:30:00Z ]
	[ "$(jobctl explain --tz UTC --from "$FROM" tomorrow 9am)" = "once, at 2024-03-31T09:00:00Z" ]
}

@test "an invalid schedule prints nothing to standard output and exits with 2" {
	for schedule in '0 0 30 2 *' '*/0 * * * *' 'yesterday' '' '   '; do
		run --separate-stderr jobctl next --tz UTC --from "$FROM" -- "$schedule"
		[ "$status" -eq 2 ]
		[ -z "$output" ]
		[ -n "$stderr" ]
	done
}

@test "messages name the wrong option" {
	for words in '--tz Nowhere/Land' '--from yesteday' '--count 0' '--count x' '--dst-gap never' '--dst-fold third'; do
		run --separate-stderr jobctl next $words -- '@daily'
		[ "$status" -eq 2 ]
		word=${words#--}
		grep -q -- "${word#* }" <<<"$stderr"
	done
	run jobctl next
	[ "$status" -eq 2 ]
	run jobctl next --every 5m --cron '@daily'
	[ "$status" -eq 2 ]
	run jobctl next --every 5m -- '@daily'
	[ "$status" -eq 2 ]
}

@test "DST policies change the slots on days with a clock change" {
	next() {
		jobctl next --tz Europe/Berlin -n 1 "$@" -- '30 2 * * *'
	}
	[ "$(next --from 2024-03-31T00:00:00Z --dst-gap skip)" = 2024-04-01T00:30:00Z ]
	[ "$(next --from 2024-10-27T00:00:00Z --dst-fold last)" = 2024-10-27T01:30:00Z ]
}

@test "a word without -- is a job and needs the daemon" {
	run --separate-stderr jobctl next nightly
	[ "$status" -eq 5 ]
	run jobctl next --tz UTC --from "$FROM" -n 1 -- noon
	[ "$output" = 2024-03-30T12:00:00Z ]
}

@test "a batch answers every row, also invalid ones" {
	run --separate-stderr jobctl next --batch < <(printf '%s\n' $'@daily\tUTC\t2024-01-01T00:00:00Z\t2\t' 'rubbish' \
		$'@daily\tNo/Where\t2024-01-01T00:00:00Z\t2\t' $'@reboot\tUTC\t2024-01-01T00:00:00Z\t2\t' \
		$'now\tUTC\t2024-01-01T00:00:00Z\t2')
	[ "$status" -eq 0 ]
	mapfile -t rows <<<"$output"
	[ "${rows[0]}" = 2024-01-02T00:00:00Z,2024-01-03T00:00:00Z ]
	[[ "${rows[1]}" == "ERROR "* ]]
	[[ "${rows[2]}" == "ERROR "*No/Where* ]]
	[ -z "${rows[3]}" ]
	[ "${rows[4]}" = 2024-01-01T00:00:00Z ]
}

@test "explain describes the schedule and reports probable mistakes" {
	run --separate-stderr jobctl explain --tz UTC '*/35 * * * *'
	[ "$status" -eq 0 ]
	[ "$output" = "at minutes 0 and 35 of every hour, UTC" ]
	grep -q uneven-step <<<"$stderr"
	run --separate-stderr jobctl explain --tz UTC '*/15 * * * *'
	[ -z "$stderr" ]
}

@test "explain in JSON has the canonical text and the findings" {
	run jobctl explain --tz UTC --from "$FROM" --json '0 0 13 * fri'
	[ "$(jq -r '.canonical[0]' <<<"$output")" = "0 0 13 * FRI" ]
	[ "$(jq -r '.findings[0].code' <<<"$output")" = day-or-weekday ]
	[ "$(jobctl explain --from "$FROM" --json --every 90m | jq -r '.canonical[0]')" = "PT1H30M since $FROM" ]
}
