/* SPDX-License-Identifier: Apache-2.0 */
/* The crontab command: options, messages and exit status of Debian's crontab. */
#include "base/auto.h"
#include "base/io.h"
#include "base/log.h"
#include "base/text.h"
#include "crontab/crontab_command.h"
#include "spool/request.h"
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#define GO_ON (-1)

int read_answer(void)
{
	char line[256];

	if (!fgets(line, sizeof(line), stdin))
		return 'n';
	return tolower((unsigned char)line[0]);
}

static int usage(const char *program, const char *problem)
{
	if (*problem)
		fprintf(stderr, "%s: usage error: %s\n", program, problem);
	fprintf(stderr,
		"usage:\t%s [-u user] [-n] file\n"
		"\t%s [ -u user ] [ -i ] { -e | -l | -r }\n\n"
		"\t-h\t(displays this help message)\n\n"
		"\tfile\t(default operation is replace, per 1003.2)\n"
		"\t-n\t(dry run: checks the syntax, then bails out)\n"
		"\t-u user\t(choose the user whose crontab is touched)\n\n"
		"\t-e\t(edit user's crontab)\n"
		"\t-l\t(list user's crontab)\n"
		"\t-r\t(delete user's crontab)\n\n"
		"\t-i\t(prompt before deleting user's crontab)\n",
		program, program);
	return EXIT_FAILURE;
}

/* ---- operations ---- */

/* Characters that move the cursor could hide a part of the table. */
static void put_table(const char *text, bool terminal, struct buf *out)
{
	for (; *text; text++) {
		unsigned char ch = (unsigned char)*text;

		if (ch == '\b')
			buf_str(out, "\\b");
		else if (ch == '\r')
			buf_str(out, "\\r");
		else if (terminal && ((ch < ' ' && ch != '\t' && ch != '\n') || ch == 0x7f))
			buf_printf(out, "\\x%02x", ch);
		else
			buf_char(out, *text);
	}
}

/* False: a message was printed. */
static bool get_table(const struct crontab_command *c, struct buf *ret)
{
	enum request_found found = request_table(c, ret);

	if (found == REQUEST_NONE)
		fprintf(stderr, "no crontab for %s\n", c->user);
	return found == REQUEST_FOUND;
}

static int list_table(const struct crontab_command *c)
{
	AUTO_DONE(buf) table = {};
	AUTO_DONE(buf) out = {};
	const char *header = getenv("CRONTAB_NOHEADER");
	bool whole = header && toupper((unsigned char)*header) == 'N';

	if (!get_table(c, &table))
		return EXIT_FAILURE;
	put_table(whole && table.data ? table.data : table_after_header(&table),
		isatty(STDOUT_FILENO), &out);
	if (io_write_all(STDOUT_FILENO, out.data, out.len) < 0) {
		perror("write");
		return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

static bool confirm_removal(const struct crontab_command *c)
{
	int answer;

	printf("crontab: really delete %s's crontab? (y/n) ", c->user);
	fflush(stdout);
	while ((answer = read_answer()) != 'y' && answer != 'n')
		fputs("Please enter Y or N: ", stderr);
	return answer == 'y';
}

/* A missing table is reported before the question. */
static int remove_table(const struct crontab_command *c)
{
	AUTO_DONE(buf) table = {};

	if (c->ask) {
		if (!get_table(c, &table))
			return EXIT_FAILURE;
		if (!confirm_removal(c))
			return EXIT_SUCCESS;
	}
	return request_remove(c) ? EXIT_SUCCESS : EXIT_FAILURE;
}

static bool read_file(const struct crontab_command *c, int fd, struct buf *out)
{
	int r = io_read_all(fd, out, SPOOL_TABLE_MAX);

	if (r == -EFBIG)
		fprintf(stderr, "%s: the table has more than %zu bytes; can't install.\n", c->program,
			SPOOL_BODY_MAX);
	else if (r < 0)
		fprintf(stderr, "%s: %s\n", c->file, strerror(-r));
	return r == 0;
}

static int open_file(const struct crontab_command *c)
{
	AUTO_FD fd = -1;
	struct stat st;

	if (strcmp(c->file, "-") == 0)
		return dup(STDIN_FILENO);
	fd = open(c->file, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0) {
		perror(c->file);
		return -1;
	}
	if (!S_ISREG(st.st_mode)) {
		fprintf(stderr, "%s: Not a regular file.\n", c->file);
		return -1;
	}
	return STEAL_FD(fd);
}

static int replace_table(const struct crontab_command *c)
{
	AUTO_FD fd = open_file(c);
	AUTO_DONE(buf) table = {};

	if (fd < 0 || !request_access(c) || !read_file(c, fd, &table))
		return EXIT_FAILURE;
	return install_table(c, c->file, &table) == INSTALL_DONE ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int help(const struct crontab_command *c)
{
	return request_access(c) ? usage(c->program, "") : EXIT_FAILURE;
}

/* ---- options ---- */

static const struct operation {
	int option;
	int (*run)(const struct crontab_command *c);
} operations[] = {
	{'h', help},
	{'l', list_table},
	{'r', remove_table},
	{'e', edit_table},
};

static const struct operation *find_operation(int option)
{
	for (size_t i = 0; i < ELEMENTS(operations); i++)
		if (operations[i].option == option)
			return &operations[i];
	return NULL;
}

static int set_user(struct crontab_command *c, const char *name, char **user)
{
	const struct passwd *p = getpwnam(name);

	if (!p) {
		fprintf(stderr, "%s:  user `%s' unknown\n", c->program, name);
		return EXIT_FAILURE;
	}
	if (getuid() != 0 && getuid() != p->pw_uid) {
		fputs("must be privileged to use -u\n", stderr);
		return EXIT_FAILURE;
	}
	free(*user);
	c->user = *user = xstrdup(p->pw_name);
	c->user_given = true;
	return GO_ON;
}

static int read_option(struct crontab_command *c, int option, const struct operation **what,
	char **user)
{
	const struct operation *o = find_operation(option);

	if (o) {
		if (*what)
			return usage(c->program, "only one operation permitted");
		*what = o;
		return GO_ON;
	}
	switch (option) {
	case 'n':
		c->dry_run = true;
		return GO_ON;
	case 'i':
		c->ask = true;
		return GO_ON;
	case 'u':
		return set_user(c, optarg, user);
	default:
		return usage(c->program, "unrecognized option");
	}
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Root's requests are executed in this process, so their messages go to the system log from here. */
static void log_to_syslog(enum log_level level, const struct log_about *about, const char *line)
{
	(void)about;
	syslog(LOG_CRON | (int)level, "%s", line);
}

int main(int argc, char **argv)
{
	static const struct operation replace = {0, replace_table};
	struct crontab_command c = {.program = base_name(argc > 0 ? argv[0] : "crontab")};
	const struct passwd *p = getpwuid(getuid());
	const struct operation *what = NULL;
	AUTO_TEXT user = NULL;
	int option, r;

	openlog("crontab", LOG_PID, LOG_CRON);
	log_open("crontab", LOG_LEVEL_INFO, log_to_syslog);
	if (!p) {
		fprintf(stderr, "%s: your UID isn't in the passwd file.\nbailing out.\n", c.program);
		return EXIT_FAILURE;
	}
	c.user = user = xstrdup(p->pw_name);
	while ((option = getopt(argc, argv, "u:hnleri")) != -1)
		if ((r = read_option(&c, option, &what, &user)) != GO_ON)
			return r;
	if (what && argv[optind])
		return usage(c.program, "no arguments permitted after this option");
	if (!what && argc > 1 && !argv[optind])
		return usage(c.program, "file name must be specified for replace");
	c.file = argv[optind] ? argv[optind] : "-";
	what = what ? what : &replace;
	return what->run(&c);
}
