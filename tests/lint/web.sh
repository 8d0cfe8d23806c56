# SPDX-License-Identifier: Apache-2.0
# Checks the files of the page: size, list, and that text of jobs cannot become markup or code.
. "$(dirname "$0")/../tap.sh"

embed=$(cd "$(dirname "$0")/../../src/web" && pwd)/embed.sh
cd "$top_srcdir" || exit 1
files=$(ls src/web/*.js src/web/*.css src/web/*.html src/web/*.svg)
LIMIT=40000

# Text becomes text nodes only: these would parse it as markup, as code or as an address.
markup() {
	grep -nE 'innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|srcdoc|\beval\(|new Function|setTimeout\(["'"'"'`]|javascript:' src/web/*.js
	grep -nE '(\.|\[.)(href|src|action|formaction)\s*=[^=]' src/web/*.js
	grep -nE ' (on[a-z]+|style)=' src/web/index.html
	grep -nE '<script(>| [^s])|<style' src/web/index.html
}
outside() {
	# shellcheck disable=SC2086
	grep -nE '(https?:)?//[a-z0-9.-]+\.[a-z]{2,}|@import|url\(' $files | grep -v 'www.w3.org/2000/svg'
}
size() {
	# shellcheck disable=SC2086
	total=$(sh "$embed" --size $files)
	[ $total -le $LIMIT ] || echo "the compressed files have $total bytes, more than $LIMIT"
}
unlisted() {
	for f in $files; do
		grep -q "[= 	]$f\( \|$\)" Makefile.am || echo "$f is not in WEB_FILES of Makefile.am"
	done
}
# A module that does not exist stops the page; a name that is not exported does as well.
imports() {
	grep -noE "(from|import\() ?'\./[a-z]+\.js'" src/web/*.js | while IFS=: read -r file line what; do
		name=src/web/$(expr "$what" : ".*'\./\(.*\)'")
		[ -e "$name" ] || echo "$file:$line: there is no $name"
	done
	sed -n "s|^import {\(.*\)} from '\./\(.*\)';|\1 \2|p" src/web/*.js | while read -r line; do
		module=src/web/${line##* }
		for name in $(echo "${line% *}" | tr -d ','); do
			grep -qE "^export (const|let|class|function|async function) $name\b|^export \{[^}]*\b$name\b" "$module" ||
				echo "$module does not export $name"
		done
	done
}
syntax() {
	for f in src/web/*.js; do
		node --check --input-type=module <"$f" 2>&1 | head -n 3
	done
}

lint "text of jobs cannot become markup or code" markup
lint "nothing is loaded from another host" outside
lint "the compressed files have at most $LIMIT bytes" size
lint "every file is compiled into the daemon" unlisted
lint "every import exists" imports
if command -v node >/dev/null; then
	lint "every module can be parsed" syntax
else
	skipped "every module can be parsed" "no node"
fi
finish
