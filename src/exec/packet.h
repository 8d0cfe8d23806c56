/* SPDX-License-Identifier: Apache-2.0 */
/* One packet of a SOCK_SEQPACKET socket, with descriptors beside it. */
#pragma once
#include <stddef.h>

#define PACKET_FDS_MAX 2

/* Both return 0 or -errno; 'flags' is 0 or MSG_DONTWAIT. */
int packet_send(int fd, const void *data, size_t len, const int *fds, size_t n, int flags);
/*
 * *ret_len 0: the other side is gone. Descriptors are the caller's then, close-on-exec.
 * -EBADMSG: longer than 'size', or with more descriptors than PACKET_FDS_MAX; they are closed.
 */
int packet_recv(int fd, void *data, size_t size, size_t *ret_len, int fds[PACKET_FDS_MAX], size_t *ret_n, int flags);
void packet_fds_close(const int *fds, size_t n);
