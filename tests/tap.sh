# SPDX-License-Identifier: Apache-2.0
# The library of the shell tests: lists of source files and TAP output.

: "${top_srcdir:=.}" "${top_builddir:=.}"
cases=0

# lint NAME COMMAND...: a test case that passes if the command prints nothing. The output describes the failures.
lint() {
	name=$1
	shift
	cases=$((cases + 1))
	found=$("$@" 2>&1)
	if [ -z "$found" ]; then
		echo "ok $cases - $name"
	else
		echo "not ok $cases - $name"
		echo "$found" | head -n 40 | sed 's/^/# /'
	fi
}

skipped() {
	cases=$((cases + 1))
	echo "ok $cases - $1 # SKIP $2"
}

finish() {
	echo "1..$cases"
}

# sources GLOB...: prints the source files with these names, relative to the top directory
sources() {
	(
		cd "$top_srcdir" || exit 1
		set -f
		names=
		for glob in "$@"; do
			names="$names -o -name $glob"
		done
		for dir in cmd src man systemd packaging tests; do
			[ ! -d "$dir" ] || find "$dir" -type f \( ${names# -o} \)
		done | sort
	)
}

# c_sources [DIR...]: prints the C files of these directories
c_sources() {
	(cd "$top_srcdir" && for dir in "${@:-src}"; do [ ! -d "$dir" ] || find "$dir" -name '*.[ch]'; done | sort)
}
