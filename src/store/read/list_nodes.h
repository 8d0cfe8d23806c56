/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the nodes of the cluster. */
#pragma once
#include "store/store.h"

bool list_nodes_rows(struct store *s, struct node_list *l, struct err *e); /* open nodes; inside a transaction */
