# SPDX-License-Identifier: Apache-2.0
# Finds functions and files that are too long.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
# Only the braces of a function body are in the first column.
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
functions 60 | sed 's/^/# long: /'
c_sources src cmd | xargs wc -l | awk '$2 != "total" && $1 > 600 { print "# long: " $2 " has " $1 " lines" }'
finish
