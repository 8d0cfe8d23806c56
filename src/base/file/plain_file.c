/* SPDX-License-Identifier: Apache-2.0 */
/* Recognises regular files of ordinary file systems. */
#include "base/file/plain_file.h"
#include "base/auto.h"
#include <errno.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define CONFIGFS_MAGIC 0x62656570
#define MQUEUE_MAGIC 0x19800202

/* File systems whose files depend on the reading process, or where reading has side effects. */
static const unsigned generated[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC,
	TRACEFS_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC, PSTOREFS_MAGIC, EFIVARFS_MAGIC, SELINUX_MAGIC, SMACK_MAGIC, NSFS_MAGIC,
	PIPEFS_MAGIC, ANON_INODE_FS_MAGIC, DEVPTS_SUPER_MAGIC, SOCKFS_MAGIC, BINFMTFS_MAGIC, CONFIGFS_MAGIC, MQUEUE_MAGIC};

int plain_file_check(int fd)
{
	struct statfs fs;
	struct stat st;

	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	for (size_t i = 0; i < ELEMENTS(generated); i++)
		if ((unsigned)fs.f_type == generated[i])
			return -EINVAL;
	return 0;
}
