/* SPDX-License-Identifier: Apache-2.0 */
/* Units, configuration and record of a takeover. */
#include "jobctl/cron/takeover.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "jobctl/cron/process.h"
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CONFIG_MAX (1 << 20)
#define OUTPUT_MAX (64 << 10)
#define BLANK " \t"
#define RECORD "cron-takeover"

const struct takeover_unit takeover_units[] = {
	{"anacron.timer", true},
	{"anacron.service", false},
	{"cron.service", true},
	{"crond.service", true},
	{"cronie.service", true},
};
const size_t takeover_units_count = ELEMENTS(takeover_units);

bool takeover_has_systemd(void)
{
	return access("/run/systemd/system", F_OK) == 0;
}

bool takeover_systemctl(struct err *e, const char *const *words)
{
	const char *argv[8] = {"systemctl"};
	AUTO_DONE(buf) out = {};
	size_t n = 1;
	int status;

	for (; *words && n < ELEMENTS(argv) - 1; words++)
		argv[n++] = *words;
	status = process_run(argv, &out, OUTPUT_MAX, e);
	if (status > 0)
		return err_set(e, ERR_INTERNAL, "'systemctl %s %s' failed with exit code %d", argv[1], argv[2] ? argv[2] : "", status);
	return status == 0;
}

/* The LoadState of a unit: loaded, masked, not-found … */
static char *load_state(const char *name)
{
	const char *const argv[] = {"systemctl", "show", "--property=LoadState", "--value", name, NULL};
	AUTO_DONE(buf) out = {};

	if (process_run(argv, &out, OUTPUT_MAX, NULL) != 0 || !out.data)
		return xstrdup("");
	return xstrndup(out.data, strcspn(out.data, "\n"));
}

bool takeover_unit_exists(const char *name)
{
	AUTO_TEXT state = load_state(name);

	return strcmp(state, "loaded") == 0 || strcmp(state, "masked") == 0;
}

bool takeover_unit_masked(const char *name)
{
	AUTO_TEXT state = load_state(name);

	return strcmp(state, "masked") == 0;
}

/* ---- configuration ---- */

/* The value of a line "crontabs = VALUE"; NULL: another line. */
static const char *line_value(const char *line)
{
	static const char key[] = "crontabs";

	line += strspn(line, BLANK);
	if (strncmp(line, key, strlen(key)) != 0)
		return NULL;
	line += strlen(key);
	line += strspn(line, BLANK);
	return *line == '=' ? line + 1 + strspn(line + 1, BLANK) : NULL;
}

static void config_rewrite(char *text, const char *word, char **ret_before, struct buf *out)
{
	bool set = false;

	for (char *next = text; next && *next;) {
		char *line = strsep(&next, "\n");
		const char *value = line_value(line);

		if (!value) {
			buf_printf(out, "%s\n", line);
			continue;
		}
		free(*ret_before);
		*ret_before = xstrndup(value, strcspn(value, BLANK ";#\r"));
		if (word && !set)
			buf_printf(out, "crontabs = %s\n", word);
		set = true;
	}
	if (word && !set)
		buf_printf(out, "crontabs = %s\n", word);
}

static bool config_read_text(const char *config, struct buf *text, mode_t *ret_mode, struct err *e)
{
	struct stat st;
	int r;

	*ret_mode = 0644;
	if (stat(config, &st) == 0)
		*ret_mode = st.st_mode & 07777;
	r = io_read_file(config, text, CONFIG_MAX);
	return r >= 0 || r == -ENOENT || err_errno(e, -r, "could not read '%s'", config);
}

bool takeover_config_get(const char *config, char **ret, struct err *e)
{
	AUTO_DONE(buf) text = {};
	AUTO_DONE(buf) out = {};
	mode_t mode;

	*ret = NULL;
	if (!config_read_text(config, &text, &mode, e))
		return false;
	if (text.data)
		config_rewrite(text.data, NULL, ret, &out);
	return true;
}

bool takeover_config_set(const char *config, const char *word, char **ret_before, struct err *e)
{
	AUTO_DONE(buf) text = {};
	AUTO_DONE(buf) out = {};
	mode_t mode;
	int r;

	*ret_before = NULL;
	if (!config_read_text(config, &text, &mode, e))
		return false;
	buf_char(&text, '\0');
	text.len--;
	config_rewrite(text.data, word, ret_before, &out);
	if (text_equal(*ret_before, word))
		return true;
	r = io_write_file(config, out.data ? out.data : "", out.len, mode);
	return r >= 0 || err_errno(e, -r, "could not write '%s'", config);
}

/* ---- record ---- */

void takeover_record_done(struct takeover_record *r)
{
	free(r->mode);
	strv_done(&r->units);
	*r = (struct takeover_record){};
}

char *takeover_record_path(const char *config)
{
	AUTO_TEXT copy = xstrdup(config);

	return xprintf("%s/" RECORD, dirname(copy));
}

static bool unit_known(const char *name)
{
	for (size_t i = 0; i < ELEMENTS(takeover_units); i++)
		if (strcmp(takeover_units[i].name, name) == 0)
			return true;
	return false;
}

bool takeover_record_read(const char *config, struct takeover_record *ret, bool *ret_there, struct err *e)
{
	AUTO_TEXT path = takeover_record_path(config);
	AUTO_DONE(buf) text = {};
	char *next;
	int r = io_read_file(path, &text, CONFIG_MAX);

	*ret_there = r >= 0;
	if (r < 0)
		return r == -ENOENT || err_errno(e, -r, "could not read '%s'", path);
	for (next = text.data; next && *next;) {
		char *line = strsep(&next, "\n");

		if (strncmp(line, "mode ", 5) == 0) {
			free(ret->mode);
			ret->mode = xstrdup(line + 5);
		} else if (strncmp(line, "unit ", 5) == 0 && unit_known(line + 5)) {
			strv_add(&ret->units, line + 5);
		}
	}
	return true;
}

bool takeover_record_write(const char *config, const struct takeover_record *rec, struct err *e)
{
	AUTO_TEXT path = takeover_record_path(config);
	AUTO_DONE(buf) out = {};
	int r;

	if (rec->mode)
		buf_printf(&out, "mode %s\n", rec->mode);
	for (size_t i = 0; i < rec->units.n; i++)
		buf_printf(&out, "unit %s\n", rec->units.v[i]);
	r = io_write_file(path, out.data ? out.data : "", out.len, 0644);
	return r >= 0 || err_errno(e, -r, "could not write '%s'", path);
}

/* ---- others ---- */

bool takeover_package_installed(void)
{
	const char *const dpkg[] = {"dpkg-query", "--show", "--showformat=${db:Status-Status}", "jobsched-cron", NULL};
	const char *const rpm[] = {"rpm", "--quiet", "-q", "jobsched-cron", NULL};
	AUTO_DONE(buf) out = {};
	AUTO_DONE(buf) none = {};

	if (access("/usr/bin/dpkg-query", X_OK) == 0 && process_run(dpkg, &out, OUTPUT_MAX, NULL) == 0 &&
		out.len == strlen("installed") && memcmp(out.data, "installed", out.len) == 0)
		return true;
	return access("/usr/bin/rpm", X_OK) == 0 && process_run(rpm, &none, OUTPUT_MAX, NULL) == 0;
}

void takeover_mark_boot(void)
{
	static const char *const marks[] = {"/run/crond.reboot", "/run/cron.reboot"};

	for (size_t i = 0; i < ELEMENTS(marks); i++) {
		int fd = open(marks[i], O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0400);

		auto_fd_close(&fd);
	}
}

#define NEAR_SECONDS 5 /* stopping or starting cron takes less */

void takeover_avoid_minute(void)
{
	int64_t of_minute = time(NULL) % 60;

	if (of_minute >= 60 - NEAR_SECONDS)
		sleep((unsigned)(60 - of_minute) + 2);
	else if (of_minute < 2)
		sleep((unsigned)(2 - of_minute));
}
