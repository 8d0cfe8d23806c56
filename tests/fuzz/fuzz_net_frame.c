/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the protocol of jobsched-net: frames in both directions and the payload of a request. */
#include "base/io.h"
#include "net/net_packet.h"
#include "net/net_payload.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void frames_check(const uint8_t *data, size_t size)
{
	struct net_frame f;

	memset(&f, 0xa5, sizeof(f)); /* bytes that were not received must not be used */
	memcpy(&f, data, size < sizeof(f) ? size : sizeof(f));
	for (unsigned from = NET_FROM_DAEMON; from <= NET_FROM_NET; from++)
		for (uint32_t version = 0; version <= NET_FRAME_VERSION; version++)
			for (size_t fds = 0; fds <= NET_FDS_MAX + 1; fds++)
				if (net_frame_check(&f, size, fds, (enum net_frame_from)from, version, NULL) &&
					(size != f.size || size - net_frame_bytes(&f) > sizeof(f) || f.type >= NET_FRAME_TYPE_MAX ||
						fds > NET_FDS_MAX || net_frame_bytes(&f) > NET_INLINE_MAX))
					abort();
}

static void packet_check(const uint8_t *data, size_t size)
{
	static struct net_packet p;

	p.len = size < sizeof(p.data) ? size : sizeof(p.data);
	memcpy(p.data, data, p.len);
	for (unsigned from = NET_FROM_DAEMON; from <= NET_FROM_NET; from++)
		for (uint32_t version = 0; version <= NET_FRAME_VERSION; version++)
			for (size_t fds = 0, at = 0; fds <= NET_FDS_MAX; fds++, at = 0) {
				struct net_received r;
				size_t before = 0;

				while (at < p.len && net_packet_next(&p, &at, fds, (enum net_frame_from)from, version, &r, NULL)) {
					if (at > p.len || at <= before || r.bytes + r.len != p.data + at ||
						(at < p.len && (fds > 0 || version < NET_FRAME_VERSION_BATCH)))
						abort();
					before = at;
				}
			}
}

static void payload_check(const uint8_t *data, size_t size)
{
	struct net_payload p = {};
	int fd = io_memfd_sealed("payload", data, size);

	if (fd < 0)
		abort();
	if (net_payload_read(&p, fd, NULL)) {
		if (p.n > NET_TEXTS_MAX || p.body_len > size)
			abort();
		for (size_t i = 0; i < p.n; i++)
			if (p.texts[i] < p.data || p.texts[i] + strlen(p.texts[i]) >= p.body)
				abort();
		net_payload_done(&p);
	}
	if (net_payload_copy(&p, data, size, NULL))
		net_payload_done(&p);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	frames_check(data, size);
	packet_check(data, size);
	payload_check(data, size);
	return 0;
}
