/* SPDX-License-Identifier: Apache-2.0 */
/* Crontabs: user tables, system tables and files of /etc/cron.d, as cron reads them. */
#pragma once
#include "base/auto.h"
#include "base/clock.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct cron;
struct strv;

/*
 * debian: exactly as Debian's cron. cronie: as on rpm systems, with CRON_TZ, RANDOM_DELAY and '~'.
 * strict: as debian, but a line that probably does not do what its author meant is an error.
 */
enum crontab_mode { CRONTAB_DEBIAN, CRONTAB_CRONIE, CRONTAB_STRICT, CRONTAB_MODE_MAX };
extern const char *const crontab_mode_names[CRONTAB_MODE_MAX];
bool crontab_mode_parse(const char *word, enum crontab_mode *ret); /* false: not one of the names */

struct crontab_options {
	enum crontab_mode mode;
	bool system;      /* each entry has a user before its command */
	/* Whether an account exists; NULL: every name is accepted. */
	bool (*user_exists)(const char *name, void *arg);
	void *arg;
	const char *seed; /* of '~' in cronie mode: the same seed, line and field give the same value; NULL: empty */
	bool no_logging;  /* cronie mode, user table: the '-' prefix is allowed (the table belongs to root) */
};

/* The times of an entry, as sets of values. */
struct crontab_time {
	uint64_t minute;                   /* bits 0 … 59 */
	uint32_t hour, dom;                /* bits 0 … 23; bits 1 … 31 */
	uint16_t month;                    /* bits 1 … 12 */
	uint8_t dow;                       /* bits 0 … 6; Sunday is 0 */
	bool minute_star, hour_star;       /* the field begins with '*': the entry follows the clock at DST changes */
	bool dom_star, dow_star;           /* with one of them both day fields must match, otherwise one of the two */
};

struct crontab_entry {
	size_t line;                       /* where the entry begins, from 1 */
	size_t column;                     /* of its first character, from 1 */
	char *user;                        /* of a system table; NULL in a user table */
	char *schedule;                    /* the time fields or the nickname as written, blanks reduced to one */
	bool reboot;                       /* @reboot; 'time' is empty */
	bool nickname;                     /* @daily and the like, not @reboot; 'time' has its values */
	bool never;                        /* no date matches, not even in 400 years */
	bool quiet;                        /* cronie: '-' before the entry, cron does not log its starts */
	bool mail_on_error;                /* cronie: '-n' before the command, mail only if the job fails */
	struct crontab_time time;
	char *command;                     /* for SHELL -c; may be empty */
	char *text;                        /* command and input as written, before '%' and '\' are handled */
	char *input;                       /* standard input; NULL: none */
	size_t settings;                   /* the first so many settings of the table apply */
	int64_t delay_minutes;             /* cronie: RANDOM_DELAY; 0: none */
	const char *zone;                  /* cronie: CRON_TZ, borrowed from the setting; NULL: the zone of the machine */
};

/* NAME=value, in force for the entries after it until the name is set again. */
struct crontab_setting {
	size_t line;
	char *name, *value;                /* the name may be any text without '=', also an empty one */
	size_t replaced;                   /* the number of the next setting with this name; SIZE_MAX: none */
};

enum crontab_level {
	CRONTAB_NOTE,                      /* correct, but perhaps not expected */
	CRONTAB_WARNING,                   /* probably a mistake; cron runs the entry */
	CRONTAB_ERROR,                     /* cron refuses the line */
};
struct crontab_finding {
	size_t line, column;               /* from 1; column 0: the whole line; line 0: the whole table */
	enum crontab_level level;
	const char *code;                  /* a stable word: "bad-minute", "reversed-range" … */
	char *text;                        /* one sentence without a full stop */
	const char *cron_text;             /* of an error: cron's own words, "bad minute"; else NULL */
};

enum crontab_line {
	CRONTAB_LINE_BLANK,
	CRONTAB_LINE_COMMENT,
	CRONTAB_LINE_SETTING,
	CRONTAB_LINE_ENTRY,
	CRONTAB_LINE_REFUSED,
	CRONTAB_LINE_MAX
};

struct crontab {
	enum crontab_mode mode;
	bool system;
	/*
	 * False: cron runs nothing of this table, and 'entries' are what its good lines would mean. In
	 * cronie mode a bad line is skipped and the table is accepted.
	 */
	bool accepted;
	bool too_long;                     /* crontab(1) refuses it: more than CRONTAB_LINES_MAX lines */
	struct crontab_entry *entries;     /* in the order of the file */
	size_t n_entries;
	struct crontab_setting *settings;
	size_t n_settings;
	struct crontab_finding *findings;  /* in the order of the lines */
	size_t n_findings;
	uint8_t *lines;                    /* enum crontab_line for each line of the file */
	size_t n_lines;
	size_t count[CRONTAB_LINE_MAX];    /* lines of each kind */
};

#define CRONTAB_LINES_MAX 10000          /* lines that crontab(1) accepts */
#define CRONTAB_COMMAND_MAX 998          /* bytes of a command or setting; cronie: CRONTAB_CRONIE_MAX */
#define CRONTAB_CRONIE_MAX 131071
#define CRONTAB_BYTES_MAX (16 << 20)     /* readers of files refuse larger tables */

/* Reads a table. It never fails: a table that cron refuses has errors in its findings. */
void crontab_parse(const char *data, size_t len, const struct crontab_options *o, struct crontab **ret);
void crontab_free(struct crontab *t);
AUTO_DEFINE(crontab);

/*
 * Whether a text is a crontab rather than a script: each line is blank, a comment, a setting or an
 * entry with a command, and there is an entry.
 */
bool crontab_recognise(const char *text);

/* The first error in the order of the file; NULL: none. */
const struct crontab_finding *crontab_first_error(const struct crontab *t);

/* The value of a variable that applies to an entry; NULL: the table does not set it. */
const char *crontab_get(const struct crontab *t, const struct crontab_entry *e, const char *name);
/* Adds "NAME=value" for each setting that applies to an entry, LOGNAME excepted. */
void crontab_env(const struct crontab *t, const struct crontab_entry *e, struct strv *out);

/* The values as a cron expression of this program. False: no date matches. */
bool crontab_time_cron(const struct crontab_time *t, struct cron *ret);
/*
 * The entry as a schedule text that schedule_parse() accepts: a cron expression with the same slots
 * as in cron, a nickname, or "manual" if it never fires.
 */
void crontab_schedule(const struct crontab_entry *e, struct buf *out);
