/* SPDX-License-Identifier: Apache-2.0 */
/* A notice written out: what the store and the kept output know of it, as mail, as JSON, as environment. */
#pragma once
#include "base/buf.h"
#include "base/text.h"
#include "core/job/notice_text.h"
#include "store/store.h"
#include <jansson.h>

struct start_plan;

struct notice_message {
	const struct notice *notice;  /* borrowed */
	struct job *job;              /* owned, as all below; NULL: gone */
	struct run *run, *last_success;
	char *node;
	char *error;                  /* of the last attempt */
	struct strv changed;
	bool changed_known;
	usec_t typical;
	struct buf output;
	bool output_cut;
	char *output_missing;
	char *id;                     /* STORE-NOTICE: the same for every try */
	struct buf subject, body;
};
void notice_message_done(struct notice_message *l);

/* On the reader's thread: all but the output. */
bool notice_message_read(struct notice_message *l, struct store *s, const struct notice *n, struct err *e);
/* On the loop: the end of the output, and the words. */
void notice_message_write(struct notice_message *l, int output_dir, const char *store_id, const char *node_name);

json_t *notice_message_json(const struct notice_message *l);
/* A plan that hands it to a command: argv, environment, standard input. */
struct notice_message_target {
	const char *command;   /* for exec; NULL: mail */
	const char *sendmail;  /* for mail, with the address and the host it comes from */
	const char *to, *host;
	const char *as;        /* whose process the mail program is; NULL: the owner's */
	uint32_t as_uid;
	usec_t now;
};
void notice_message_plan(const struct notice_message *l, const struct notice_message_target *how, struct start_plan *ret);
