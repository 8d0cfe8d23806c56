/* SPDX-License-Identifier: Apache-2.0 */
/* Creates inotify descriptors; the error message names the limit of the kernel. */
#include "base/file/inotify.h"
#include "base/err.h"
#include <errno.h>
#include <sys/inotify.h>

bool inotify_new(int *ret, struct err *e)
{
	*ret = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (*ret >= 0)
		return true;
	if (errno == EMFILE)
		return err_errno(e, errno,
			"this user has no inotify instance left; raise fs.inotify.max_user_instances with sysctl(8), or the "
			"limit of open files");
	return err_errno(e, errno, "could not create an inotify descriptor");
}
