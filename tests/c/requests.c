/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: requester and responder: what each function does, and each error. */
#include "check.h"

#include <threads.h>

static netiodaq_reply* send_text(netiodaq_requester* requester, const char* text) {
    netiodaq_reply* reply = NULL;
    CHECK_OK(netiodaq_requester_send(requester, text, strlen(text), deadline_ms, &reply));
    return reply;
}

static netiodaq_request* receive(netiodaq_responder* responder, const char* text) {
    netiodaq_request* request = NULL;
    CHECK_OK(netiodaq_responder_receive(responder, deadline_ms, &request));
    CHECK(netiodaq_request_size_bytes(request) == strlen(text));
    CHECK(memcmp(netiodaq_request_data(request), text, strlen(text)) == 0);
    return request;
}

static void expect(netiodaq_reply* reply, const char* text) {
    const void* data = NULL;
    uint64_t size = 0;
    CHECK_OK(netiodaq_reply_next(reply, deadline_ms, &data, &size));
    CHECK(size == strlen(text) && memcmp(data, text, strlen(text)) == 0);
}

static void expect_end(netiodaq_reply* reply, netiodaq_result result, int32_t end) {
    const void* data = "";
    uint64_t size = 99;
    CHECK_RESULT(result, netiodaq_reply_next(reply, deadline_ms, &data, &size));
    CHECK(data == NULL && size == 0 && netiodaq_reply_end(reply) == end);
    netiodaq_reply_free(reply);
}

/* The responder ends a request with netiodaq_request_fail(why); the requester reads `shown`. */
static void expect_failure(netiodaq_requester* requester, netiodaq_responder* responder,
                           const char* why, const char* shown) {
    const void* data = NULL;
    uint64_t size = 0;
    netiodaq_reply* reply = send_text(requester, "a channel?");
    netiodaq_request* request = receive(responder, "a channel?");
    CHECK_OK(netiodaq_request_fail(request, why));
    netiodaq_request_free(request);
    CHECK_FAILS(NETIODAQ_CLOSED, shown, netiodaq_reply_next(reply, deadline_ms, &data, &size));
    expect_end(reply, NETIODAQ_CLOSED, NETIODAQ_REQUEST_FAILED);
}

static void each_end(netiodaq_requester* requester, netiodaq_responder* responder) {
    const void* data = NULL;
    uint64_t size = 0;
    netiodaq_reply* reply = send_text(requester, "how many?");
    netiodaq_request* request = receive(responder, "how many?");
    CHECK(strncmp(netiodaq_request_peer_address(request), "127.0.0.1:", 10) == 0);
    CHECK(netiodaq_request_is_canceled(request) == 0);
    CHECK_RESULT(NETIODAQ_TIMED_OUT, netiodaq_reply_next(reply, 0, &data, &size));
    CHECK(netiodaq_reply_end(reply) == NETIODAQ_REQUEST_OPEN);
    CHECK_OK(netiodaq_request_reply_part(request, "one", 3));
    CHECK_OK(netiodaq_request_reply(request, NULL, 0));
    CHECK_FAILS(NETIODAQ_CLOSED, "netiodaq_request_reply: the request has ended before",
                netiodaq_request_reply(request, "again", 5));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_request_reply_part(request, "again", 5));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_request_fail(request, "again"));
    netiodaq_request_free(request);
    expect(reply, "one");
    expect(reply, "");
    expect_end(reply, NETIODAQ_END, NETIODAQ_REQUEST_REPLIED);

    for (uint64_t less = 0; less < 400; less += 8) {
        netiodaq_reply* none = NULL;
        CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "no memory is so large",
                    netiodaq_requester_send(requester, "x", UINT64_MAX - less, 0, &none));
        CHECK(none == NULL);
    }
    expect_failure(requester, responder, "no such channel", "no such channel");
    /* The text is one line and valid UTF-8. */
    expect_failure(requester, responder, "first\nsecond \x1b[31m \xff\xc3\xa4",
                   "first?second ?[31m ?\xc3\xa4");

    reply = send_text(requester, "nothing?");
    netiodaq_request_free(receive(responder, "nothing?"));
    expect_end(reply, NETIODAQ_CLOSED, NETIODAQ_REQUEST_NO_REPLY);

    reply = send_text(requester, "canceled?");
    request = receive(responder, "canceled?");
    CHECK_OK(netiodaq_reply_cancel(reply));
    expect_end(reply, NETIODAQ_CLOSED, NETIODAQ_REQUEST_CANCELED);
    while (netiodaq_request_is_canceled(request) == 0)
        thrd_yield();
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_request_reply(request, "late", 4));
    netiodaq_request_free(request);
}

static void counters(netiodaq_requester* requester, netiodaq_responder* responder) {
    netiodaq_requester_stats asked = {.size_bytes = sizeof asked};
    CHECK_OK(netiodaq_requester_get_stats(requester, &asked));
    CHECK(asked.replied == 1 && asked.failed == 3 && asked.canceled == 1);
    CHECK(asked.outstanding == 0 && asked.connected == 1 && asked.size_bytes == sizeof asked);
    netiodaq_responder_stats answered = {.size_bytes = sizeof answered};
    CHECK_OK(netiodaq_responder_get_stats(responder, &answered));
    CHECK(answered.replied == 1 && answered.failed == 2 && answered.no_reply == 1);
    CHECK(answered.peers == 1 && answered.size_bytes == sizeof answered);
    /* An older program knows the first members only. */
    netiodaq_requester_stats older = {.size_bytes = 2 * sizeof(uint64_t), .replied = 99};
    CHECK_OK(netiodaq_requester_get_stats(requester, &older));
    CHECK(older.outstanding == 0 && older.replied == 99);
    asked.size_bytes = 0;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "size_bytes is 0",
                netiodaq_requester_get_stats(requester, &asked));
}

static int answer_all(void* responder) {
    netiodaq_request* request = NULL;
    netiodaq_result result = NETIODAQ_OK;
    while ((result = netiodaq_responder_receive((netiodaq_responder*)responder, -1, &request)) ==
           NETIODAQ_OK) {
        CHECK_OK(netiodaq_request_reply(request, netiodaq_request_data(request),
                                        netiodaq_request_size_bytes(request)));
        netiodaq_request_free(request);
    }
    CHECK(result == NETIODAQ_END && request == NULL);
    return 0;
}

/* Many open requests, and two threads that answer until the responder is closed. */
static void by_threads(netiodaq_requester* requester, netiodaq_responder* responder) {
    enum { count = 200 };
    netiodaq_reply* replies[count];
    char texts[count][8];
    thrd_t threads[2];
    for (int i = 0; i < 2; ++i)
        CHECK(thrd_create(&threads[i], answer_all, responder) == thrd_success);
    for (int i = 0; i < count; ++i) {
        snprintf(texts[i], sizeof texts[i], "%d", i);
        replies[i] = send_text(requester, texts[i]);
    }
    for (int i = 0; i < count; ++i) {
        expect(replies[i], texts[i]);
        expect_end(replies[i], NETIODAQ_END, NETIODAQ_REQUEST_REPLIED);
    }
    CHECK_OK(netiodaq_responder_close(responder));
    for (int i = 0; i < 2; ++i)
        CHECK(thrd_join(threads[i], NULL) == thrd_success);
}

static void ends_of_objects(void) {
    netiodaq_context* context = NULL;
    netiodaq_responder* responder = NULL;
    netiodaq_requester* requester = NULL;
    CHECK_OK(netiodaq_context_new(NULL, &context));
    CHECK_OK(netiodaq_responder_new(context, "127.0.0.1:0", NULL, &responder));
    CHECK_OK(
        netiodaq_requester_new(context, netiodaq_responder_address(responder), NULL, &requester));
    netiodaq_reply* reply = send_text(requester, "who is left?");
    netiodaq_request* request = receive(responder, "who is left?");
    netiodaq_reply* open = send_text(requester, "another one");
    CHECK_OK(netiodaq_requester_close(requester));
    expect_end(open, NETIODAQ_CLOSED, NETIODAQ_REQUEST_CANCELED);
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_requester_send(requester, "x", 1, deadline_ms, &open));
    CHECK(open == NULL);
    netiodaq_requester_free(requester);
    netiodaq_responder_free(responder);
    netiodaq_context_free(context);
    expect_end(reply, NETIODAQ_CLOSED, NETIODAQ_REQUEST_CANCELED);
    CHECK(netiodaq_request_size_bytes(request) == strlen("who is left?"));
    netiodaq_request_free(request);
}

static void arguments(void) {
    const void* data = NULL;
    uint64_t size = 0;
    netiodaq_requester* requester = (netiodaq_requester*)&requester;
    netiodaq_responder* responder = NULL;
    netiodaq_reply* reply = NULL;
    netiodaq_request* request = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "'nowhere' is not an address",
                netiodaq_requester_new(NULL, "nowhere", NULL, &requester));
    CHECK(requester == NULL);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "addresses is NULL",
                netiodaq_responder_new(NULL, NULL, NULL, &responder));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "netiodaq_requester_send: requester is NULL",
                netiodaq_requester_send(NULL, "", 0, 0, &reply));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "out is NULL",
                netiodaq_requester_send(NULL, "", 0, 0, NULL));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "reply is NULL",
                netiodaq_reply_next(NULL, 0, &data, &size));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "data is NULL",
                netiodaq_reply_next(NULL, 0, NULL, &size));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "responder is NULL",
                netiodaq_responder_receive(NULL, 0, &request));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "netiodaq_request_fail: request is NULL",
                netiodaq_request_fail(NULL, "why"));
    CHECK(netiodaq_reply_end(NULL) == -1 && netiodaq_responder_address(NULL) == NULL);
    CHECK(netiodaq_request_data(NULL) == NULL && netiodaq_request_size_bytes(NULL) == 0);
    CHECK(netiodaq_request_peer_address(NULL) == NULL && netiodaq_request_is_canceled(NULL) == 0);
    netiodaq_requester_free(NULL);
    netiodaq_responder_free(NULL);
    netiodaq_reply_free(NULL);
    netiodaq_request_free(NULL);

    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_REQUESTER_OPTIONS, &options));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "options of a requester, not options of a responder",
                netiodaq_responder_new(NULL, "127.0.0.1:0", options, &responder));
    /* A limit of one open request. */
    CHECK_OK(netiodaq_options_set(options, "outstanding_limit", "1"));
    CHECK_OK(netiodaq_requester_new(NULL, "127.0.0.1:9", options, &requester));
    reply = send_text(requester, "the only one");
    netiodaq_reply* second = NULL;
    CHECK_RESULT(NETIODAQ_AGAIN, netiodaq_requester_send(requester, "x", 1, 0, &second));
    netiodaq_reply_free(reply);
    CHECK_OK(netiodaq_requester_send(requester, "x", 1, 1, &reply)); /* nobody listens there */
    expect_end(reply, NETIODAQ_CLOSED, NETIODAQ_REQUEST_TIMED_OUT);
    netiodaq_requester_free(requester);
    netiodaq_options_free(options);
}

int main(void) {
    netiodaq_responder* responder = NULL;
    netiodaq_requester* requester = NULL;
    CHECK_OK(netiodaq_set_log(NULL, NULL));
    CHECK_OK(netiodaq_responder_new(NULL, "127.0.0.1:0", NULL, &responder));
    CHECK_OK(netiodaq_requester_new(NULL, netiodaq_responder_address(responder), NULL, &requester));
    netiodaq_request* none = NULL;
    CHECK_RESULT(NETIODAQ_TIMED_OUT, netiodaq_responder_receive(responder, 0, &none));
    each_end(requester, responder);
    counters(requester, responder);
    by_threads(requester, responder);
    netiodaq_requester_free(requester);
    netiodaq_responder_free(responder);
    ends_of_objects();
    arguments();
    return 0;
}
