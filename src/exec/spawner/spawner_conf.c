/* SPDX-License-Identifier: Apache-2.0 */
/* Parses spawner.conf; any error rejects the whole file. */
#include "exec/spawner/spawner_conf.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/key_value.h"
#include "base/text.h"
#include "core/crontab/crontab.h"
#include "core/job/limits.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#define CONF_MAX (64 << 10)
#define UID_LAST INT64_C(4294967294)
#define UID_OVERFLOW 65534 /* the kernel's overflow uid, for users without a mapping */
#define BLANK " \t"

static const char *const warrant_words[WARRANT_POLICY_MAX] = {"none", "root", "all"};
static const char *const pam_words[PAM_POLICY_MAX] = {"off", "account", "session"};
static const char *const missing_words[MISSING_POLICY_MAX] = {"refuse", "report"};

void spawner_conf_init(struct spawner_conf *c)
{
	*c = (struct spawner_conf){.engine_user = "jobsched", .uids = {{0, UID_LAST}}, .uids_n = 1,
		.require_warrant = WARRANT_ROOT, .pam = PAM_POLICY_OFF,
		.tables = {.mode = CRONTAB_MODE_DEFAULT, .system = "/etc/crontab", .dir = "/etc/cron.d",
			.spool = {"/var/spool/cron/crontabs", "/var/spool/cron"}, .anacron = "/etc/anacrontab"}};
	sandbox_profiles_init(&c->sandboxes);
}

void spawner_conf_done(struct spawner_conf *c)
{
	sandbox_profiles_done(&c->sandboxes);
}

static bool set_enum_word(int64_t *to, const char *const *words, int n, const char *value)
{
	for (int i = 0; i < n; i++)
		if (strcmp(words[i], value) == 0) {
			*to = i;
			return true;
		}
	return false;
}

static bool set_engine_user(struct spawner_conf *c, char *value)
{
	size_t len = strlen(value);

	if (len == 0 || len >= sizeof(c->engine_user) || strpbrk(value, BLANK ":/"))
		return false;
	memcpy(c->engine_user, value, len + 1);
	return true;
}

static bool set_require_warrant(struct spawner_conf *c, char *value)
{
	return set_enum_word(&c->require_warrant, warrant_words, WARRANT_POLICY_MAX, value);
}

static bool set_pam(struct spawner_conf *c, char *value)
{
	return set_enum_word(&c->pam, pam_words, PAM_POLICY_MAX, value);
}

static bool set_sandbox_missing(struct spawner_conf *c, char *value)
{
	return set_enum_word(&c->sandbox_missing, missing_words, MISSING_POLICY_MAX, value);
}

static bool set_limit_missing(struct spawner_conf *c, char *value)
{
	return set_enum_word(&c->limit_missing, missing_words, MISSING_POLICY_MAX, value);
}

static bool set_owner_memory(struct spawner_conf *c, char *value)
{
	return text_parse_size(value, &c->owner_memory) && c->owner_memory >= LIMIT_MEMORY_MIN &&
		c->owner_memory <= LIMIT_MEMORY_MAX;
}

static bool set_owner_cpu(struct spawner_conf *c, char *value)
{
	return limit_cpu_parse(value, &c->owner_cpu, NULL);
}

static bool set_owner_pids(struct spawner_conf *c, char *value)
{
	return text_parse_int(value, 1, LIMIT_PIDS_MAX, &c->owner_pids);
}

static bool uid_range_parse(char *word, struct uid_range *ret)
{
	char *dash = strchr(word, '-');

	if (dash)
		*dash++ = '\0';
	return text_parse_int(word, 0, UID_LAST, &ret->first) && text_parse_int(dash ? dash : word, ret->first, UID_LAST, &ret->last);
}

/* A list of uids and ranges, for example "0 1000-59999". */
static bool set_allow_uids(struct spawner_conf *c, char *value)
{
	char *rest = NULL;

	c->uids_n = 0;
	for (char *word = strtok_r(value, BLANK, &rest); word; word = strtok_r(NULL, BLANK, &rest))
		if (c->uids_n == UID_RANGES_MAX || !uid_range_parse(word, &c->uids[c->uids_n++]))
			return false;
	return c->uids_n > 0;
}

static bool set_crontab_mode(struct spawner_conf *c, char *value)
{
	enum crontab_mode mode;

	if (!crontab_mode_parse(value, &mode))
		return false;
	c->tables.mode = mode;
	return true;
}

/* 'none', or an absolute path. */
static bool set_table_path(char to[TABLE_PATH_MAX], const char *value)
{
	size_t len = strlen(value);

	if (strcmp(value, "none") == 0)
		len = 0;
	else if (value[0] != '/' || len >= TABLE_PATH_MAX)
		return false;
	memset(to, 0, TABLE_PATH_MAX);
	memcpy(to, value, len);
	return true;
}

static bool set_crontab_file(struct spawner_conf *c, char *value)
{
	return set_table_path(c->tables.system, value);
}

static bool set_crontab_dir(struct spawner_conf *c, char *value)
{
	return set_table_path(c->tables.dir, value);
}

static bool set_anacrontab_file(struct spawner_conf *c, char *value)
{
	return set_table_path(c->tables.anacron, value);
}

static bool set_crontab_spool(struct spawner_conf *c, char *value)
{
	char *rest = NULL;
	size_t n = 0;

	for (char *word = strtok_r(value, BLANK, &rest); word; word = strtok_r(NULL, BLANK, &rest))
		if (n == TABLE_SPOOLS || !set_table_path(c->tables.spool[n++], word))
			return false;
	for (size_t i = n; i < TABLE_SPOOLS; i++)
		set_table_path(c->tables.spool[i], "none");
	return n > 0;
}

static const struct {
	const char *name;
	bool (*set)(struct spawner_conf *c, char *value);
	const char *form;
} keys[] = {
	{"engine-user", set_engine_user, "a user name"},
	{"allow-uids", set_allow_uids, "a list of uids and ranges, for example 0 1000-59999"},
	{"require-warrant", set_require_warrant, "root, all or none"},
	{"pam", set_pam, "off, account or session"},
	{"sandbox-missing", set_sandbox_missing, "refuse or report"},
	{"limit-missing", set_limit_missing, "refuse or report"},
	{"owner-memory", set_owner_memory, "a size of 1M or more"},
	{"owner-cpu", set_owner_cpu, "a share of processors, for example 150% or 1.5"},
	{"owner-pids", set_owner_pids, "a number of processes"},
	{"crontab-mode", set_crontab_mode, "debian, cronie or strict"},
	{"crontab-file", set_crontab_file, "an absolute path, or none"},
	{"crontab-dir", set_crontab_dir, "an absolute path, or none"},
	{"crontab-spool", set_crontab_spool, "one or two absolute paths, or none"},
	{"anacrontab-file", set_anacrontab_file, "an absolute path, or none"},
};

static bool conf_key_set(struct spawner_conf *c, const char *name, char *value, unsigned *seen,
	struct err *e)
{
	for (size_t i = 0; i < ELEMENTS(keys); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		if (*seen & 1U << i)
			return err_set(e, ERR_INVALID, "'%s' is set twice", name);
		*seen |= 1U << i;
		return keys[i].set(c, value) ||
		       err_set(e, ERR_INVALID, "the value of '%s' is not %s", name, keys[i].form);
	}
	return err_set(e, ERR_INVALID, "there is no key '%.40s'", name);
}

/* Opens a section [sandbox NAME]; the following keys belong to this profile. */
static bool sandbox_section_open(struct spawner_conf *c, char *at, struct sandbox **ret,
	struct err *e)
{
	static const char kind[] = "[sandbox ";
	size_t len = strlen(at);

	if (strncmp(at, kind, sizeof(kind) - 1) != 0 || at[len - 1] != ']')
		return err_set(e, ERR_INVALID, "not a section [sandbox NAME]");
	at[len - 1] = '\0';
	return sandbox_profiles_add(&c->sandboxes, key_value_trim(at + sizeof(kind) - 1), ret, e);
}

static bool conf_line_parse(struct spawner_conf *c, char *line, struct sandbox **section,
	unsigned *seen, struct err *e)
{
	char *key, *value;

	switch (key_value_split(line, &key, &value)) {
	case KEY_VALUE_NONE:
		return true;
	case KEY_VALUE_PAIR:
		return *section ? sandbox_profiles_set(&c->sandboxes, *section, key, value, e)
				: conf_key_set(c, key, value, seen, e);
	default:
		if (*key != '[')
			return err_set(e, ERR_INVALID, "not KEY = VALUE");
		return (!*section || sandbox_profile_check(*section, e)) &&
			sandbox_section_open(c, key, section, e);
	}
}

bool spawner_conf_parse(struct spawner_conf *c, char *text, const char *path, struct err *e)
{
	struct sandbox *section = NULL;
	unsigned line = 0, seen = 0;

	for (char *next = text; next;) {
		line++;
		if (!conf_line_parse(c, strsep(&next, "\n"), &section, &seen, e))
			return err_wrap(e, "%s:%u", path, line);
	}
	return !section || sandbox_profile_check(section, e) || err_wrap(e, "%s", path);
}

static bool root_only_check(const struct stat *st, const char *what, struct err *e)
{
	if (st->st_uid != 0 || st->st_mode & (S_IWGRP | S_IWOTH))
		return err_set(e, ERR_REFUSED, "'%s' must belong to root and be writable by root only; "
					       "see 'ls -ld %s'", what, what);
	return true;
}

static bool root_only_directory_check(const char *path, struct err *e)
{
	AUTO_TEXT copy = xstrdup(path);
	const char *dir = dirname(copy);
	struct stat st;

	if (stat(dir, &st) < 0)
		return err_errno(e, errno, "could not read the owner of '%s'", dir);
	return root_only_check(&st, dir, e);
}

bool spawner_conf_read(struct spawner_conf *c, const char *path, struct err *e)
{
	AUTO_FD fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK);
	AUTO_DONE(buf) text = {};
	struct stat st;
	int r;

	if (fd < 0 && errno == ENOENT)
		return true;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(e, errno, "could not open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_REFUSED, "'%s' is not a regular file", path);
	if (!root_only_check(&st, path, e) || !root_only_directory_check(path, e))
		return false;
	r = io_read_all(fd, &text, CONF_MAX);
	if (r < 0)
		return err_errno(e, -r, "could not read '%s'", path);
	if (memchr(text.data ? text.data : "", '\0', text.len))
		return err_set(e, ERR_INVALID, "'%s' contains a NUL byte", path);
	return !text.data || spawner_conf_parse(c, text.data, path, e);
}

bool spawner_conf_uid_allowed(const struct spawner_conf *c, int64_t uid)
{
	if (uid == UID_OVERFLOW || uid > UID_LAST)
		return false;
	for (size_t i = 0; i < c->uids_n; i++)
		if (uid >= c->uids[i].first && uid <= c->uids[i].last)
			return true;
	return false;
}
