#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs both commands of the README in a minimal Debian 12. Makes a root file system with mmdebstrap, clones this
# repository into its /root, and runs ./quickstart and ./runtests there as root. Needs root.
#
# usage: tests/fresh-root.sh [--rounds N] [--hog] [--suite] [RUNTESTS-OPTION...]
#   --rounds N     repeat N times, each time in a new root file system
#   --hog          keep one processor busy during the tests
#   --suite        run only ./runtests
#
# The script uses its own mount and PID namespaces. The root file system is in memory if 16 GiB are free, and is removed at
# the end. The network of the host is used to install packages.
# Exit status: 0 all passed, 1 a command failed, 77 the root file system could not be made (standard error has the reason).
set -u
suite=bookworm
home=/root # of the new root file system; mode 0700, so other users cannot enter the clone

impossible() {
	echo "fresh-root: $1" >&2
	exit 77
}

rounds=1 hog= only=
while [ $# -gt 0 ]; do
	case $1 in
	--rounds) rounds=$2; shift ;;
	--hog) hog=1 ;;
	--suite) only=1 ;;
	-h|--help) sed -n '3,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
	*) break ;;
	esac
	shift
done
case $rounds in
''|*[!0-9]*|0) echo "fresh-root: --rounds needs a number from 1" >&2; exit 2 ;;
esac

if [ -z "${FRESH_ROOT_INSIDE:-}" ]; then
	[ "$(id -u)" -eq 0 ] || impossible "needs root to make a root file system"
	command -v apt-get >/dev/null || impossible "needs a Debian system"
	"$(dirname "$0")/../packaging/install-missing.sh" fresh-root || impossible "mmdebstrap could not be installed"
	unshare --mount --pid --fork --kill-child --mount-proc true || impossible "cannot create mount and PID namespaces"
	FRESH_ROOT_INSIDE=1 exec unshare --mount --pid --fork --kill-child --mount-proc --propagation private \
		sh "$0" --rounds "$rounds" ${hog:+--hog} ${only:+--suite} "$@"
fi

top=$(cd "$(dirname "$0")/.." && pwd)
place=$(mktemp -d "${TMPDIR:-/tmp}/fresh-root.XXXXXX") || impossible "could not create a working directory"
trap 'umount -l "$place" 2>/dev/null; rm -rf "$place"' EXIT

# mount_root: mounts a file system for the root, in memory if 16 GiB are free
mount_root() {
	if [ "$(awk '/^MemAvailable/ { print $2 }' /proc/meminfo)" -gt 16777216 ]; then
		mount -t tmpfs -o mode=0755,size=12g fresh-root "$place"
	else
		mount --bind "$place" "$place"
	fi
}

# Copies the last commit, or the working tree if there is no git repository.
copy_tree() {
	if git -C "$top" rev-parse --git-dir >/dev/null 2>&1; then
		[ -z "$(git -C "$top" status --porcelain --untracked-files=no)" ] ||
			echo "fresh-root: uncommitted changes are not tested" >&2
		git -c safe.directory='*' clone -q --no-hardlinks "$top" "$1"
	else
		mkdir -p "$1" && tar -C "$top" --exclude='./build*' -cf - . | tar -C "$1" -xf -
	fi
}

make_root() {
	root=$place/root
	timeout 600 mmdebstrap --quiet --mode=root --variant=minbase "$suite" "$root" || return 1
	# name service and proxies are those of the host
	cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
	apt-config dump 2>/dev/null | grep -E '^Acquire::(https?::Proxy|Check-Valid-Until)' >"$root/etc/apt/apt.conf.d/90machine"
	chmod 700 "$root$home"
	copy_tree "$root$home/jobsched"
}

# enter COMMAND...: runs a command in the root file system, without access to files of the host
enter() {
	unshare --mount --pid --fork --kill-child --propagation private sh -c '
		set -e
		root=$1 home=$2
		shift 2
		mount --bind "$root" "$root"
		cd "$root"
		mount -t proc proc proc
		mount --rbind /sys sys
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 tmpfs dev/shm
		mount -t tmpfs -o mode=0755 tmpfs run
		mkdir -p run/old-root
		pivot_root . run/old-root
		cd /
		umount -l run/old-root
		rmdir run/old-root
		cd "$home/jobsched"
		exec env -i HOME="$home" USER=root LOGNAME=root SHELL=/bin/sh TERM="${TERM:-dumb}" ${CI:+CI="$CI"} \
			PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
	' sh "$root" "$home" "$@"
}

hog_pid=
[ -z "$hog" ] || { sh -c 'while :; do :; done' & hog_pid=$!; }

failed=0
for round in $(seq "$rounds"); do
	echo "fresh-root: round $round of $rounds: making the root file system"
	mount_root || impossible "cannot mount a file system for the root"
	make_root || impossible "mmdebstrap could not make a root file system"
	if [ -z "$only" ]; then
		echo "fresh-root: round $round of $rounds: ./quickstart, ./quickstart cluster, then make deb rpm"
		enter sh -c './quickstart && ./quickstart cluster && ./quickstart stop && make -s -C build deb rpm' ||
			{ failed=1; echo "fresh-root: ./quickstart or make deb rpm failed"; }
	fi
	echo "fresh-root: round $round of $rounds: ./runtests $*"
	enter ./runtests "$@" || failed=1
	umount -l "$place"
	rm -rf "${place:?}"/*
done
[ -z "$hog_pid" ] || kill "$hog_pid"
exit "$failed"
