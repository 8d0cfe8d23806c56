/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the candidates for the last word of a command line. */
#include "jobctl/complete/complete.h"

#include "base/auto.h"
#include "base/buf.h"
#include "base/io.h"
#include "base/text.h"
#include "core/job/event.h"
#include "core/job/job.h"
#include "core/job/job_fields.h"
#include "core/job/run.h"
#include "core/job/sandbox_profile.h"
#include "jobctl/doctor/doctor.h"
#include "jobctl/spec/when_args.h"
#include "jobctl/verb.h"
#include <string.h>

#define ZONES_FILE "/usr/share/zoneinfo/tzdata.zi"
#define ZONES_MAX (1 << 20) /* bytes of that file */

/* ---- splitting a line ---- */

void complete_split(const char *line, struct strv *ret)
{
	AUTO_DONE(buf) word = {};
	bool open = false;
	char quote = 0;

	for (; *line; line++) {
		if (quote) {
			if (*line == quote)
				quote = 0;
			else if (*line == '\\' && quote == '"' && line[1] && strchr("\"\\$`", line[1]))
				buf_char(&word, *++line);
			else
				buf_char(&word, *line);
		} else if (*line == '\'' || *line == '"') {
			quote = *line;
			open = true;
		} else if (*line == '\\' && line[1]) {
			buf_char(&word, *++line);
			open = true;
		} else if (*line != ' ' && *line != '\t' && *line != '\n') {
			buf_char(&word, *line);
			open = true;
		} else if (open) {
			strv_add(ret, word.data ? word.data : "");
			buf_clear(&word);
			open = false;
		}
	}
	strv_add(ret, word.data ? word.data : "");
}

/* ---- candidates ---- */

void complete_add(struct completion *c, const char *value, const char *help)
{
	const char *typed = c->word + c->keep;

	if (c->count >= COMPLETE_MAX || strncmp(value, typed, strlen(typed)) != 0)
		return;
	c->count++;
	buf_add(c->out, c->word, c->keep);
	text_escape(c->out, value, strlen(value));
	if (help) {
		buf_char(c->out, '\t');
		text_escape(c->out, help, strcspn(help, "\n"));
	}
	buf_char(c->out, '\n');
}

/* "skip|queue[:N]|replace": the alternatives that are words, without the optional parts. */
static size_t add_alternatives(struct completion *c, const char *text)
{
	size_t found = 0;

	for (const char *at = text; *at; at += strcspn(at, "|"), at += *at == '|') {
		size_t len = strspn(at, "abcdefghijklmnopqrstuvwxyz-");
		AUTO_TEXT word = xstrndup(at, len);

		/* a word that ends at '|', '[' or the end; "exp:BASE" needs more than the word */
		if (len == 0 || !strchr("|[", at[len]))
			continue;
		complete_add(c, word, NULL);
		found++;
	}
	return found;
}

static void add_zones(struct completion *c)
{
	AUTO_DONE(buf) text = {};

	complete_add(c, "UTC", NULL);
	if (io_read_file(ZONES_FILE, &text, ZONES_MAX) < 0)
		return;
	/* "Z Europe/Berlin ..." is a zone, "L TARGET NAME" another name of one */
	for (char *line = text.data, *end; line && (end = strchr(line, '\n')); line = end + 1) {
		char *name = line + 2;

		*end = '\0';
		if (text_starts(line, "L "))
			name += strcspn(name, " ") + 1;
		else if (!text_starts(line, "Z "))
			continue;
		name[strcspn(name, " ")] = '\0';
		complete_add(c, name, NULL);
	}
}

static void add_fields(struct completion *c)
{
	for (size_t i = 0; i < job_fields_count; i++) {
		const struct job_field *f = &job_fields[i];
		AUTO_TEXT key = f->flag ? xprintf("%s%s", f->flag, f->type == FIELD_MAP ? "." : "=") : NULL;

		if (key)
			complete_add(c, key, f->help);
	}
	for (size_t i = 0; when_args_flag(i); i++) {
		AUTO_TEXT key = xprintf("%s=", when_args_flag(i));

		complete_add(c, key, NULL);
	}
}

static void add_first_words(struct completion *c)
{
	const char *before = "";

	for (const struct verb *v = c->table; v->name; v++) {
		AUTO_TEXT first = xstrndup(v->name, strcspn(v->name, " "));
		bool group = verb_second_word(v) != NULL;

		if (v->hidden || (group && text_starts(before, first) && before[strlen(first)] == ' '))
			continue;
		complete_add(c, first, group ? NULL : v->help);
		before = v->name;
	}
}

static void add_state_words(struct completion *c, bool runs)
{
	for (int i = 0; i < (runs ? (int)RUN_STATE_MAX : (int)JOB_STATE_MAX); i++)
		complete_add(c,
			runs ? run_state_name((enum run_state)i) : job_state_name((enum job_state)i), NULL);
}

static void add_event_words(struct completion *c)
{
	for (int i = EVENT_NONE + 1; i < EVENT_WHAT_MAX; i++)
		if (event_what_name((enum event_what)i))
			complete_add(c, event_what_name((enum event_what)i), NULL);
}

static void add_sandboxes(struct completion *c)
{
	struct sandbox_profiles built_in;

	sandbox_profiles_init(&built_in);
	for (size_t i = 0; i < built_in.n; i++)
		complete_add(c, built_in.v[i].name, NULL);
	sandbox_profiles_done(&built_in);
}

static void add_checks(struct completion *c)
{
	for (const struct doctor_check *k = doctor_checks; k->name; k++)
		complete_add(c, k->name, k->help);
}

static void add_kind(struct completion *c, enum complete_kind kind, const char *words)
{
	static const char *const by_shell[COMPLETE_KIND_MAX] = {[COMPLETE_USERS] = ":users\n",
		[COMPLETE_FILES] = ":files\n",
		[COMPLETE_COMMANDS] = ":commands\n"};

	if (by_shell[kind])
		buf_str(c->out, by_shell[kind]);
	else if (kind == COMPLETE_WORDS)
		add_alternatives(c, words);
	else if (kind == COMPLETE_JOB_STATES || kind == COMPLETE_RUN_STATES)
		add_state_words(c, kind == COMPLETE_RUN_STATES);
	else if (kind == COMPLETE_EVENTS)
		add_event_words(c);
	else if (kind == COMPLETE_SANDBOXES)
		add_sandboxes(c);
	else if (kind == COMPLETE_ZONES)
		add_zones(c);
	else if (kind == COMPLETE_FIELDS)
		add_fields(c);
	else if (kind == COMPLETE_VERBS)
		add_first_words(c);
	else if (kind == COMPLETE_CHECKS)
		add_checks(c);
	else if (kind != COMPLETE_NOTHING && c->names)
		c->names(kind, c->word + c->keep, c);
}

/* ---- options ---- */

/* Kinds of values of options whose argument in the help does not list the words. */
static const struct {
	const char *verb;   /* first word of the verb; NULL: any */
	const char *option; /* NULL: any with this argument */
	const char *arg;    /* NULL: any */
	enum complete_kind kind;
	const char *words;
} values[] = {
	{"runs", "state", NULL, COMPLETE_RUN_STATES, NULL},
	{NULL, "state", NULL, COMPLETE_JOB_STATES, NULL},
	{NULL, "output", NULL, COMPLETE_WORDS, "table|wide|json|jsonl|csv|name"},
	{NULL, "color", NULL, COMPLETE_WORDS, "auto|always|never"},
	{NULL, "if-exists", NULL, COMPLETE_WORDS, "error|keep|replace"},
	{"list", "sort", NULL, COMPLETE_WORDS, "next|name|last"},
	{NULL, "dst-gap", NULL, COMPLETE_WORDS, "after|skip"},
	{NULL, "dst-fold", NULL, COMPLETE_WORDS, "first|last|both"},
	{NULL, "what", NULL, COMPLETE_EVENTS, NULL},
	{NULL, "queue", NULL, COMPLETE_QUEUES, NULL},
	{NULL, "template", NULL, COMPLETE_TEMPLATES, NULL},
	{NULL, "job", NULL, COMPLETE_JOBS, NULL},
	{NULL, NULL, "USER", COMPLETE_USERS, NULL},
	{NULL, NULL, "QUEUE", COMPLETE_QUEUES, NULL},
	{NULL, NULL, "JOB", COMPLETE_JOBS, NULL},
	{NULL, NULL, "NODE", COMPLETE_NODES, NULL},
	{NULL, NULL, "ZONE", COMPLETE_ZONES, NULL},
	{NULL, NULL, "PROFILE", COMPLETE_SANDBOXES, NULL},
	{NULL, NULL, "FILE", COMPLETE_FILES, NULL},
	{NULL, NULL, "FILE|DIR", COMPLETE_FILES, NULL},
	{NULL, NULL, "DIR", COMPLETE_FILES, NULL},
	{NULL, NULL, "PATH", COMPLETE_FILES, NULL},
	{NULL, NULL, "boot", COMPLETE_WORDS, "boot"},
};

static bool fits(const char *wanted, const char *is)
{
	return !wanted || (is && strcmp(wanted, is) == 0);
}

static void complete_value(struct completion *c, const struct verb *v, const struct opt *o)
{
	AUTO_TEXT first = v ? xstrndup(v->name, strcspn(v->name, " ")) : NULL;

	for (size_t i = 0; i < ELEMENTS(values); i++)
		if (fits(values[i].verb, first) && fits(values[i].option, o->name) &&
			fits(values[i].arg, o->arg)) {
			add_kind(c, values[i].kind, values[i].words);
			return;
		}
	if (strchr(o->arg, '|'))
		add_alternatives(c, o->arg);
}

static const struct opt *find_long(const struct opt *opts, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(opts[i].name, name, len) == 0 && !opts[i].name[len])
			return &opts[i];
	return NULL;
}

/* The option whose value is the next word; NULL: none. */
static const struct opt *expects_value(const struct opt *opts, size_t n, const char *word)
{
	const struct opt *o;

	if (text_starts(word, "--")) {
		o = strchr(word, '=') ? NULL : find_long(opts, n, word + 2, strlen(word) - 2);
		return o && o->arg ? o : NULL;
	}
	for (const char *letter = word + 1; *letter; letter++)
		for (size_t i = 0; i < n; i++)
			if (opts[i].letter == *letter && opts[i].arg)
				return letter[1] ? NULL : &opts[i];
	return NULL;
}

static void add_options(struct completion *c, const struct opt *opts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		AUTO_TEXT name = xprintf("--%s", opts[i].name);

		complete_add(c, name, opts[i].help);
	}
}

/* ---- operands ---- */

static const struct {
	const char *verb; /* first word of the verb; NULL: any */
	const char *word; /* of the operands in the help */
	enum complete_kind kind;
} operands[] = {
	{NULL, "JOB", COMPLETE_JOBS},
	{NULL, "PATTERN", COMPLETE_JOBS},
	{"dead", "RUN", COMPLETE_DEAD},
	{NULL, "RUN", COMPLETE_RUNS},
	{NULL, "NODE", COMPLETE_NODES},
	{NULL, "OWNER", COMPLETE_USERS},
	{NULL, "USER", COMPLETE_USERS},
	{NULL, "FILE", COMPLETE_FILES},
	{NULL, "VERB", COMPLETE_VERBS},
	{"doctor", "CHECK", COMPLETE_CHECKS},
	{NULL, "COMMAND", COMPLETE_COMMANDS},
	{NULL, "KEY=VALUE", COMPLETE_FIELDS},
	{"queue", "NAME", COMPLETE_QUEUES},
	{"template", "NAME", COMPLETE_TEMPLATES},
};

static enum complete_kind operand_kind(const struct verb *v, const char *word, size_t len)
{
	AUTO_TEXT first = xstrndup(v->name, strcspn(v->name, " "));

	for (size_t i = 0; i < ELEMENTS(operands); i++)
		if (strlen(operands[i].word) == len && strncmp(operands[i].word, word, len) == 0 &&
			fits(operands[i].verb, first))
			return operands[i].kind;
	return COMPLETE_NOTHING;
}

/* The n-th word of the operands in the help; a word with '…' is repeated. */
static char *nth_operand(const struct verb *v, size_t nth)
{
	const char *at = v->operands ? v->operands : "";

	for (;;) {
		size_t len;

		at += strspn(at, " [");
		len = strcspn(at, " ]");
		if (len == 0 || at[0] == '|')
			return NULL;
		if (len == 2 && strncmp(at, "--", 2) == 0) {
			at += strcspn(at, " ");
			continue;
		}
		if (nth == 0 || memmem(at, len, "…", strlen("…")))
			return xstrndup(at, len);
		nth--;
		at += len;
		at += strspn(at, "]");
	}
}

static void complete_operand(struct completion *c, const struct verb *v, size_t nth)
{
	AUTO_TEXT text = nth_operand(v, nth);
	bool runs = strchr(c->word, '#') != NULL;

	if (!text)
		return;
	text[strcspn(text, "\xe2")] = '\0'; /* the first byte of '…' */
	for (char *at = text; *at; at += strcspn(at, "|"), at += *at == '|') {
		enum complete_kind kind = operand_kind(v, at, strcspn(at, "|"));

		/* "JOB|RUN": runs are proposed after '#', because there are many */
		if ((kind == COMPLETE_JOBS && runs && strstr(text, "RUN")) ||
			((kind == COMPLETE_RUNS || kind == COMPLETE_DEAD) && !runs && strstr(text, "JOB")))
			continue;
		add_kind(c, kind, NULL);
	}
	add_alternatives(c, text);
}

/* ---- the line ---- */

/* The meaning of the words before the last one. */
struct typed {
	const struct verb *verb;   /* NULL: not known yet */
	char *names[2];            /* borrowed: words that may name the verb */
	size_t n_names, n_operands;
	bool dashed;               /* after '--' */
	bool command;              /* within the command of a job */
	const struct opt *pending; /* its value is the last word */
	struct opt opts[OPTS_MAX];
	size_t n_opts;
};

static void note_global(struct completion *c, const char *name, const char *value)
{
	if (strcmp(name, "socket") == 0)
		c->socket = value;
	else if (strcmp(name, "instance") == 0)
		c->instance = value;
	else if (strcmp(name, "user") == 0)
		c->user = true;
	else if (strcmp(name, "system") == 0)
		c->system = true;
}

static void note_option(struct completion *c, struct typed *t, const char *word)
{
	const char *equals = strchr(word, '=');

	t->pending = expects_value(t->opts, t->n_opts, word);
	if (text_starts(word, "--") && !t->pending) {
		AUTO_TEXT name = xstrndup(word + 2, equals ? (size_t)(equals - word - 2) : strlen(word) - 2);

		note_global(c, name, equals ? equals + 1 : "");
	}
}

/* A verb of two words is known with its second word. */
static void note_operand(const struct completion *c, struct typed *t, char *word)
{
	size_t used;

	if (t->verb) {
		t->n_operands++;
		t->command = t->verb->command && !text_starts(t->verb->operands, "JOB");
		return;
	}
	if (t->n_names < ELEMENTS(t->names))
		t->names[t->n_names++] = word;
	t->verb = verb_match(c->table, t->names, t->n_names, &used);
	if (t->verb && t->n_names == 1 && verb_in_group(c->table, NULL, word))
		t->verb = NULL; /* 'queue' may become 'queue add' */
	if (!t->verb)
		return;
	t->n_operands = t->n_names - used;
	t->n_opts = verb_opts(t->verb, t->opts);
}

static void read_typed(struct completion *c, const struct strv *words, struct typed *t)
{
	t->n_opts = verb_opts(NULL, t->opts);
	for (size_t i = 0; i + 1 < words->n && !t->command; i++) {
		char *word = words->v[i];

		if (t->pending) {
			note_global(c, t->pending->name, word);
			t->pending = NULL;
		} else if (t->dashed) {
			note_operand(c, t, word);
		} else if (strcmp(word, "--") == 0) {
			t->dashed = true;
		} else if (word[0] == '-' && word[1]) {
			note_option(c, t, word);
		} else {
			note_operand(c, t, word);
		}
	}
}

static void complete_verb(struct completion *c, const struct typed *t)
{
	if (t->n_names == 0) {
		add_first_words(c);
		return;
	}
	for (const struct verb *v = NULL; (v = verb_in_group(c->table, v, t->names[0]));)
		if (!v->hidden)
			complete_add(c, verb_second_word(v), v->help);
}

/* "--state=act": the value after '='. */
static bool complete_assigned(struct completion *c, const struct typed *t)
{
	const char *equals = text_starts(c->word, "--") ? strchr(c->word, '=') : NULL;
	const struct opt *o = equals ? find_long(t->opts, t->n_opts, c->word + 2,
					       (size_t)(equals - c->word - 2)) : NULL;

	if (!o || !o->arg)
		return equals != NULL;
	c->keep = (size_t)(equals + 1 - c->word);
	complete_value(c, t->verb, o);
	return true;
}

void complete_words(struct completion *c, const struct strv *words)
{
	struct typed t = {};

	if (words->n == 0)
		return;
	read_typed(c, words, &t);
	c->word = words->v[words->n - 1];
	if (t.command)
		buf_str(c->out, ":files\n");
	else if (t.pending)
		complete_value(c, t.verb, t.pending);
	else if (!t.dashed && c->word[0] == '-' && complete_assigned(c, &t))
		return;
	else if (!t.dashed && c->word[0] == '-')
		add_options(c, t.opts, t.n_opts);
	else if (!t.verb)
		complete_verb(c, &t);
	else if (t.dashed && t.verb->operands && strstr(t.verb->operands, "COMMAND"))
		add_kind(c, COMPLETE_COMMANDS, NULL);
	else
		complete_operand(c, t.verb, t.n_operands);
}
