#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests the page in Debian's Chromium, with a daemon of its own. Run by hand:
#
#   apt-get install chromium nodejs npm curl; top_builddir=build tests/web/run.sh [OUTPUT_DIRECTORY]
#
# BROWSER=firefox uses Debian's Firefox instead (package firefox-esr).
# playwright-core and axe-core are installed by npm below the output directory, which also gets the screenshots.
# ONLY=text runs the tests with this text in their names.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "${top_builddir:-build}" && pwd)
out=${1:-$(mktemp -d "${TMPDIR:-/tmp}/jobsched-web.XXXXXX")}
mkdir -p "$out"
browser=${CHROMIUM:=/usr/bin/chromium}
[ "${BROWSER:=chromium}" = chromium ] || browser=${FIREFOX:=/usr/bin/firefox-esr}
for tool in node npm curl "$browser"; do
	command -v "$tool" >/dev/null || {
		echo "1..0 # SKIP $tool is not installed"
		exit 0
	}
done
export BROWSER CHROMIUM FIREFOX="${FIREFOX:-}" WEB_MODULES=$out/node_modules
[ -d "$WEB_MODULES/playwright-core" ] && [ -d "$WEB_MODULES/axe-core" ] ||
	(cd "$out" && npm install --silent --no-audit --no-fund --prefix "$out" playwright-core@1.59.1 axe-core >/dev/null)

dir=$(mktemp -d "${TMPDIR:-/tmp}/jobsched-web.XXXXXX")
export HOME=$dir/home XDG_RUNTIME_DIR=$dir/run XDG_STATE_HOME=$dir/state XDG_CONFIG_HOME=$dir/config
mkdir -p "$HOME" "$XDG_RUNTIME_DIR" "$XDG_STATE_HOME" "$XDG_CONFIG_HOME/jobsched"
chmod 700 "$XDG_RUNTIME_DIR"
echo 'listen = 127.0.0.1:0' >"$XDG_CONFIG_HOME/jobsched/jobschedd.conf"
: >"$dir/log"
"$build/jobschedd" --user </dev/null >"$dir/log" 2>&1 &
daemon=$!
# The spawner would stay, because the daemon does not take the last ends of runs from it.
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; kill $(pgrep -f "jobsched-spawner .*--runtime-dir $dir/") 2>/dev/null; rm -rf "$dir"' EXIT

socket=$XDG_RUNTIME_DIR/jobsched/jobsched.sock
i=0
until grep -q 'listening on http' "$dir/log" && [ -S "$socket" ]; do
	i=$((i + 1))
	[ $i -lt 200 ] || {
		cat "$dir/log" >&2
		exit 1
	}
	sleep 0.1
done
url=$(sed -n 's/.*listening on \(http[^ ]*\).*/\1/p' "$dir/log" | head -n 1)
token() {
	curl -sS --unix-socket "$socket" -H 'Content-Type: application/json' -d "{\"name\":\"$1\",\"role\":\"$2\"}" http://localhost/v1/tokens |
		sed 's/.*"token":"\([^"]*\)".*/\1/'
}
echo "# screenshots are in $out"
node "$here/browser.mjs" "$url" "$(token web-admin admin)" "$(token web-viewer viewer)" "$socket" "$out"
