/* SPDX-License-Identifier: Apache-2.0 */
/* A list of requests that is searched by id. */
#include "daemon/loop/net_pending.h"
#include "base/auto.h"
#include "base/text.h"
#include <stdlib.h>
#include <unistd.h>

struct net_pending *net_pendings_find(const struct net_pendings *all, const struct net_id *id)
{
	struct net_pending *p = map_get(&all->by_id, net_frame_id_hash(id));

	while (p && !net_frame_id_equal(&p->request.id, id))
		p = p->same;
	return p;
}

struct net_pending *net_pendings_add(struct net_pendings *all, const struct net_request *r)
{
	struct net_pending *p = xcalloc(1, sizeof(*p));

	p->request = *r;
	p->payload = -1;
	p->before = all->last;
	if (all->last)
		all->last->next = p;
	else
		all->first = p;
	all->last = p;
	p->same = map_take(&all->by_id, net_frame_id_hash(&r->id));
	map_put(&all->by_id, net_frame_id_hash(&r->id), p);
	return p;
}

struct net_pending *net_pendings_take(struct net_pendings *all, const struct net_id *id)
{
	struct net_pending *p = net_pendings_find(all, id), *same, **at = &same;

	if (!p)
		return NULL;
	same = map_take(&all->by_id, net_frame_id_hash(id));
	while (*at != p)
		at = &(*at)->same;
	*at = p->same;
	if (same)
		map_put(&all->by_id, net_frame_id_hash(id), same);
	*(p->before ? &p->before->next : &all->first) = p->next;
	*(p->next ? &p->next->before : &all->last) = p->before;
	return p;
}

void net_pending_free(struct net_pending *p)
{
	if (!p)
		return;
	auto_fd_close(&p->payload);
	buf_done(&p->bytes);
	free(p);
}

void net_pendings_done(struct net_pendings *all)
{
	while (all->first)
		net_pending_free(net_pendings_take(all, &all->first->request.id));
	map_done(&all->by_id);
}
