/* SPDX-License-Identifier: Apache-2.0 */
/* Stores the state of runs at the end of attempts, and brings it to the node of the next attempt (--state-size). */
/*
 * A child of the spawner packs and unpacks the directory (exec/proto/run_state.h). The state is stored
 * before the end of its attempt, so the next attempt on another node finds it. The state of an attempt
 * whose node is lost is not stored: the next attempt gets that of the attempt before.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct active_run;
struct dispatcher;
struct sd_event;
struct state_transfers;

struct state_transfers *state_transfers_new(struct sd_event *ev /* borrowed */, struct dispatcher *d /* borrowed */);
void state_transfers_free(struct state_transfers *all); /* NULL is fine */
/* Of all rows of an owner other than root, in bytes; 0: no limit. */
void state_transfers_set_limit(struct state_transfers *all, int64_t bytes);
void state_transfers_drop(struct state_transfers *all, int64_t run); /* the run has ended */

/* True: dispatcher_state_saved() follows. A failure is added to the error of the attempt. */
bool state_transfer_save(struct state_transfers *all, struct active_run *a);
/* dispatcher_state_filled() follows. */
void state_transfer_fill(struct state_transfers *all, const struct active_run *a);
