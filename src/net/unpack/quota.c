/* SPDX-License-Identifier: Apache-2.0 */
/* Requests disk space from the parent. */
#include "net/unpack/quota.h"
#include "base/err.h"
#include <errno.h>
#include <sys/socket.h>

static bool quota_request(struct quota *q, struct err *e)
{
	struct quota_report report = {.kind = QUOTA_MORE, .bytes = q->used};
	int64_t granted = 0;
	ssize_t n;

	if (send(q->fd, &report, sizeof(report), MSG_NOSIGNAL) != (ssize_t)sizeof(report))
		return err_errno(e, errno, "could not request disk space");
	do
		n = recv(q->fd, &granted, sizeof(granted), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(granted))
		return err_set(e, ERR_BUSY, "jobsched-net is being stopped");
	if (granted == QUOTA_TOO_LARGE)
		return err_set(e, ERR_TOO_LARGE,
			"it needs more disk space than artifact-budget in jobschedd.conf(5) allows");
	if (granted == QUOTA_OWNER)
		return err_set(e, ERR_BUSY,
			"the artifacts of the owner's running jobs use half of artifact-budget (see jobschedd.conf(5))");
	if (granted < q->used)
		return err_set(e, ERR_BUSY,
			"the artifacts of running jobs use up artifact-budget (see jobschedd.conf(5))");
	q->granted = granted;
	return true;
}

bool quota_take(struct quota *q, int64_t bytes, struct err *e)
{
	q->used += bytes;
	return q->fd < 0 || q->used <= q->granted || quota_request(q, e);
}
