# SPDX-License-Identifier: Apache-2.0
# Finds functions that have grown past what a person reads at once.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
# A body opens and closes in the first column, which nothing else does.
functions() {
	c_sources src cmd tests | xargs awk -v over="$1" '
	/^[A-Za-z_].*\(/ { name = $0 }
	/^\{/ { start = FNR }
	/^\}/ && start {
		if (FNR - start - 1 > over) {
			sub(/\(.*/, "", name); sub(/.*[ *]/, "", name)
			print FILENAME ":" start ": " name " has " FNR - start - 1 " lines"
		}
		start = 0
	}'
}
lint "no function has more than 100 lines" functions 100
functions 60 | sed 's/^/# to look at: /'
c_sources src cmd | xargs wc -l | awk '$2 != "total" && $1 > 600 { print "# to look at: " $2 " has " $1 " lines" }'
finish
