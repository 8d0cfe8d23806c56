/* SPDX-License-Identifier: Apache-2.0 */
/* The protocol of jobsched-net: valid and invalid frames and payloads. */
#include "unit/unit.h"
#include "base/auto.h"
#include "base/io.h"
#include "net/net_packet.h"
#include "net/net_payload.h"
#include <string.h>
#include <sys/socket.h>

static void sample(struct net_frame *f, unsigned type)
{
	net_frame_init(f, (enum net_frame_type)type, NET_FRAME_VERSION);
	if (type == NET_HELLO)
		f->hello.oldest = f->hello.newest = 1;
	else if (f->version && f->size >= NET_FRAME_HEAD + sizeof(struct net_id))
		f->id = (struct net_id){NET_KIND_WEBHOOK, 1, 1}; /* the first member of all other bodies */
	if (type == NET_REQUEST)
		f->request.timeout = 1;
}

static bool from_daemon(unsigned type)
{
	return type < NET_WELCOME || type == NET_DEADLINE;
}

static bool valid(const struct net_frame *f, size_t len, size_t fds)
{
	return net_frame_check(f, len, fds, from_daemon(f->type) ? NET_FROM_DAEMON : NET_FROM_NET,
		f->version, NULL);
}

static size_t fds_of(unsigned type)
{
	return type == NET_REQUEST || type == NET_NEED_FILE || type == NET_NEED_SECRET;
}

static void frames_of_another_length_side_or_number_of_descriptors_are_refused(void **state)
{
	struct net_frame f;

	(void)state;
	for (unsigned t = NET_HELLO; t < NET_FRAME_TYPE_MAX; t++) {
		for (size_t len = 0; len <= sizeof(f); len++) {
			sample(&f, t);
			assert_true(valid(&f, len, fds_of(t)) == (len == f.size));
		}
		assert_false(valid(&f, f.size, 1 - fds_of(t)));
		assert_false(net_frame_check(&f, f.size, fds_of(t),
			from_daemon(t) ? NET_FROM_NET : NET_FROM_DAEMON, f.version, NULL));
		assert_false(net_frame_check(&f, f.size, fds_of(t),
			from_daemon(t) ? NET_FROM_DAEMON : NET_FROM_NET, f.version + 1, NULL));
	}
	sample(&f, NET_RESULT);
	f.result.id.kind = NET_KIND_ARTIFACT;
	assert_true(valid(&f, f.size, 1)); /* an artifact comes with its directory */
	f.result.outcome = NET_BUSY;
	assert_true(valid(&f, f.size, 0));
}

static void calls_do_not_exist_in_version_1(void **state)
{
	struct net_frame f;

	(void)state;
	sample(&f, NET_REQUEST);
	f.request.id.kind = NET_KIND_CALL;
	assert_true(valid(&f, f.size, 1));
	f.version = 1;
	assert_false(valid(&f, f.size, 1));
	f.request.id.kind = NET_KIND_ARTIFACT;
	assert_true(valid(&f, f.size, 1));
	for (unsigned t = NET_DEADLINE; t <= NET_CALL_RESULT; t++) {
		sample(&f, t);
		assert_true(valid(&f, f.size, fds_of(t)));
		f.version = 1;
		assert_false(valid(&f, f.size, fds_of(t)));
	}
	sample(&f, NET_CALL_RESULT);
	f.call.kept = 10;
	assert_true(valid(&f, f.size, 1)); /* the response comes with it */
	f.call.kept = NET_KEPT_MAX + 1;
	assert_false(valid(&f, f.size, 1));
}

static void values_out_of_range_and_unterminated_texts_are_refused(void **state)
{
	struct net_frame f;

	(void)state;
	sample(&f, NET_REQUEST);
	f.request.id.kind = NET_KIND_MAX;
	assert_false(valid(&f, f.size, 1));
	sample(&f, NET_REQUEST);
	f.request.limit = -1;
	assert_false(valid(&f, f.size, 1));
	sample(&f, NET_RESULT);
	memset(f.result.error, 'x', sizeof(f.result.error));
	assert_false(valid(&f, f.size, 0));
	sample(&f, NET_HOLD);
	f.hold.key[10] = 'x'; /* bytes after the end of the text */
	assert_false(valid(&f, f.size, 0));
}

static void an_encoded_payload_is_decoded_and_a_truncated_one_refused(void **state)
{
	const char *texts[] = {"https://example.org/", "", "Name: value"};
	AUTO_FD fd = net_payload_memfd(texts, ELEMENTS(texts), "b\0dy", 4, NULL);
	struct net_payload p = {};
	char bytes[256];
	ssize_t len;

	(void)state;
	assert_true(net_payload_read(&p, fd, NULL));
	assert_int_equal(p.n, ELEMENTS(texts));
	for (size_t i = 0; i < p.n; i++)
		assert_string_equal(p.texts[i], texts[i]);
	assert_int_equal(p.body_len, 4);
	assert_memory_equal(p.body, "b\0dy", 4);
	net_payload_done(&p);
	len = pread(fd, bytes, sizeof(bytes), 0);
	for (ssize_t cut = 0; cut < len; cut++) {
		AUTO_FD part = io_memfd_sealed("cut", bytes, (size_t)cut);

		assert_false(net_payload_read(&p, part, NULL));
	}
}

/* ---- packets ---- */

static void three_frames(struct net_packet *p)
{
	struct net_frame f;

	p->len = 0;
	sample(&f, NET_ACK);
	assert_true(net_packet_add(p, &f, NULL, 0));
	sample(&f, NET_REQUEST);
	f.request.id = (struct net_id){NET_KIND_CALL, 7, 1};
	assert_true(net_packet_add(p, &f, "payload", 7));
	sample(&f, NET_CANCEL);
	assert_true(net_packet_add(p, &f, NULL, 0));
}

static void the_frames_of_a_packet_arrive_in_order_with_their_bytes(void **state)
{
	static const enum net_frame_type types[] = {NET_ACK, NET_REQUEST, NET_CANCEL};
	struct net_packet out, in;
	struct net_received r;
	size_t at = 0;
	int pair[2], fd = 0;

	(void)state;
	three_frames(&out);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(net_packet_send(pair[0], &out, -1), 0);
	assert_int_equal(out.len, 0);
	assert_int_equal(net_packet_recv(pair[1], &in, &fd), 0);
	assert_int_equal(fd, -1);
	for (size_t i = 0; i < ELEMENTS(types); i++) {
		assert_true(net_packet_next(&in, &at, 0, NET_FROM_DAEMON, NET_FRAME_VERSION, &r, NULL));
		assert_int_equal(r.frame.type, types[i]);
		assert_int_equal(r.len, i == 1 ? 7 : 0);
	}
	assert_int_equal(at, in.len);
	three_frames(&out);
	at = NET_FRAME_HEAD + sizeof(struct net_id);
	assert_true(net_packet_next(&out, &at, 0, NET_FROM_DAEMON, NET_FRAME_VERSION, &r, NULL));
	assert_memory_equal(r.bytes, "payload", 7);
	close(pair[0]);
	close(pair[1]);
}

/* The number of frames that are valid before the first that is not. */
static size_t valid_frames(const struct net_packet *p, size_t fds, uint32_t version)
{
	struct net_received r;
	size_t at = 0, n = 0;

	while (at < p->len && net_packet_next(p, &at, fds, NET_FROM_DAEMON, version, &r, NULL))
		n++;
	return n;
}

static void a_packet_that_is_cut_or_of_an_earlier_version_or_has_a_descriptor_is_refused(void **state)
{
	struct net_packet whole, p;
	struct net_frame f;

	(void)state;
	three_frames(&whole);
	assert_int_equal(valid_frames(&whole, 0, NET_FRAME_VERSION), 3);
	p = whole;
	for (p.len--; p.len > 0; p.len--)
		assert_true(valid_frames(&p, 0, NET_FRAME_VERSION) <= 2);
	assert_int_equal(valid_frames(&whole, 1, NET_FRAME_VERSION), 0);
	p.len = 0;
	sample(&f, NET_REQUEST); /* the descriptor is its payload */
	assert_true(net_packet_add(&p, &f, NULL, 0));
	assert_int_equal(valid_frames(&p, 1, NET_FRAME_VERSION), 1);
	sample(&f, NET_ACK);
	assert_true(net_packet_add(&p, &f, NULL, 0));
	assert_int_equal(valid_frames(&p, 1, NET_FRAME_VERSION), 0);
	for (size_t at = 0; at < whole.len; at += f.size) {
		memcpy(&f, whole.data + at, NET_FRAME_HEAD);
		f.version = NET_FRAME_VERSION_BATCH - 1;
		memcpy(whole.data + at, &f, NET_FRAME_HEAD);
	}
	assert_int_equal(valid_frames(&whole, 0, NET_FRAME_VERSION_BATCH - 1), 0);
}

static void only_a_request_and_the_end_of_a_call_can_have_bytes(void **state)
{
	struct net_frame f;

	(void)state;
	for (unsigned t = NET_HELLO; t < NET_FRAME_TYPE_MAX; t++) {
		sample(&f, t);
		f.call.kept = t == NET_CALL_RESULT ? 8 : f.call.kept;
		f.size += 8;
		assert_true(valid(&f, f.size, 0) == (t == NET_REQUEST || t == NET_CALL_RESULT));
		f.version = NET_FRAME_VERSION_BATCH - 1;
		assert_false(valid(&f, f.size, 0));
	}
	sample(&f, NET_CALL_RESULT);
	f.call.kept = 7; /* not what follows */
	f.size += 8;
	assert_false(valid(&f, f.size, 0));
	sample(&f, NET_REQUEST);
	f.size += NET_INLINE_MAX;
	assert_true(valid(&f, f.size, 0));
	assert_false(valid(&f, f.size, 1)); /* the payload is there twice */
	f.size += 1;
	assert_false(valid(&f, f.size, 0));
}

static void a_full_packet_takes_no_further_frame(void **state)
{
	static char bytes[NET_INLINE_MAX];
	struct net_packet p = {};
	struct net_frame f;
	size_t n = 0;

	(void)state;
	sample(&f, NET_REQUEST);
	while (net_packet_add(&p, &f, bytes, sizeof(bytes)))
		n++;
	assert_true(n > 0 && p.len == n * (f.size + sizeof(bytes)) && p.len <= NET_PACKET_MAX);
	assert_int_equal(valid_frames(&p, 0, NET_FRAME_VERSION), n);
}

static void the_key_of_a_file_depends_on_its_owner_and_that_of_a_url_does_not(void **state)
{
	static const char sum[] =
		"0123456701234567012345670123456701234567012345670123456701234567";
	char a[NET_KEY_MAX], b[NET_KEY_MAX];

	(void)state;
	assert_string_not_equal(net_frame_artifact_key("file:/a", sum, 1, a),
		net_frame_artifact_key("file:/a", sum, 2, b));
	assert_string_equal(net_frame_artifact_key("https://a", sum, 1, a),
		net_frame_artifact_key("https://a", sum, 2, b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(frames_of_another_length_side_or_number_of_descriptors_are_refused),
		TEST(calls_do_not_exist_in_version_1),
		TEST(values_out_of_range_and_unterminated_texts_are_refused),
		TEST(an_encoded_payload_is_decoded_and_a_truncated_one_refused),
		TEST(the_frames_of_a_packet_arrive_in_order_with_their_bytes),
		TEST(a_packet_that_is_cut_or_of_an_earlier_version_or_has_a_descriptor_is_refused),
		TEST(only_a_request_and_the_end_of_a_call_can_have_bytes),
		TEST(a_full_packet_takes_no_further_frame),
		TEST(the_key_of_a_file_depends_on_its_owner_and_that_of_a_url_does_not),
	};

	return RUN_TESTS(tests);
}
