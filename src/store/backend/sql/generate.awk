# SPDX-License-Identifier: Apache-2.0
# Turns common.sql, sqlite.sql and postgres.sql into C tables. The build fails when the dialects differ in the names,
# parameters or columns of their queries, or when a query stands in the wrong file.
#
#   awk -v out=header|source -f generate.awk ENUMS.h... common.sql sqlite.sql postgres.sql
#
# The .sql files consist of blocks, each opened by a comment line:
#   -- define NAME = TEXT                 {NAME} is replaced by TEXT from here on
#   -- query NAME(param type, ...) -> column type, ...
#   -- migration N                        1, 2, 3 ... the same numbers in both dialects
#   -- text NAME                          a statement that only the code of this backend uses
# The opening line continues in lines that begin with "--" and a tab. Types: int, text, json.
# In a query ':name' is a parameter. RUN_QUEUED and other members of the enums are replaced by their numbers.
#
# common.sql has the queries whose text is the same for both dialects, and no migrations or texts. Its defines hold for
# all three files; its queries may use the defines of the dialects, which may differ.

function fail(msg)
{
	if (!failed)
		print (place == "" ? FILENAME ":" FNR : place) ": " msg > "/dev/stderr"
	failed = 1
	exit 1
}

function trim(s)
{
	gsub(/[ \t\n]+/, " ", s)
	sub(/^ /, "", s)
	sub(/ $/, "", s)
	return s
}

function expand(s,    name)
{
	while (match(s, /\{[a-z_]+\}/)) {
		name = substr(s, RSTART + 1, RLENGTH - 2)
		if (!((engine, name) in macro))
			fail("no define '" name "'")
		s = substr(s, 1, RSTART - 1) macro[engine, name] substr(s, RSTART + RLENGTH)
	}
	return s
}

# The members of the enums in a header, in order, as RUN_QUEUED -> 0.
function read_enum(line)
{
	if (line ~ /^enum [a-z_]+ \{/) {
		in_enum = 1
		value = 0
		sub(/^enum [a-z_]+ \{/, "", line)
	}
	if (!in_enum)
		return
	gsub(/\/\*[^*]*\*\//, "", line)
	while (match(line, /[A-Z][A-Z_0-9]*/)) {
		number[substr(line, RSTART, RLENGTH)] = value++
		line = substr(line, RSTART + RLENGTH)
	}
	if (line ~ /\}/)
		in_enum = 0
}

# Checks "name type, name type" and gives it back in one spelling.
function read_list(s, kind, into,    n, part, field, i)
{
	s = trim(s)
	if (s == "")
		return ""
	n = split(s, part, /, */)
	for (i = 1; i <= n; i++) {
		if (split(part[i], field, " ") != 2 || field[1] !~ /^[a-z][a-z_0-9]*$/ ||
		    field[2] !~ /^(int|text|json)$/)
			fail("query '" name "': '" part[i] "' is no " kind "; write 'name type'")
		into[i] = field[1]
		into[i, "type"] = field[2]
	}
	into[0] = n
	return s
}

function place_of(param,    i)
{
	for (i = 1; i <= params[0]; i++)
		if (params[i] == param)
			return i
	return 0
}

function parameter(param,    at)
{
	at = place_of(param)
	if (!at)
		fail("query '" name "': ':" param "' is not declared")
	used[at] = 1
	if (engine == "sqlite")
		return "?" at
	return "$" at "::" cast[params[at, "type"]]
}

# Replaces parameters and enum members outside quoted text.
function translate(s,    result, c, before, word)
{
	result = ""
	while (s != "") {
		c = substr(s, 1, 1)
		if (c == "'") {
			if (!match(s, /^'[^']*'/))
				fail("a quote is not closed")
			word = substr(s, 1, RLENGTH)
		} else if (c == ":" && before != ":" && match(s, /^:[a-z][a-z_0-9]*/)) {
			word = substr(s, 1, RLENGTH)
			result = result parameter(substr(word, 2))
			s = substr(s, RLENGTH + 1)
			before = "x"
			continue
		} else if (match(s, /^[A-Za-z_][A-Za-z_0-9]*/)) {
			word = substr(s, 1, RLENGTH)
			if (word in number) {
				mentioned[word] = 1
				result = result number[word]
				s = substr(s, RLENGTH + 1)
				before = "x"
				continue
			}
			if (word ~ /^(RUN|JOB|ATTEMPT|HOLD|NOTICE)_[A-Z_]+$/)
				fail("no enum has '" word "'")
		} else {
			word = c
		}
		result = result word
		before = substr(word, length(word))
		s = substr(s, length(word) + 1)
	}
	return result
}

function end_query(    at, i, signature, result)
{
	if (head !~ /^[a-z][a-z_0-9]*\(.*\)/)
		fail("write '-- query NAME(param type, ...) -> column type, ...'")
	name = substr(head, 1, index(head, "(") - 1)
	if ((engine, name) in sql && place != "")
		fail("query '" name "' is in common.sql and in " engine ".sql")
	if ((engine, name) in sql)
		fail("query '" name "' is there twice")
	split("", params)
	split("", columns)
	split("", used)
	result = substr(head, index(head, "(") + 1)
	at = index(result, ")")
	signature = read_list(substr(result, 1, at - 1), "parameter", params)
	takes[engine, name] = signature
	result = trim(substr(result, at + 1))
	if (result != "" && !sub(/^-> /, "", result))
		fail("query '" name "': after the parameters comes '->' or nothing")
	gives[engine, name] = read_list(result, "column", columns)
	sub(/[; \t\n]+$/, "", body)
	sql[engine, name] = translate(body)
	for (i = 1; i <= params[0]; i++)
		if (!used[i])
			fail("query '" name "': parameter '" params[i] "' is never used")
	order[engine, ++queries[engine]] = name
	if (place == "")
		written[engine, name] = raw
}

# common.sql is kept and read once for each dialect, see begin_dialect() and end_dialect().
function keep_block()
{
	if (block != "define" && block != "query")
		fail("a " block " belongs to sqlite.sql or postgres.sql")
	common[++commons] = block
	common[commons, "head"] = head
	common[commons, "body"] = body
	common[commons, "place"] = block_at
	block = ""
}

function read_common(which,    i)
{
	for (i = 1; i <= commons; i++)
		if (common[i] == which) {
			block = which
			head = common[i, "head"]
			body = common[i, "body"]
			place = common[i, "place"]
			end_block()
		}
	place = ""
}

function begin_dialect(name)
{
	engine = name
	read_common("define")
}

function end_dialect()
{
	end_block()
	if (engine == "sqlite" || engine == "postgres")
		read_common("query")
}

function end_block()
{
	if (block == "")
		return
	if (engine == "common") {
		keep_block()
		return
	}
	raw = trim(head) "\n" body
	sub(/[; \t\n]+$/, "", raw)
	head = trim(expand(head))
	if (block == "define") {
		at_sign = index(head, " = ")
		if (!at_sign)
			fail("write '-- define NAME = TEXT'")
		macro[engine, substr(head, 1, at_sign - 1)] = substr(head, at_sign + 3)
	} else {
		body = expand(body)
		sub(/^[ \t\n]+/, "", body)
		sub(/[ \t\n]+$/, "", body)
		if (body == "")
			fail(block " '" head "' is empty")
		if (block == "query")
			end_query()
		else if (block == "migration") {
			if (head != ++migrations[engine])
				fail("migration " head " where " migrations[engine] " was expected")
			migration[engine, head] = translate(body)
		} else {
			text_name[engine, ++texts[engine]] = head
			text[engine, texts[engine]] = translate(body)
		}
	}
	block = ""
}

BEGIN {
	cast["int"] = "bigint"
	cast["text"] = "text"
	cast["json"] = "jsonb"
}

FNR == 1 {
	end_dialect()
	in_enum = 0
	engine = ""
	if (FILENAME ~ /common\.sql$/)
		engine = "common"
	else if (FILENAME ~ /sqlite\.sql$/)
		begin_dialect("sqlite")
	else if (FILENAME ~ /postgres\.sql$/)
		begin_dialect("postgres")
	else if (FILENAME !~ /\.h$/)
		fail("expected headers, common.sql, sqlite.sql and postgres.sql")
}

engine == "" {
	read_enum($0)
	next
}

/^-- (define|query|migration|text) / {
	end_block()
	block = $2
	head = $0
	sub(/^-- [a-z]+ /, "", head)
	block_at = FILENAME ":" FNR
	body = ""
	in_head = 1
	next
}

/^--/ {
	if (in_head && /^--\t/)
		head = head " " substr($0, 3)
	next
}

{
	in_head = 0
	if (block == "" && $0 != "")
		fail("this belongs to no block")
	body = body $0 "\n"
}

# ---- comparison of the dialects ----

function differ(msg)
{
	print "sqlite.sql and postgres.sql differ: " msg > "/dev/stderr"
	failed = 1
}

function misplaced(msg)
{
	print msg > "/dev/stderr"
	failed = 1
}

function compare(    i, n)
{
	for (i = 1; i <= queries["sqlite"]; i++) {
		n = order["sqlite", i]
		if (!(("postgres", n) in sql))
			differ("query '" n "' is only in sqlite.sql")
		else if (takes["sqlite", n] != takes["postgres", n])
			differ("query '" n "' takes (" takes["sqlite", n] ") and (" takes["postgres", n] ")")
		else if (gives["sqlite", n] != gives["postgres", n])
			differ("query '" n "' gives (" gives["sqlite", n] ") and (" gives["postgres", n] ")")
		else if (("sqlite", n) in written && written["sqlite", n] == written["postgres", n])
			misplaced("query '" n "' is the same in both dialects; move it to common.sql")
	}
	for (i = 1; i <= queries["postgres"]; i++)
		if (!(("sqlite", order["postgres", i]) in sql))
			differ("query '" order["postgres", i] "' is only in postgres.sql")
	if (migrations["sqlite"] != migrations["postgres"])
		differ(migrations["sqlite"] " and " migrations["postgres"] " migrations")
	if (!queries["sqlite"] || !migrations["sqlite"])
		differ("there is nothing in them")
}

# ---- C ----

function quote(s,    line, n, i, result)
{
	n = split(s, line, "\n")
	result = ""
	for (i = 1; i <= n; i++) {
		gsub(/\\/, "\\\\", line[i])
		gsub(/"/, "\\\"", line[i])
		sub(/^[ \t]+/, "", line[i])
		result = result "\n\t\t\"" line[i] (i < n ? "\\n" : "") "\""
	}
	return result
}

function print_values(list, which,    n, part, field, i, result)
{
	n = split(list, part, /, */)
	result = ""
	for (i = 1; i <= n; i++) {
		split(part[i], field, " ")
		result = result (i > 1 ? ", " : "") "{\"" field[1] "\", DB_" toupper(field[2]) "}"
	}
	if (n)
		print "static const struct db_field " which "[] = {" result "};"
	return n
}

function count(list,    part)
{
	return list == "" ? 0 : split(list, part, ",")
}

function print_header(    i)
{
	print "/* Generated from common.sql, sqlite.sql and postgres.sql: the names of all statements. */"
	print "#pragma once\n#include \"store/backend/db.h\"\n#include \"store/backend/query.h\"\n\nenum store_query {"
	for (i = 1; i <= queries["sqlite"]; i++)
		print "\tQ_" toupper(order["sqlite", i]) ","
	print "\tQ_MAX\n};"
	print_texts("sqlite")
	print_texts("postgres")
	print "extern const struct db_sql sqlite_sql, postgres_sql;"
}

function print_texts(which,    i)
{
	print "\nenum " which "_text {"
	for (i = 1; i <= texts[which]; i++)
		print "\tTEXT_" toupper(which) "_" toupper(text_name[which, i]) ","
	print "\tTEXT_" toupper(which) "_MAX\n};"
}

function print_engine(which,    i, n)
{
	print "\nstatic const struct db_query " which "_queries[Q_MAX] = {"
	for (i = 1; i <= queries["sqlite"]; i++) {
		n = order["sqlite", i]
		printf "\t[Q_%s] = {\"%s\",%s,\n\t\t%s, %d, %s, %d},\n", toupper(n), n,
			quote(sql[which, n]),
			count(takes["sqlite", n]) ? "p_" n : "NULL", count(takes["sqlite", n]),
			count(gives["sqlite", n]) ? "c_" n : "NULL", count(gives["sqlite", n])
	}
	print "};\nstatic const char *const " which "_migrations[] = {"
	for (i = 1; i <= migrations[which]; i++)
		print "(" quote(migration[which, i]) "),"
	print "};\nstatic const char *const " which "_texts[] = {"
	for (i = 1; i <= texts[which]; i++)
		print "\t[TEXT_" toupper(which) "_" toupper(text_name[which, i]) "] = (" quote(text[which, i]) "),"
	print "};"
	print "const struct db_sql " which "_sql = {"
	print "\t" which "_queries, Q_MAX, " which "_migrations, " migrations[which] ", " which "_texts,\n};"
}

function print_source(    i, n)
{
	print "/* Generated from common.sql, sqlite.sql and postgres.sql: the statements of both dialects. */"
	print "#include \"store/backend/queries.h\"\n#include \"core/job/job.h\"\n#include \"core/job/notice.h\"\n#include \"core/job/run.h\"\n#include \"core/job/token.h\"\n#include <stddef.h>\n"
	for (n in mentioned)
		print "_Static_assert(" n " == " number[n] ", \"the numbers of " n " are on disk\");"
	for (i = 1; i <= queries["sqlite"]; i++) {
		n = order["sqlite", i]
		print_values(takes["sqlite", n], "p_" n)
		print_values(gives["sqlite", n], "c_" n)
	}
	print_engine("sqlite")
	print_engine("postgres")
}

END {
	if (failed)
		exit 1
	end_dialect()
	compare()
	if (failed)
		exit 1
	if (out == "header")
		print_header()
	else
		print_source()
}
