# SPDX-License-Identifier: Apache-2.0
# Compares HACKING with the tree: section 1 has a line for each directory, and every path that HACKING names exists.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
described() {
	sed -n '/^1\. Directories/,/^2\. /s/^    \(\(src\|cmd\)\/[a-z/-]*\) .*/\1/p' HACKING | sort
}
existing() {
	find src cmd -type f \( -name '*.c' -o -name '*.sql' -o -name '*.js' \) | sed 's,/[^/]*$,,' | sort -u
}
directories() {
	described >"$work/described"
	existing >"$work/existing"
	diff "$work/described" "$work/existing" | sed -n 's/^< /HACKING only: /p; s/^> /not in HACKING: /p'
}
rules() {
	existing | grep -v '/sql$' | while read -r dir; do
		grep -q "^$dir\( \|$\)" tests/lint/layers.sh || echo "no rule in layers.sh: $dir"
	done
}
# a path with a file name; patterns and NAME are not checked
paths() {
	grep -oE '(src|cmd|tests|man)/[A-Za-z0-9_./-]+\.(c|h|sh|py|sql|json|awk|[1578])\b' HACKING | sort -u | while read -r path; do
		[ -e "$path" ] || echo "HACKING names a missing file: $path"
	done
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
lint "section 1 of HACKING has a line for each directory" directories
lint "layers.sh has a rule for each directory" rules
lint "files that HACKING names exist" paths
finish
