/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: byte streams. */
#include "check.h"

#include <threads.h>

enum { large = 300000 };

static char sent[large];

/* The peer: connects, and answers what it reads. */
static int connect_and_talk(void* address) {
    netiodaq_stream* stream = NULL;
    char text[6];
    CHECK_OK(netiodaq_stream_connect((const char*)address, NULL, &stream));
    CHECK_OK(netiodaq_stream_read_exactly(stream, text, 5));
    CHECK(memcmp(text, "hello", 5) == 0);
    CHECK_OK(netiodaq_stream_write(stream, sent, large));
    CHECK_OK(netiodaq_stream_shutdown_send(stream));
    uint64_t count = 99;
    CHECK_RESULT(NETIODAQ_END, netiodaq_stream_read(stream, text, sizeof text, &count));
    CHECK(count == 0);
    CHECK_OK(netiodaq_stream_close(stream));
    netiodaq_stream_free(stream);
    return 0;
}

static void talk(netiodaq_stream_listener* listener) {
    static char received[large];
    uint64_t count = 0;
    netiodaq_stream* stream = NULL;
    CHECK_OK(netiodaq_stream_listener_accept(listener, &stream));
    CHECK(strncmp(netiodaq_stream_peer_address(stream), "127.0.0.1:", 10) == 0);
    CHECK_OK(netiodaq_stream_set_call_timeout_ms(stream, 1));
    CHECK_RESULT(NETIODAQ_TIMED_OUT, netiodaq_stream_read(stream, received, 1, &count));
    CHECK_OK(netiodaq_stream_set_call_timeout_ms(stream, 0));
    CHECK_OK(netiodaq_stream_set_progress_timeout_ms(stream, deadline_ms));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_set_call_timeout_ms(stream, -1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_set_progress_timeout_ms(stream, -1));
    CHECK_OK(netiodaq_stream_write(stream, "hello", 5));
    CHECK_OK(netiodaq_stream_read(stream, received, 1, &count));
    CHECK(count == 1);
    CHECK_OK(netiodaq_stream_read_exactly(stream, received + 1, large - 2));
    CHECK(memcmp(received, sent, large - 1) == 0);
    CHECK_RESULT(NETIODAQ_ENDED_EARLY, netiodaq_stream_read_exactly(stream, received, 2));
    CHECK_OK(netiodaq_stream_read(stream, received, 2, &count)); /* the byte is not lost */
    CHECK(count == 1 && received[0] == sent[large - 1]);
    CHECK_OK(netiodaq_stream_close(stream));
    netiodaq_stream_free(stream);
}

static int wait_for_peer(void* listener) {
    netiodaq_stream* stream = NULL;
    CHECK_RESULT(NETIODAQ_CLOSED,
                 netiodaq_stream_listener_accept((netiodaq_stream_listener*)listener, &stream));
    CHECK(stream == NULL);
    return 0;
}

static void arguments(void) {
    netiodaq_stream* stream = NULL;
    netiodaq_stream_listener* listener = NULL;
    char byte;
    uint64_t count;
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_connect("nonsense", NULL, &stream));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_connect(NULL, NULL, &stream));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_connect("127.0.0.1:1", NULL, NULL));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_stream_connect("127.0.0.1:1", NULL, &stream));
    CHECK(stream == NULL && strstr(netiodaq_last_error(), "127.0.0.1:1") != NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_listener_new(NULL, NULL, &listener));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_listener_accept(NULL, &stream));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_listener_stop(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_read(NULL, &byte, 1, &count));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_read_exactly(NULL, &byte, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_write(NULL, &byte, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_shutdown_send(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_close(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_set_call_timeout_ms(NULL, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_stream_set_progress_timeout_ms(NULL, 1));
    CHECK(netiodaq_stream_peer_address(NULL) == NULL);
    CHECK(netiodaq_stream_listener_address(NULL) == NULL);
    netiodaq_stream_free(NULL);
    netiodaq_stream_listener_free(NULL);
}

int main(void) {
    for (int i = 0; i < large; ++i)
        sent[i] = (char)(i % 251);
    arguments();
    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_STREAM_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "stream.session.heartbeat", "0"));
    netiodaq_stream_listener* listener = NULL;
    CHECK_OK(netiodaq_stream_listener_new("127.0.0.1:0", options, &listener));
    netiodaq_options_free(options);
    char address[64];
    snprintf(address, sizeof address, "%s", netiodaq_stream_listener_address(listener));
    thrd_t peer;
    CHECK(thrd_create(&peer, connect_and_talk, address) == thrd_success);
    talk(listener);
    CHECK(thrd_join(peer, NULL) == thrd_success);
    CHECK(thrd_create(&peer, wait_for_peer, listener) == thrd_success);
    CHECK_OK(netiodaq_stream_listener_stop(listener));
    CHECK(thrd_join(peer, NULL) == thrd_success);
    netiodaq_stream_listener_free(listener);
    return 0;
}
