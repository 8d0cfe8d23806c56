# SPDX-License-Identifier: Apache-2.0
# Finds state that nobody owns: mutable externs and variables of a file.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1

# variables WORD: declarations with this storage class that can be changed later
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
		# a constant pointer to a function; a function that returns one
		if ($0 ~ /\(\*const / || $0 ~ /\(\*[a-z_]+\(/)
			next
		if (left ~ /\*/ ? left !~ /\*[ \t]*const[ \t]/ : left !~ /[ \t]const[ \t]/)
			print FILENAME ":" FNR ": " $0
	}'
}

externs() {
	c_sources src cmd | variables extern
}
lint "no header offers a variable that can be changed" externs

# Only the log has a state of its own: everybody writes to the same one. So have failpoints, which are not in any program
# that is for use.
statics() {
	c_sources src cmd | grep -vE '^src/base/(log|failpoint)\.c$' | variables static
}
lint "no file keeps a variable of its own" statics
finish
