/* SPDX-License-Identifier: Apache-2.0 */
/* An engine in front of a real one that fails the n-th call in a chosen way. */
#pragma once
#include "base/err.h"
#include "store/backend/db.h"

enum fault_mode {
	FAULT_STATEMENT,     /* the call fails, nothing else happens */
	FAULT_BUSY,
	FAULT_FULL,
	FAULT_DEVICE,        /* what an I/O error gives */
	FAULT_LOST,          /* the connection is gone, and with it the transaction */
	FAULT_COMMITTED,     /* the connection is lost after a commit went through */
	FAULT_QUERY,         /* one query fails every time */
	FAULT_CUT,           /* one query loses the connection every time */
	FAULT_MODE_MAX
};

struct fault {
	enum fault_mode mode;
	int calls_left; /* 0: no fault */
	int query;      /* of FAULT_QUERY and FAULT_CUT */
	bool fired;
};

/* The engine whose calls fail as *f says; 'reconnects' as a server does. */
const struct db_ops *db_faulty_ops(const struct db_ops *real, struct fault *f, bool reconnects);
