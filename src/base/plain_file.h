/* SPDX-License-Identifier: Apache-2.0 */
/* Tells files with contents of their own from those that the kernel makes up. */
#pragma once

/* 0: a regular file of an ordinary file system. -EINVAL: another kind of file, or one of procfs, sysfs and the like. */
int plain_file_check(int fd);
