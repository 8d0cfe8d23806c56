/* SPDX-License-Identifier: Apache-2.0 */
/* A backend in front of a real one that fails the n-th call in a chosen way. */
#pragma once
#include "base/err.h"
#include "store/backend/db.h"

enum fault_mode {
	FAULT_STATEMENT,     /* the call fails without further effects */
	FAULT_BUSY,
	FAULT_FULL,
	FAULT_DEVICE,        /* an I/O error */
	FAULT_LOST,          /* the connection is lost, and the transaction with it */
	FAULT_COMMITTED,     /* the connection is lost after a successful commit */
	FAULT_QUERY,         /* one query fails every time */
	FAULT_CUT,           /* one query loses the connection every time */
	FAULT_MODE_MAX
};

/* Capabilities of the backend in front. */
enum faulty_kind {
	FAULTY_FILE,
	FAULTY_SERVER,       /* connections are made again */
	FAULTY_PIPELINE,     /* and statements are sent without waiting for replies; the real one is a server */
};

struct fault {
	enum fault_mode mode;
	int calls_left; /* 0: no fault */
	int query;      /* of FAULT_QUERY and FAULT_CUT */
	bool fired;
};

/* Returns the backend whose calls fail as *f says. */
const struct db_ops *db_faulty_ops(const struct db_ops *real, struct fault *f, enum faulty_kind kind);
