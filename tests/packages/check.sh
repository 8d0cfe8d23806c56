#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian and rpm packages twice, in directories of different names, compares them byte for byte, and runs lintian
# and rpmlint on them. Needs several minutes; not part of 'make check'. Skips a linter that is not installed.
#
# usage: tests/packages/check.sh
# The last line is "N passed, N failed". The tested tree is the last commit at the start.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/jobsched-packages.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
commit=$(git -C "$top" rev-parse HEAD) || exit 1 # of both builds, even if HEAD moves
passed=0 failed=0

# check NAME COMMAND...: counts the result of a command and prints its output on failure
check() {
	name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		passed=$((passed + 1))
		echo "ok: $name"
	else
		failed=$((failed + 1))
		echo "FAILED: $name"
		tail -n 30 "$work/log"
	fi
}

build() {
	mkdir -p "$1/build" && git -C "$top" archive "$commit" | tar -xf - -C "$1" && cd "$1" && ./autogen.sh && cd build &&
		../configure -q && make -s -j"$(nproc)" deb rpm
}

identical() {
	for package in "$work"/first/build/*.deb "$work"/first/build/*.rpm; do
		cmp "$package" "$work/second-with-a-longer-name/build/${package##*/}" || return 1
	done
}

check "packages are built" build "$work/first"
check "packages are built in another directory" build "$work/second-with-a-longer-name"
check "both builds are identical" identical
sha256sum "$work"/first/build/*.deb "$work"/first/build/*.rpm | sed "s|$work/first/build/||"
if command -v lintian >/dev/null; then
	check "lintian finds no error or warning" lintian --allow-root --fail-on error,warning "$work"/first/build/*.deb
fi
if command -v rpmlint >/dev/null; then
	check "rpmlint finds no error or warning" sh -c 'rpmlint -r "$1/packaging/rpm/jobsched.rpmlintrc" "$2"/first/build/*.rpm \
		"$1/packaging/rpm/jobsched.spec" | tee /dev/stderr | grep -q " 0 errors, 0 warnings"' sh "$top" "$work"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
