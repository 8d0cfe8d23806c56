# SPDX-License-Identifier: Apache-2.0
# Checks the manual pages with mandoc, against each other, and against the help texts of the programs.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A reference to a page that is not installed on this machine is not a finding. mandoc writes findings to standard output
# and messages about its database to standard error, so the two streams are kept apart.
mandoc_says() {
	command -v mandoc >/dev/null || { echo "mandoc is missing"; return; }
	sources '*.[1578]' | xargs -r mandoc -T lint -W style 2>"$work/mandoc" | grep -v 'referenced manual not found'
	grep -vE 'outdated mandoc.db|mandoc.db: No such file' "$work/mandoc"
}
lint "mandoc reports no findings" mandoc_says

# options_of FILE: prints the long and short options of a help text, one per line
options_of() {
	grep -oE "(^|[ ,|/=('\[])--?[A-Za-z][A-Za-z0-9-]*" "$1" | grep -oE -- '--?[A-Za-z][A-Za-z0-9-]*$' | sort -u
}

# fl_of PAGE: prints the options that an mdoc page describes with .It Fl or mentions with Fl
fl_of() {
	awk -v lists="$2" '
	lists && !/^\.It/ { next }
	/^\./ {
		n = split($0, w, /[ \t]+/)
		for (i = 1; i < n; i++)
			if (w[i] == "Fl" || w[i] == ".Fl") {
				o = w[i + 1]
				gsub(/\\-/, "-", o)
				if (o ~ /^-?[A-Za-z]/)
					print "-" o
			}
	}' "$1" | sort -u
}

help_missing() {
	[ -x "$top_builddir/$1" ] || { echo "$top_builddir/$1 is not built"; return; }
	"$top_builddir/$1" --help >"$work/$1" 2>"$work/stderr" || echo "$1 --help fails"
	sed 's/^/on stderr: /' "$work/stderr"
}

# against PROGRAM PAGE [TOPIC-PAGE...]: the page has every option of the program, and the pages describe no other option
not_written() {
	comm -23 "$work/said" "$work/written" | sed "s|^|not in $1: |"
}
not_said() {
	comm -13 "$work/said" "$work/described" | sed "s|^|not in the help of $1: |"
}
against() {
	program=$1
	options_of "$work/$program" >"$work/said"
	fl_of "$2" '' >"$work/written"
	lint "every option that $program --help names is in its manual page" not_written "$2"
	shift
	for described in "$@"; do
		[ ! -f "$described" ] || fl_of "$described" 1
	done | sort -u >"$work/described"
	lint "every option in the manual page of $program is in its --help" not_said "$program"
}

verbs_without_help() {
	sed -nE 's/^  ([a-z]+( [a-z]+)?)(  .*|$)/\1/p' "$work/jobctl" | sort -u >"$work/verbs"
	[ -s "$work/verbs" ] || echo "jobctl --help names no verb"
	while read -r verb; do
		"$top_builddir/jobctl" $verb --help >>"$work/jobctl" || echo "jobctl $verb --help fails"
	done <"$work/verbs"
}

# Each verb, or the first word of a group of verbs, has a subsection in jobctl(1).
verbs_not_written() {
	sed -n 's/^\.Ss //p' man/jobctl.1 | tr -d ',' | tr ' ' '\n' | sort -u >"$work/subsections"
	cut -d' ' -f1 "$work/verbs" | sort -u | comm -23 - "$work/subsections" | sed 's/$/ has no subsection in jobctl(1)/'
}

# '.Sx SECTION', 'in', '.Xr PAGE N' refers to a section of another page. Referenced pages of jobsched must exist.
bad_references() {
	awk '
	FNR == 1 { section = "" }
	/^\.Xr (job(ctl|sched)|spawner)/ && system("test -f man/" $2 "." $3) { print FILENAME ":" FNR ": no page " $2 "(" $3 ")" }
	/^\.Sx / { section = substr($0, 5); at = FNR }
	/^\.Xr / && section != "" && FNR == at + 2 && before == "in" {
		if (system("grep -qxF \".Sh " section "\" man/" $2 "." $3))
			print FILENAME ":" FNR ": no section " section " in " $2 "(" $3 ")"
	}
	{ before = $0 }' man/*.[1578]
}
lint "references between manual pages are correct" bad_references

# words_missing PAGE PATTERN SOURCE: prints the words of a table in the source that the page lacks. The tree of selftest.sh
# has neither configure.ac nor these sources.
words_missing() {
	[ -f configure.ac ] || return
	sed -nE "s/$2/\1/p" "$3" | grep -vx none | sort -u >"$work/words"
	[ -s "$work/words" ] || echo "$3 has no such table"
	while read -r word; do
		grep -qwF -- "$word" "$1" || echo "$1 does not mention '$word'"
	done <"$work/words"
}
lint "jobsched-policies(7) has all codes of 'jobctl why'" words_missing man/jobsched-policies.7 '^\t\[WHY_[A-Z_]+\] = "([a-z_]+)",' src/core/decide/why.c
lint "jobctl(1) has all kinds of events" words_missing man/jobctl.1 '^\t\[EVENT_[A-Z_]+\] = "([a-z.]+)",' src/core/job/event.c
lint "jobctl(1) has all states of runs" words_missing man/jobctl.1 '^\t\[RUN_[A-Z_]+\] = "([a-z_]+)",' src/core/job/run.c
lint "jobsched-policies(7) has all outcomes of attempts" \
	words_missing man/jobsched-policies.7 '^\t\[ATTEMPT_[A-Z_]+\] = "([a-z_]+)",' src/core/job/run.c
lint "jobsched-time(7) has all findings about schedules" \
	words_missing man/jobsched-time.7 '.*schedule_lint_report\([^"]*"([a-z-]+)".*' src/core/time/schedule_lint.c
lint "jobctl(1) has all other findings" words_missing man/jobctl.1 '.*add_finding\("((no|when)-[a-z-]+)".*' \
	src/daemon/api/submit/forecast.c

# compares the configuration keys of the program with those of the page
config_keys() {
	"$top_builddir/jobschedd" --user --print-config --config /dev/null \
		--state-dir "$work/state" --runtime-dir "$work/run" | sed -n 's/^;\{0,1\}\([a-z0-9-]*\) = .*/\1/p' | sort -u >"$work/keys"
	[ -s "$work/keys" ] || echo "jobschedd --print-config names no key"
	sed -n 's/^\.It Ic \([a-z0-9-]*\).*/\1/p' man/jobschedd.conf.5 | sort -u >"$work/in-page"
	comm -23 "$work/keys" "$work/in-page" | sed 's/$/ is not in jobschedd.conf(5)/'
	comm -13 "$work/keys" "$work/in-page" | sed 's/$/ is only in jobschedd.conf(5)/'
}
lint "jobschedd.conf(5) describes exactly the keys of the program" config_keys

# Only numbers: the page describes the defaults of other keys in sentences.
config_defaults() {
	"$top_builddir/jobschedd" --user --print-config --config /dev/null \
		--state-dir "$work/state" --runtime-dir "$work/run" | sed -nE 's/^;?([a-z0-9-]+) = ([0-9]+)$/\1 \2/p' | sort >"$work/defaults"
	awk '
	/^\.It Ic / { key = $3 }
	/^Default: [0-9]+[KMG]?\.$/ {
		unit = $2
		gsub(/[0-9.]/, "", unit)
		printf "%s %.0f\n", key, ($2 + 0) * (unit == "K" ? 1024 : unit == "M" ? 1048576 : unit == "G" ? 1073741824 : 1)
	}' man/jobschedd.conf.5 | sort >"$work/written"
	comm -23 "$work/defaults" "$work/written" | sed 's/^/not in jobschedd.conf(5): the default /'
	comm -13 "$work/defaults" "$work/written" | sed 's/^/only in jobschedd.conf(5): the default /'
}
lint "jobschedd.conf(5) has the defaults of the program" config_defaults

for program in jobctl jobsched-crontab jobsched-net jobsched-spawner jobschedd; do
	page=man/$program.8
	lint "$program --help writes to standard output" help_missing "$program"
	topics=
	if [ "$program" = jobctl ]; then
		page=man/jobctl.1
		topics="man/jobsched-cluster.7 man/jobsched-command.7 man/jobsched-executors.7 man/jobsched-policies.7"
		lint "every verb of jobctl has a help text" verbs_without_help
		lint "every verb of jobctl is in its manual page" verbs_not_written
	fi
	against "$program" "$page" $topics
done
finish
