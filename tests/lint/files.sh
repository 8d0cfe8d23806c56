# SPDX-License-Identifier: Apache-2.0
# Keeps the top of every file, and words that mark unfinished work out of it.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
all() {
	sources '*.c' '*.h' '*.sql' '*.sh' '*.bats' '*.py' '*.awk' '*.service' '*.socket' '*.[1578]' '*.yaml'
	for name in Makefile.am configure.ac autogen.sh quickstart runtests .ci/run; do
		[ ! -f "$name" ] || echo "$name"
	done
}


licence() {
	all | xargs awk '
	function verdict() { if (seen && !spdx) print file ": no SPDX-License-Identifier in its first three lines" }
	FNR == 1 { verdict(); seen = 1; spdx = 0; file = FILENAME }
	FNR <= 3 && /SPDX-License-Identifier: Apache-2\.0/ { spdx = 1 }
	END { verdict() }'
}
lint "every file names its licence" licence

purpose_c() {
	sources '*.c' '*.h' | xargs awk '
	FNR == 2 { open = /^\/\*$/ }
	FNR == 2 && !open && !/^\/\* ?[\042\047A-Za-z].*[a-z]/ || FNR == 3 && open && !/^ \* [A-Za-z].*[a-z]/ {
		print FILENAME ": its second line does not say what it is for" }'
}
lint "every C file says in its second line what it is for" purpose_c

purpose_script() {
	sources '*.sh' '*.bats' '*.py' '*.sql' '*.awk' | xargs awk '
	function verdict() { if (seen && !said) print file ": no line says what it is for" }
	FNR == 1 { verdict(); seen = 1; said = 0; file = FILENAME }
	FNR <= 4 && /^(#|--|""") ?[A-Za-z].*[a-z]/ && !/SPDX/ { said = 1 }
	END { verdict() }'
}
lint "every script and query file says what it is for" purpose_script

# The words are put together here so that this file does not find itself.
unfinished() {
	words='TO''DO|FIX''ME|XX''X|place''holder|for ''now|not (yet )?imple''mented|stub''bed'
	all | xargs grep -nE "(^|[^A-Za-z_])($words)([^A-Za-z_]|\$)"
}
lint "no word marks an unfinished part" unfinished

blanks() {
	all | xargs grep -nE '[ 	]+$' | cut -c1-120
}
lint "no line ends in blanks" blanks
finish
