/* SPDX-License-Identifier: Apache-2.0 */
/* Parses command lines with argtable, version 2 or 3. */
#include "jobctl/args.h"

#ifdef HAVE_ARGTABLE3
#include <argtable3.h>
#else
#include <argtable2.h>
#endif
#include "base/err.h"
#include "base/text.h"
#include "jobctl/suggest.h"
#include <ctype.h>
#include <string.h>

struct value {
	char *name;         /* of the option */
	size_t n;
	const char **texts; /* n values; NULL: the option takes none */
};

struct args {
	struct value *values;
	size_t n;
	char **operands;
	size_t operands_n;
	bool dashed;
};

void args_free(struct args *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->n; i++) {
		free(a->values[i].name);
		free(a->values[i].texts);
	}
	free(a->values);
	free(a->operands);
	free(a);
}

/* The rows of an argtable, and the short option names that it borrows. */
struct argtable {
	void **rows;      /* one per option, then the operands, then the end */
	char (*letters)[2];
	size_t n;         /* rows */
};

static void argtable_done(struct argtable *t)
{
	if (t->rows)
		arg_freetable(t->rows, (int)t->n);
	free(t->rows);
	free(t->letters);
}

static void argtable_init(struct argtable *t, const struct args_how *how, int argc)
{
	/* argtable needs a bound: an option cannot be given more often than there are words. */
	int max = argc > 0 ? argc : 1;

	t->n = how->count + 2;
	t->rows = xcalloc(t->n, sizeof *t->rows);
	t->letters = xcalloc(how->count, sizeof *t->letters);
	for (size_t i = 0; i < how->count; i++) {
		const struct opt *o = &how->opts[i];
		const char *letter = o->letter ? t->letters[i] : NULL;

		t->letters[i][0] = o->letter;
		t->rows[i] = o->arg ? (void *)arg_strn(letter, o->name, o->arg, 0, max, NULL)
				    : (void *)arg_litn(letter, o->name, 0, max, NULL);
	}
	t->rows[how->count] = arg_strn(NULL, NULL, NULL, 0, max, NULL);
	t->rows[how->count + 1] = arg_end(4);
	if (arg_nullcheck(t->rows))
		abort();
}

/* Reports an unknown option and suggests a similar one. */
static bool no_such_option(const struct args_how *how, const char *text, struct err *e)
{
	AUTO_TEXT name = xstrndup(text, strcspn(text, "="));
	AUTO_DONE(suggest) s = {.typed = name + strspn(name, "-")};

	for (size_t i = 0; i < how->count; i++)
		suggest_offer(&s, how->opts[i].name);
	if (s.best)
		return err_set(e, ERR_INVALID, "there is no option '%s' (did you mean '--%s'?)",
			name, s.best);
	return err_set(e, ERR_INVALID, "there is no option '%s'", name);
}

/*
 * Reports the first error that argtable found. The code of an unknown short option is its letter.
 */
static bool fail_parse(const struct args_how *how, const struct arg_end *end, struct err *e)
{
	int code = end->error[0];
	const char *text = end->argval[0];

	if (code == ARG_EMISSARG)
		return text && *text
			       ? err_set(e, ERR_INVALID, "the option '%s' needs a value", text)
			       : err_set(e, ERR_INVALID, "an option was given an empty value");
	if (code == ARG_ELONGOPT)
		return no_such_option(how, text ? text : "", e);
	if (code > ARG_EMISSARG && code < 128 && isalnum(code))
		return err_set(e, ERR_INVALID, "there is no option '-%c'", code);
	return err_set(e, ERR_INVALID, "an option was given a value that it does not take");
}

/*
 * argtable treats an empty value as missing. So each empty word is replaced by one letter before
 * parsing, and by the original word afterwards.
 */
struct argv_copy {
	int argc;
	char **argv;        /* borrowed */
	char **in;          /* the words for argtable */
	char (*letters)[2]; /* one per word: the replacement if it is empty */
};

static void argv_copy_done(struct argv_copy *w)
{
	free(w->in);
	free(w->letters);
}

static void argv_copy_init(struct argv_copy *w, int argc, char **argv)
{
	w->argc = argc;
	w->argv = argv;
	w->in = xcalloc((size_t)argc + 1, sizeof *w->in);
	w->letters = xcalloc((size_t)argc + 1, sizeof *w->letters);
	for (int i = 0; i < argc; i++) {
		w->letters[i][0] = 'e';
		w->in[i] = *argv[i] ? argv[i] : w->letters[i];
	}
}

static const char *argv_copy_original(const struct argv_copy *w, const char *word)
{
	for (int i = 0; i < w->argc; i++)
		if (word == w->letters[i])
			return w->argv[i];
	return word;
}

static void copy_values(struct args *a, const struct argtable *t, const struct args_how *how,
	const struct argv_copy *w)
{
	const struct arg_str *operands = t->rows[how->count];

	a->n = how->count;
	a->values = xcalloc(a->n, sizeof *a->values);
	for (size_t i = 0; i < a->n; i++) {
		struct value *v = &a->values[i];

		v->name = xstrdup(how->opts[i].name);
		if (!how->opts[i].arg) {
			v->n = (size_t)((const struct arg_lit *)t->rows[i])->count;
			continue;
		}
		const struct arg_str *s = t->rows[i];

		v->n = (size_t)s->count;
		v->texts = xcalloc(v->n, sizeof *v->texts);
		for (size_t k = 0; k < v->n; k++)
			v->texts[k] = argv_copy_original(w, s->sval[k]);
	}
	a->operands_n = (size_t)operands->count;
	a->operands = xcalloc(a->operands_n + 1, sizeof *a->operands);
	for (size_t k = 0; k < a->operands_n; k++)
		a->operands[k] = (char *)argv_copy_original(w, operands->sval[k]);
}

static bool is_value(const struct args *a, const char *word)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; a->values[i].texts && k < a->values[i].n; k++)
			if (a->values[i].texts[k] == word)
				return true;
	return false;
}

/* Operands are pointers into argv, so the word before the first operand is found by its address. */
static bool find_dashes(const struct args *a, int argc, char **argv)
{
	for (int i = 2; i < argc && a->operands_n; i++)
		if (argv[i] == a->operands[0])
			return strcmp(argv[i - 1], "--") == 0 && !is_value(a, argv[i - 1]);
	return false;
}

bool args_parse(const struct args_how *how, int argc, char **argv, struct args **ret, struct err *e)
{
	__attribute__((cleanup(argtable_done))) struct argtable t = {};
	AUTO_DONE(argv_copy) argv_copy = {};
	const struct arg_end *end;

	argv_copy_init(&argv_copy, argc, argv);
	/*
	 * argtable calls getopt_long(), which stops at the first operand only with this variable.
	 */
	if (how->command)
		setenv("POSIXLY_CORRECT", "1", 1);
	else
		unsetenv("POSIXLY_CORRECT");
	argtable_init(&t, how, argc);
	if (arg_parse(argc, argv_copy.in, t.rows) > 0) {
		end = t.rows[how->count + 1];
		return fail_parse(how, end, e);
	}
	*ret = xcalloc(1, sizeof **ret);
	copy_values(*ret, &t, how, &argv_copy);
	(*ret)->dashed = find_dashes(*ret, argc, argv);
	return true;
}

static const struct value *find_option(const struct args *a, const char *name)
{
	for (size_t i = 0; i < a->n; i++)
		if (strcmp(a->values[i].name, name) == 0)
			return &a->values[i];
	abort();
}

size_t args_count(const struct args *a, const char *name)
{
	return find_option(a, name)->n;
}

const char *args_nth(const struct args *a, const char *name, size_t i)
{
	const struct value *v = find_option(a, name);

	return v->texts && i < v->n ? v->texts[i] : NULL;
}

const char *args_last(const struct args *a, const char *name)
{
	size_t n = args_count(a, name);

	return n ? args_nth(a, name, n - 1) : NULL;
}

bool args_has(const struct args *a, const char *name)
{
	return args_count(a, name) > 0;
}

size_t args_operands(const struct args *a, char *const **ret)
{
	*ret = a->operands;
	return a->operands_n;
}

bool args_dashed(const struct args *a)
{
	return a->dashed;
}
