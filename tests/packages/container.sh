#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Executes the steps of packaging/Containerfile in root file systems made by mmdebstrap, because no container engine is needed for
# that, and runs a crontab in the result. Needs root and several minutes; not part of 'make check'.
#
# usage: tests/packages/container.sh
# The last line is "N passed, N failed". The tested tree is the last commit. Exit status 77: a root could not be made.
set -u
unset CC CFLAGS CPPFLAGS LDFLAGS CONFIG_SITE # of this machine; they do not apply in the root file system
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/jobsched-image.XXXXXX") || exit 77
trap 'rm -rf "$work"' EXIT
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

# inside ROOT COMMAND...: executes a command in a root file system, as process 1 of a PID namespace
inside() {
	unshare --mount --pid --fork --kill-child sh -c 'root=$1; shift
		mount --bind "$root" "$root" && mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" &&
		if [ -n "${READ_ONLY:-}" ]; then mount -o remount,bind,ro "$root"; fi && exec chroot $USER_OPTIONS "$root" "$@"' sh "$@"
}

# step STAGE KEYWORD: prints the text of the last instruction of this kind in a stage (1 is the first), without line breaks
step() {
	sed -e ':a' -e '/\\$/ { N; s/\\\n//; ba' -e '}' "$work/tree/packaging/Containerfile" |
		awk -v stage="$1" -v word="$2" '$1 == "FROM" { n++ } n == stage && $1 == word { sub(/^[A-Z]+ /, ""); text = $0 } END { print text }'
}

export USER_OPTIONS=
mkdir "$work/tree" && git -C "$top" archive HEAD | tar -xf - -C "$work/tree" || exit 77
for stage in 1 2; do
	root=$work/stage$stage
	mmdebstrap --quiet --mode=root --variant=minbase bookworm "$root" || { echo "container: no root file system" >&2; exit 77; }
	cp -L /etc/resolv.conf "$root/etc/"
	apt-config dump 2>/dev/null | grep -E '^Acquire::https?::Proxy' >"$root/etc/apt/apt.conf.d/90machine"
done
cp -R "$work/tree" "$work/stage1/src"
check "the build stage is executed" inside "$work/stage1" sh -c "cd $(step 1 WORKDIR) && $(step 1 RUN)"
check "the run stage is executed" inside "$work/stage2" sh -c "$(step 2 RUN)"
program=$(step 2 COPY | sed 's/^--from=build //')
check "the program is copied" cp "$work/stage1${program% *}" "$work/stage2${program#* }"

words=$(echo "$(step 2 ENTRYPOINT) $(step 2 CMD)" | tr -d '[]",')
mkdir -p "$work/stage2/etc/jobsched"
cat >"$work/stage2/etc/jobsched/crontab" <<'END'
* * * * * echo "uid $(id -u)"; touch /var/x
* * * * * sleep 10; kill -TERM 1
END
USER_OPTIONS="--userspec=12345:12345" READ_ONLY=1
export READ_ONLY
# shellcheck disable=SC2086
runs() {
	inside "$work/stage2" $words >"$work/out" 2>&1
	grep -q '"output":"uid 12345"' "$work/out" && grep -q 'Read-only file system' "$work/out" && grep -q '"stopping on signal 15' "$work/out" ||
		{ cat "$work/out"; return 1; }
}
check "a crontab runs as process 1 with a read-only root as a user without an entry in passwd" runs
echo '* * * * broken' >"$work/stage2/etc/jobsched/crontab"
refused() {
	inside "$work/stage2" $words
	[ $? -eq 78 ]
}
check "a table without a valid line ends the container with status 78" refused
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
