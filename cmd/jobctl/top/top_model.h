/* SPDX-License-Identifier: Apache-2.0 */
/* The state of 'jobctl top': what is shown, and what each key does. It neither draws nor connects. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "base/text.h"
#include "jobctl/top/top_rows.h"
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys that are not characters. */
enum top_key {
	TOP_KEY_UP = 0x200000, TOP_KEY_DOWN, TOP_KEY_LEFT, TOP_KEY_RIGHT, TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN, TOP_KEY_HOME, TOP_KEY_END, TOP_KEY_ENTER, TOP_KEY_ESCAPE, TOP_KEY_TAB,
	TOP_KEY_BACK_TAB, TOP_KEY_BACKSPACE
};

enum top_mode {
	TOP_MODE_LIST,
	TOP_MODE_TEXT,   /* details, reasons or the help */
	TOP_MODE_LOG,    /* the output of a run */
	TOP_MODE_SEARCH, /* a text is being typed, above the list */
	TOP_MODE_ASK     /* a question waits for y */
};

/* One list. Only one page of it is in memory. */
struct top_list {
	json_t *rows;          /* owned array; NULL: not loaded yet */
	size_t selected, first; /* indexes of the selected row and of the first row on the screen */
	struct strv cursors;   /* of the pages after the first, up to the present one */
	char *next_cursor;     /* owned; NULL: this is the last page */
	char *search;          /* owned; NULL: none */
	size_t sort;
	struct strv marks;     /* keys of marked rows */
};

/* Text of several lines on the screen. */
struct top_text {
	char *title;           /* owned */
	struct strv lines;     /* escaped; the last line of output may be incomplete */
	size_t bytes;          /* of all lines */
	size_t first, column;  /* of the first character on the screen */
	bool at_end;           /* new lines scroll the text */
	bool open_line;        /* the last line is not complete yet */
	bool cut;              /* older lines were dropped */
};
#define TOP_TEXT_LINES 5000         /* lines of output that are kept */
#define TOP_TEXT_BYTES (4 * 1024 * 1024)
#define TOP_LINE_BYTES (16 * 1024)  /* a longer line of output is broken */

/* A command of the model for its owner. */
enum top_verb {
	TOP_QUIT,
	TOP_REFRESH, /* read the list again */
	TOP_SHOW,    /* GET 'path', and show it with top_model_show_text() */
	TOP_WHY,     /* the same, as reasons */
	TOP_LOG,     /* follow the output of run 'id' */
	TOP_LOG_END, /* stop following */
	TOP_POST     /* POST 'path', then read the list again; 'said' is the message of success */
};
struct top_command {
	enum top_verb verb;
	char *path, *said; /* owned; NULL: none */
	bool is_run;       /* of TOP_SHOW: a run, not a job */
	int64_t id;
};
void top_command_done(struct top_command *c);

struct top_model {
	enum top_view view;
	enum top_mode mode;
	struct top_list lists[TOP_VIEW_MAX];
	struct top_text text;
	int64_t log_run;       /* the run whose output is followed; 0: none */
	int64_t runs_of;       /* the runs view shows this job only; 0: all */
	char *runs_of_name;    /* owned */
	bool all_jobs;         /* finished and cancelled jobs, too */
	bool held;             /* the list is not updated */
	struct buf typed;      /* in TOP_MODE_SEARCH */
	char *question;        /* owned; in TOP_MODE_ASK */
	char *message;         /* owned; NULL: none */
	usec_t message_until;
	json_t *status;        /* owned; NULL: unknown */
	usec_t down_since;     /* 0: connected */
	char *down_why;        /* owned */
	usec_t now;
	int lines, columns;    /* of the screen */
	struct top_command *commands; /* owned queue */
	size_t n_commands, next_command;
	struct top_command *asked;    /* owned: commands that wait for the answer y */
	size_t n_asked;
};
void top_model_init(struct top_model *m, enum top_view view);
void top_model_done(struct top_model *m);

/* ---- input ---- */
void top_model_resize(struct top_model *m, int lines, int columns);
void top_model_rows(struct top_model *m, enum top_view view, const json_t *answer);
void top_model_status(struct top_model *m, const json_t *status);
void top_model_show_text(struct top_model *m, const char *title, const char *text);
/* Output of the followed run. It is escaped, except for newlines and tabs. */
void top_model_output(struct top_model *m, const char *text, size_t len);
void top_model_say(struct top_model *m, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void top_model_down(struct top_model *m, const char *why);
void top_model_up(struct top_model *m);

/* ---- output ---- */
char *top_model_path(const struct top_model *m); /* of the list's request; caller frees */
bool top_model_take(struct top_model *m, struct top_command *ret /* owned by the caller */);
int top_model_list_lines(const struct top_model *m); /* lines for rows on this screen */
int top_model_text_lines(const struct top_model *m);
const json_t *top_model_selected(const struct top_model *m); /* NULL: none */
bool top_model_is_marked(const struct top_model *m, const json_t *row);
