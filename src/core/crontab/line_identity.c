/* SPDX-License-Identifier: Apache-2.0 */
/* Identities and names of jobs that come from lines of a table. */
#include "core/crontab/line_identity.h"
#include "base/buf.h"
#include "base/text.h"
#include <stdint.h>
#include <string.h>

#define NAME_WORD_MAX 40
#define NAME_BYTES 4 /* of the identity, as hexadecimal digits */

void line_identities_done(struct line_identities *l)
{
	map_done(&l->times);
}

static void parts_hash(const char *const *parts, size_t n, int64_t times, unsigned char ret[SHA256_LEN])
{
	struct sha256 h;

	sha256_init(&h);
	for (size_t i = 0; i < n; i++)
		sha256_add(&h, parts[i], strlen(parts[i]) + 1);
	sha256_add(&h, &times, sizeof(times));
	sha256_end(&h, ret);
}

void line_identity(struct line_identities *l, const char *const *parts, size_t n, unsigned char ret[SHA256_LEN])
{
	intptr_t times;
	int64_t key;

	parts_hash(parts, n, 0, ret);
	memcpy(&key, ret, sizeof(key));
	key = (int64_t)((uint64_t)key >> 1) | 1; /* positive, not 0 */
	times = (intptr_t)map_get(&l->times, key);
	map_put(&l->times, key, (void *)(times + 1)); /* NOLINT: a number, not an address */
	if (times)
		parts_hash(parts, n, times, ret);
}

/* ---- names ---- */

/* Words of the shell and prefixes of commands do not name a job. */
static bool word_names_job(const char *word, size_t len)
{
	static const char *const skipped[] = {"cd", "test", "if", "then", "sleep", "exec", "nice", "ionice", "env", "sudo",
		"sh", "bash", "command", "root", "set", "export", "flock", "timeout", "run-parts", "true"};

	if (len == 0 || !strchr("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", word[0]) || memchr(word, '=', len))
		return false;
	for (size_t i = 0; i < ELEMENTS(skipped); i++)
		if (strlen(skipped[i]) == len && strncmp(skipped[i], word, len) == 0)
			return false;
	return len > 1 || (word[0] != '/' && word[0] != '.');
}

/* The operands of these words are not programs: up to the next command. */
static size_t operands_skip(const char *at, size_t len)
{
	static const char *const words[] = {"cd", "test", "["};

	for (size_t i = 0; i < ELEMENTS(words); i++)
		if (strlen(words[i]) == len && strncmp(words[i], at, len) == 0 && at[strcspn(at, ";&|")])
			return strcspn(at, ";&|");
	return len;
}

/* The program of a command, or the directory of run-parts. */
static const char *word_pick(const char *command, size_t *ret_len)
{
	static const char between[] = " \t\n;&|(){}<>\"'`";
	bool parts = strstr(command, "run-parts");
	const char *best = NULL;

	for (const char *at = command; *at;) {
		size_t len;

		at += strspn(at, between);
		len = strcspn(at, between);
		if (word_names_job(at, len) && (!best || (parts && at[0] == '/'))) {
			best = at;
			*ret_len = len;
		}
		at += operands_skip(at, len);
	}
	return best;
}

/* The part of a path after the last slash; a slash at the end does not count. */
static const char *last_component(const char *word, size_t *len)
{
	const char *slash;

	while (*len > 1 && word[*len - 1] == '/')
		--*len;
	slash = memrchr(word, '/', *len);
	if (slash) {
		*len -= (size_t)(slash + 1 - word);
		word = slash + 1;
	}
	return word;
}

char *line_name(const char *command, const unsigned char *identity)
{
	static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t len = 0;
	const char *word = word_pick(command, &len);
	AUTO_DONE(buf) name = {};

	if (word)
		word = last_component(word, &len);
	for (size_t i = 0; i < len && i < NAME_WORD_MAX; i++)
		buf_char(&name, strchr(allowed, word[i]) ? word[i] : '_');
	if (!name.len)
		buf_str(&name, "line");
	buf_char(&name, '-');
	for (size_t i = 0; i < NAME_BYTES; i++)
		buf_printf(&name, "%02x", identity[i]);
	return buf_steal(&name);
}
