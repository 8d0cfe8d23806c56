/* SPDX-License-Identifier: Apache-2.0 */
/* Fills the parts of a submission that follow from the request and its client. */
#pragma once

struct request;
struct submission;

/* The owner, the limits of the client and what the spawner and the machine offer; other members are cleared. */
void submission_context_fill(struct request *r, struct submission *ret);
