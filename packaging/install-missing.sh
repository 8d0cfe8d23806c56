#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the missing Debian packages of the named sections of debian-packages.
# usage: packaging/install-missing.sh SECTION...
set -eu

list=$(dirname "$0")/debian-packages

section() {
	awk -v want="[$1]" '/^\[/ { on = $0 == want; next } on && NF && !/^#/ { print $1 }' "$list"
}

installed() {
	dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null |
		awk '$1 == "installed" { print $2 }'
}

as_root() {
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo ${CI:+-n} "$@"
	fi
}

get() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends \
		-o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

wanted=
for name in "$@"; do
	words=$(section "$name")
	[ -n "$words" ] || { echo "no section '$name' in '$list'" >&2; exit 2; }
	wanted="$wanted $words"
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
	echo "not a Debian system; install the equivalents of:" $wanted >&2
	exit 0
fi

have=$(installed $wanted || :)
missing=
for name in $wanted; do
	case "
$have
" in
	*"
$name
"*) ;;
	*) missing="$missing $name" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
	echo "packages are missing and there is no sudo; as root, type:" >&2
	echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
	exit 1
fi

echo "installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# The package lists are updated only if the installation fails without it.
if ! get install $missing; then
	if ! { get update && get install $missing; }; then
		tail -n 20 "$log" >&2
		echo "could not install the packages above; as root, try:" >&2
		echo "  apt-get update && apt-get install --no-install-recommends$missing" >&2
		exit 1
	fi
fi
