/* SPDX-License-Identifier: Apache-2.0 */
/* The directories that the attempts of a run share (--checkpoint), as 'RUN.state' in the output directory. */
/*
 * A directory belongs to the owner of the job. Its parent is not open to users: a command gets a
 * descriptor, and only its processes reach the directory. The spawner never opens anything below it.
 * A process with the uid of the owner empties it, because the owner could make that block.
 */
#pragma once
#include "base/clock.h"
#include <stdbool.h>
#include <stdint.h>

struct user;
struct worker;
struct workers;

/* Opens the directory, and creates it for the first attempt. 0, or -errno; -EBUSY: an older one is being removed. */
int worker_state_open(struct worker *w, const struct user *user, int *ret);
void worker_state_forget(struct workers *ws, int64_t run); /* the run has ended: removes its directory */
void worker_states_run_due(struct workers *ws, usec_t now);
void worker_states_done(struct workers *ws);
/*
 * Opens the directory of a run whose content is packed or unpacked; 'create': for this user if there is
 * none. -EBUSY: a worker uses it, or it is being removed.
 */
int worker_state_open_idle(struct workers *ws, int64_t run, const struct user *user, bool create, int *ret);
/* The main function of the process that empties the directory at descriptor 0. */
int worker_state_remove_main(void);
bool worker_state_empty(int fd); /* of the owner; false: the directory could not be opened */
