/* SPDX-License-Identifier: Apache-2.0 */
/* The content of the directory that the attempts of a run share, as an archive in a memory file. */
/*
 * A process with the uid of the owner writes the archive and unpacks it (worker/state_archive.c). The
 * daemon keeps the bytes in the store and does not read them. The process reports with one packet.
 */
#pragma once
#include <stdint.h>

#define RUN_STATE_MAX (16 << 20) /* bytes of an archive */

enum run_state_verb {
	RUN_STATE_PACK,    /* write the directory to the memory file, whose size is the limit */
	RUN_STATE_FILL,    /* unpack it, unless the directory has files */
	RUN_STATE_REPLACE, /* empty the directory first */
	RUN_STATE_VERB_MAX
};

struct run_state_report {
	int32_t error;   /* an errno; EFBIG: the content is larger than the memory file; 0: done */
	int32_t left_out; /* sockets, devices and links that lead out of the directory */
	int64_t bytes;   /* of the archive */
};
