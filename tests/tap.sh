# SPDX-License-Identifier: Apache-2.0
# What the shell tests share: where the sources are, and findings as TAP.

: "${top_srcdir:=.}" "${top_builddir:=.}"
cases=0

# lint NAME COMMAND...: the case is fine when the command prints nothing; what it prints says what is not
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

# sources GLOB...: our files with such names, relative to the top
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

# c_sources [DIR...]: the C files of these directories
c_sources() {
	(cd "$top_srcdir" && for dir in "${@:-src}"; do [ ! -d "$dir" ] || find "$dir" -name '*.[ch]'; done | sort)
}
