# SPDX-License-Identifier: Apache-2.0
# Holds the manual pages against mandoc, and against what the programs say about themselves.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# A reference to a page that is not installed on this machine is not a finding. mandoc writes findings to standard output
# and complaints about its database to standard error, at any moment, so the two streams are kept apart.
mandoc_says() {
	command -v mandoc >/dev/null || { echo "mandoc is missing"; return; }
	sources '*.[1578]' | xargs -r mandoc -T lint -W style 2>"$work/mandoc" | grep -v 'referenced manual not found'
	grep -vE 'outdated mandoc.db|mandoc.db: No such file' "$work/mandoc"
}
lint "the manual pages are clean under mandoc" mandoc_says

# options_of FILE: long and short options that stand in a help text, one per line
options_of() {
	grep -oE "(^|[ ,|/=('\[])--?[A-Za-z][A-Za-z0-9-]*" "$1" | grep -oE -- '--?[A-Za-z][A-Za-z0-9-]*$' | sort -u
}

# fl_of PAGE: the options an mdoc page describes with .It Fl, or mentions with Fl
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

# against PROGRAM PAGE: both directions
not_written() {
	comm -23 "$work/said" "$work/written" | sed "s|^|not in $1: |"
}
not_said() {
	comm -13 "$work/said" "$work/described" | sed "s|^|not in the help of $1: |"
}
against() {
	options_of "$work/$1" >"$work/said"
	fl_of "$2" '' >"$work/written"
	fl_of "$2" 1 >"$work/described"
	lint "every option that $1 --help names is in its manual page" not_written "$2"
	lint "every option in the manual page of $1 is in its --help" not_said "$1"
}

verbs_without_help() {
	sed -nE 's/^  ([a-z]+( [a-z]+)?)(  .*|$)/\1/p' "$work/jobctl" | sort -u >"$work/verbs"
	[ -s "$work/verbs" ] || echo "jobctl --help names no verb"
	while read -r verb; do
		"$top_builddir/jobctl" $verb --help >>"$work/jobctl" || echo "jobctl $verb --help fails"
	done <"$work/verbs"
}

# the keys of the configuration, by the program and by its page
config_keys() {
	"$top_builddir/jobschedd" --user --print-config --config /dev/null \
		--state-dir "$work/state" --runtime-dir "$work/run" | sed -n 's/^;\{0,1\}\([a-z-]*\) = .*/\1/p' | sort -u >"$work/keys"
	[ -s "$work/keys" ] || echo "jobschedd --print-config names no key"
	sed -n 's/^\.It Ic \([a-z-]*\).*/\1/p' man/jobschedd.conf.5 | sort -u >"$work/in-page"
	comm -23 "$work/keys" "$work/in-page" | sed 's/$/ is not in jobschedd.conf(5)/'
	comm -13 "$work/keys" "$work/in-page" | sed 's/$/ is only in jobschedd.conf(5)/'
}
lint "jobschedd.conf(5) describes the keys there are" config_keys

for program in jobctl jobsched-net jobsched-spawner jobschedd; do
	page=man/$program.8
	lint "$program --help answers on stdout" help_missing "$program"
	if [ "$program" = jobctl ]; then
		page=man/jobctl.1
		lint "every verb of jobctl has a help text" verbs_without_help
	fi
	against "$program" "$page"
done
finish
