# SPDX-License-Identifier: Apache-2.0
# Checks that SQL text is only in the .sql files.
. "$(dirname "$0")/../tap.sh"

cd "$top_srcdir" || exit 1
queries() {
	c_sources src cmd | xargs -r grep -nE \
		'"[^"]*\<(SELECT .* FROM|SELECT [0-9a-z_*]|INSERT (OR [A-Z]+ )?INTO|UPDATE [a-z_]+ SET|DELETE FROM|CREATE (TABLE|INDEX|UNIQUE|VIEW|TRIGGER)|ALTER TABLE|DROP (TABLE|INDEX))\>'
}
lint "no query is outside the .sql files" queries

# Only the backends open connections and transactions.
statements() {
	c_sources src cmd | grep -vE '^src/store/backend/(sqlite|postgres)' |
		xargs -r grep -nE '"(PRAGMA|BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE|SET|LISTEN|NOTIFY)[ ";]'
}
lint "no connection statement is outside the backends" statements
finish
