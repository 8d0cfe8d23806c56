/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a notice, from the store and the kept output, as mail, JSON or environment. */
#pragma once
#include "base/buf.h"
#include "base/text.h"
#include "core/job/notice_text.h"
#include "store/store.h"
#include <jansson.h>

struct start_plan;

struct notice_message {
	const struct notice *notice;  /* borrowed */
	struct job *job;              /* owned, like all below; NULL: removed */
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

/* On the reader thread: reads everything but the output. */
bool notice_message_read(struct notice_message *l, struct store *s, const struct notice *n, struct err *e);
/* On the loop: reads the end of the output and writes subject and text. */
void notice_message_write(struct notice_message *l, int output_dir, const char *store_id, const char *node_name);

json_t *notice_message_json(const struct notice_message *l);
/* How a command sends the message. */
struct notice_message_target {
	const char *command;   /* for exec; NULL: mail */
	const char *sendmail;  /* mail program, for mail */
	bool mails_output;     /* for output:, with 'command'; 'to' is the address */
	const char *to, *host;
	const char *as;        /* user of the mail program; NULL: the owner */
	uint32_t as_uid;
	usec_t now;
};
void notice_message_plan(const struct notice_message *l, const struct notice_message_target *how, struct start_plan *ret);
