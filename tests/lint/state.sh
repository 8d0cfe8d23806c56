# SPDX-License-Identifier: Apache-2.0
# Finds mutable global and file-scope variables.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1

# variables WORD: prints the declarations of variables with this storage class that are not constant
variables() {
	xargs awk -v word="$1" '
	function variable(text) {
		sub(/^[ \t]*/, "", text)
		match(text, /[=;{(]/)
		if (substr(text, RSTART, 1) == "(" && substr(text, RSTART + 1, 1) != "*")
			return ""
		return substr(text, 1, RSTART ? RSTART - 1 : length(text))
	}
	$0 ~ "^[ \t]*" word "[ \t]" {
		left = variable($0)
		if (left == "" || left ~ /[ \t](inline|_Noreturn)[ \t]/)
			next
		# a constant function pointer; a function that returns a function pointer
		if ($0 ~ /\(\*const / || $0 ~ /\(\*[a-z_]+\(/)
			next
		if (left ~ /\*/ ? left !~ /\*[ \t]*const[ \t]/ : left !~ /[ \t]const[ \t]/)
			print FILENAME ":" FNR ": " $0
	}'
}

externs() {
	c_sources src cmd | variables extern
}
lint "no header declares a mutable variable" externs

# Exceptions: the log, which all parts of a program share, and failpoints, which are only in test builds.
statics() {
	c_sources src cmd | grep -vE '^src/base/(log|failpoint)\.c$' | variables static
}
lint "no file has a mutable static variable" statics
finish
