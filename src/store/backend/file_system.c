/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refuses network file systems for SQLite, whose locks and shared memory work within one kernel
 * only.
 */
#include "store/backend/file_system.h"
#include "base/auto.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/io.h"
#include "base/text.h"
#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysmacros.h>

#define MAGIC_FUSE 0x65735546
#define MOUNTS_MAX (16 << 20) /* bytes of mountinfo */

static const struct {
	uint32_t magic;
	const char *name;
} remote[] = {
	{0x6969, "nfs"}, {0x517B, "smb"}, {0xFF534D42, "cifs"}, {0xFE534D42, "smb2"}, {0x01021997, "9p"}, {0x00C36400, "ceph"},
	{0x73757245, "coda"}, {0x5346414F, "afs"}, {0x6B414653, "afs"}, {0x564C, "ncp"}, {0x0BD00BD0, "lustre"},
	{0x47504653, "gpfs"}, {0x01161970, "gfs2"}, {0x7461636F, "ocfs2"}, {0x19830326, "beegfs"}, {0xAAD7AAEA, "panfs"},
	{0x786F4256, "vboxsf"}, {0xBACBACBC, "vmhgfs"}, {0x013111A8, "ibrix"},
};

/*
 * FUSE file systems with local data. All others may be remote and may not propagate locks to other
 * machines.
 */
static const char *const local_fuse[] = {"fuseblk", "fuse.fuse-overlayfs", "fuse.mergerfs", "fuse.bindfs", "fuse.unionfs",
	"fuse.gocryptfs", "fuse.encfs", "fuse.cryfs", "fuse.ntfs-3g", "fuse.exfat", "fuse.zfs-fuse"};

enum file_system_verdict file_system_judge(uint64_t magic, const char *fstype)
{
	for (size_t i = 0; i < ELEMENTS(remote); i++)
		if ((uint32_t)magic == remote[i].magic)
			return FILE_SYSTEM_REMOTE;
	if ((uint32_t)magic != MAGIC_FUSE)
		return FILE_SYSTEM_LOCAL;
	for (size_t i = 0; fstype && i < ELEMENTS(local_fuse); i++)
		if (strcmp(fstype, local_fuse[i]) == 0)
			return FILE_SYSTEM_LOCAL;
	return text_equal(fstype, "virtiofs") ? FILE_SYSTEM_UNKNOWN : FILE_SYSTEM_REMOTE;
}

/*
 * "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw": the third field is the device,
 * the type follows the dash.
 */
static char *type_of_device(dev_t device)
{
	AUTO_TEXT want = xprintf("%u:%u", major(device), minor(device));
	AUTO_DONE(buf) mounts = {};
	char *save = NULL;

	if (io_read_file("/proc/self/mountinfo", &mounts, MOUNTS_MAX) < 0 || !mounts.data)
		return NULL;
	for (char *line = strtok_r(mounts.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		const char *dash = strstr(line, " - ");
		char id[32];

		if (dash && sscanf(line, "%*s %*s %31s", id) == 1 && strcmp(id, want) == 0)
			return xstrndup(dash + 3, strcspn(dash + 3, " "));
	}
	return NULL;
}

static const char *remote_type_name(uint64_t magic)
{
	for (size_t i = 0; i < ELEMENTS(remote); i++)
		if ((uint32_t)magic == remote[i].magic)
			return remote[i].name;
	return "fuse";
}

bool file_system_check(const char *path, enum file_system_verdict *ret, char **ret_type, struct err *e)
{
	AUTO_TEXT copy = xstrdup(path);
	const char *dir = dirname(copy);
	AUTO_TEXT type = NULL;
	struct statfs fs;
	struct stat st;

	*ret = FILE_SYSTEM_LOCAL;
	if (statfs(dir, &fs) < 0 || stat(dir, &st) < 0)
		return true; /* opening the store reports the error */
	type = type_of_device(st.st_dev);
	if (!type)
		type = xstrdup(remote_type_name((uint64_t)fs.f_type));
	*ret = file_system_judge((uint64_t)fs.f_type, type);
	if (*ret == FILE_SYSTEM_REMOTE)
		return err_set(e, ERR_REFUSED, "store '%s' is on a network file system ('%s'), where SQLite's locks do not reach other machines; "
			"set 'store' to a file on a local disk, or to a PostgreSQL database (jobschedd.conf(5))", path, type);
	*ret_type = STEAL(type);
	return true;
}
