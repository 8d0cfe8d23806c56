#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Generates a TypeScript client from openapi.json with openapi-typescript, compiles it and uses it against a daemon over TCP.
#
# usage: top_builddir=build tests/clients/npm.sh DIR     DIR keeps the packages; npm needs the network for the first run
set -eu

top_builddir=$(cd "${top_builddir:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1"
[ -d node_modules/openapi-fetch ] ||
	npm install --silent --no-fund --no-audit openapi-typescript@7 openapi-fetch@0.13 typescript@5 @types/node@20
# a member with a default may be left out of a request
npx openapi-typescript --default-non-nullable=false "$top_builddir/src/daemon/api/openapi.json" -o schema.d.ts
cp "$here/client.ts" client.ts
cat >tsconfig.json <<'CONFIG'
{"compilerOptions": {"strict": true, "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext", "skipLibCheck": true}}
CONFIG
npm pkg set type=module >/dev/null
npx tsc -p .

work=$(mktemp -d)
trap 'kill "$daemon" 2>/dev/null || :; wait "$daemon" 2>/dev/null || :; rm -rf "$work"' EXIT
mkdir "$work/run" "$work/state"
echo 'listen = 127.0.0.1:0' >"$work/conf"
"$top_builddir/jobschedd" --user --config "$work/conf" --runtime-dir "$work/run" --state-dir "$work/state" 2>"$work/log" &
daemon=$!
for _ in $(seq 300); do
	grep -q 'ready:' "$work/log" && break
	sleep 0.1
done
URL=http://127.0.0.1:$(sed -n 's|.*listening on http://127.0.0.1:||p' "$work/log")
TOKEN=$("$top_builddir/jobctl" --socket "$work/run/jobsched.sock" token add client --role operator 2>/dev/null)
export URL TOKEN
node client.js
