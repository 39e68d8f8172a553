/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2: publish and subscribe sockets. */
#include "check.h"

static netiodaq_loop* loop;

static void run_until(const int* condition) {
    while (!*condition)
        CHECK_OK(netiodaq_loop_run_once(loop, deadline_ms));
}

typedef struct {
    int connected, subscribed, unsubscribed, left, completed, writable, closed;
    int32_t reason;
    uint64_t first, last, key;
    netiodaq_outcome outcome;
} at_publisher;

static void on_subscriber(netiodaq_publish_socket* socket, const char* peer, void* user) {
    CHECK(socket != NULL && strncmp(peer, "127.0.0.1:", 10) == 0);
    ++((at_publisher*)user)->connected;
}
static void on_subscribed(netiodaq_publish_socket* socket, const char* peer, uint64_t first_fid,
                          uint64_t last_fid, void* user) {
    at_publisher* to = (at_publisher*)user;
    CHECK(socket != NULL && peer != NULL);
    ++to->subscribed;
    to->first = first_fid;
    to->last = last_fid;
}
static void on_unsubscribed(netiodaq_publish_socket* socket, const char* peer, uint64_t first_fid,
                            uint64_t last_fid, void* user) {
    CHECK(socket != NULL && peer != NULL && first_fid <= last_fid);
    ++((at_publisher*)user)->unsubscribed;
}
static void on_subscriber_closed(netiodaq_publish_socket* socket, const char* peer, int32_t reason,
                                 const char* detail, void* user) {
    CHECK(socket != NULL && peer != NULL && detail != NULL && reason >= 0);
    ++((at_publisher*)user)->left;
}
static void on_completed(netiodaq_publish_socket* socket, uint64_t key,
                         const netiodaq_outcome* outcome, void* user) {
    at_publisher* to = (at_publisher*)user;
    CHECK(socket != NULL);
    ++to->completed;
    to->key = key;
    to->outcome = *outcome;
}
static void on_writable(netiodaq_publish_socket* socket, void* user) {
    CHECK(socket != NULL);
    ++((at_publisher*)user)->writable;
}
static void on_publisher_closed(netiodaq_publish_socket* socket, int32_t reason, const char* detail,
                                void* user) {
    CHECK(detail != NULL);
    ++((at_publisher*)user)->closed;
    ((at_publisher*)user)->reason = reason;
    netiodaq_publish_socket_free(socket); /* in its own callback */
}

static netiodaq_publish_callbacks publish_callbacks(at_publisher* user) {
    return (netiodaq_publish_callbacks){.size_bytes = sizeof(netiodaq_publish_callbacks),
                                        .user = user,
                                        .on_subscriber_connected = on_subscriber,
                                        .on_subscribed = on_subscribed,
                                        .on_unsubscribed = on_unsubscribed,
                                        .on_subscriber_closed = on_subscriber_closed,
                                        .on_publish_completed = on_completed,
                                        .on_writable = on_writable,
                                        .on_closed = on_publisher_closed};
}

typedef struct {
    int connected, subscribed, unsubscribed, refused, received, closed, changed;
    int32_t reason;
    uint64_t lost, fid, size;
    uint8_t status;
    char begin[8];
    netiodaq_message* kept;
    int close_in_message, free_in_message;
} at_subscriber;

static void on_connected(netiodaq_subscribe_socket* socket, void* user) {
    CHECK(netiodaq_subscribe_socket_is_connected(socket) == 1);
    ++((at_subscriber*)user)->connected;
}
static void on_accepted(netiodaq_subscribe_socket* socket, uint64_t first_fid, uint64_t last_fid,
                        void* user) {
    CHECK(socket != NULL && first_fid <= last_fid);
    ++((at_subscriber*)user)->subscribed;
}
static void on_ended(netiodaq_subscribe_socket* socket, uint64_t first_fid, uint64_t last_fid,
                     void* user) {
    CHECK(socket != NULL && first_fid <= last_fid);
    ++((at_subscriber*)user)->unsubscribed;
}
static void on_refused(netiodaq_subscribe_socket* socket, uint64_t first_fid, uint64_t last_fid,
                       void* user) {
    CHECK(socket != NULL && first_fid <= last_fid);
    ++((at_subscriber*)user)->refused;
}
static void on_message(netiodaq_subscribe_socket* socket, uint64_t fid, const void* data,
                       uint64_t size_bytes, uint8_t status, void* user) {
    at_subscriber* to = (at_subscriber*)user;
    ++to->received;
    to->fid = fid;
    to->size = size_bytes;
    to->status = status;
    memcpy(to->begin, data, size_bytes < 8 ? size_bytes : 8);
    netiodaq_message_free(to->kept);
    CHECK_OK(netiodaq_subscribe_socket_keep(socket, data, size_bytes, &to->kept));
    netiodaq_message* wrong = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "not within the message",
                netiodaq_subscribe_socket_keep(socket, "elsewhere", 1, &wrong));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "not within the message",
                netiodaq_subscribe_socket_keep(socket, data, size_bytes + 1, &wrong));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "no memory is so large",
                netiodaq_subscribe_socket_keep(socket, data, UINT64_MAX, &wrong));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "not within the message",
                netiodaq_subscribe_socket_keep(socket, data, INT64_MAX, &wrong));
    if (to->close_in_message) CHECK_OK(netiodaq_subscribe_socket_close(socket));
    if (to->free_in_message) netiodaq_subscribe_socket_free(socket);
}
static void on_lost(netiodaq_subscribe_socket* socket, uint64_t fid, uint64_t count, void* user) {
    CHECK(socket != NULL && fid > 0);
    ((at_subscriber*)user)->lost += count;
}
static void on_changed(netiodaq_subscribe_socket* socket, void* user) {
    CHECK(socket != NULL);
    ++((at_subscriber*)user)->changed;
}
static void on_closed(netiodaq_subscribe_socket* socket, int32_t reason, const char* detail,
                      int32_t retrying, void* user) {
    CHECK(socket != NULL && detail != NULL);
    ((at_subscriber*)user)->closed += retrying == 0;
    ((at_subscriber*)user)->reason = reason;
}

static netiodaq_subscribe_socket* subscribed(const netiodaq_publish_socket* to,
                                             const netiodaq_options* options, at_subscriber* user) {
    netiodaq_subscribe_socket* socket = NULL;
    const netiodaq_subscribe_callbacks callbacks = {.size_bytes = sizeof callbacks,
                                                    .user = user,
                                                    .on_connected = on_connected,
                                                    .on_subscribed = on_accepted,
                                                    .on_unsubscribed = on_ended,
                                                    .on_refused = on_refused,
                                                    .on_message = on_message,
                                                    .on_lost = on_lost,
                                                    .on_publisher_changed = on_changed,
                                                    .on_closed = on_closed};
    CHECK_OK(netiodaq_subscribe_socket_new(loop, netiodaq_publish_socket_address(to), options,
                                           &callbacks, &socket));
    CHECK_OK(netiodaq_subscribe_socket_subscribe(socket, 1, 5, NETIODAQ_POLICY_DEFAULT));
    run_until(&user->subscribed);
    CHECK(user->connected == 1);
    return socket;
}

static void copies(void) {
    static at_publisher at;
    static at_subscriber to, other;
    const netiodaq_publish_callbacks callbacks = publish_callbacks(&at);
    netiodaq_publish_socket* publisher = NULL;
    netiodaq_message* message = NULL;
    CHECK_OK(
        netiodaq_publish_socket_new_buffered(loop, "127.0.0.1:0", NULL, &callbacks, &publisher));
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS,
                 netiodaq_publish_socket_publish_copy(publisher, 1, "x", 1, 0));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "the socket is buffered",
                netiodaq_publish_socket_publishv(publisher, 1, NULL, 0, 1, 0, NULL, 0));
    netiodaq_subscribe_socket* subscriber = subscribed(publisher, NULL, &to);
    CHECK(at.connected == 1 && at.subscribed == 1 && at.first == 1 && at.last == 5);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "within its on_message only",
                netiodaq_subscribe_socket_keep(subscriber, "x", 1, &message));
    CHECK_OK(netiodaq_publish_socket_publish_copy(publisher, 3, "text", 4, 17));
    CHECK_OK(netiodaq_publish_socket_flush(publisher));
    run_until(&to.received);
    CHECK(to.fid == 3 && to.size == 4 && to.status == 17 && memcmp(to.begin, "text", 4) == 0);
    CHECK(netiodaq_message_fid(to.kept) == 3 && netiodaq_message_status(to.kept) == 17);

    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "ends before it begins",
                netiodaq_subscribe_socket_subscribe(subscriber, 5, 3, NETIODAQ_POLICY_DEFAULT));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_subscribe_socket_subscribe(subscriber, 1, 3, 9));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_subscribe_socket_unsubscribe(subscriber, 5, 3));
    CHECK_OK(netiodaq_subscribe_socket_unsubscribe(subscriber, 5, 5));
    run_until(&to.unsubscribed);
    run_until(&at.unsubscribed);

    /* One closes, another one frees itself, each within its on_message. */
    to.close_in_message = 1;
    other.free_in_message = 1;
    subscribed(publisher, NULL, &other);
    CHECK_OK(netiodaq_publish_socket_publish_copy(publisher, 4, "end", 3, 0));
    run_until(&other.received);
    run_until(&to.closed);
    CHECK(to.reason == NETIODAQ_CLOSE_ORDERLY && to.received == 2);
    netiodaq_subscribe_socket_free(subscriber);
    while (at.left < 2)
        CHECK_OK(netiodaq_loop_run_once(loop, deadline_ms));
    CHECK(other.closed == 0); /* freed: no event follows */
    CHECK_OK(netiodaq_publish_socket_close(publisher));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_publish_socket_publish_copy(publisher, 3, "x", 1, 0));
    run_until(&at.closed);
    CHECK(at.reason == NETIODAQ_CLOSE_ORDERLY);
    CHECK(memcmp(netiodaq_message_data(to.kept), "end", 3) == 0);
    netiodaq_message_free(to.kept);
    netiodaq_message_free(other.kept);
}

static void zero_copy(void) {
    static at_publisher at;
    static at_subscriber to;
    static char memory[400000];
    const netiodaq_publish_callbacks callbacks = publish_callbacks(&at);
    netiodaq_publish_socket* publisher = NULL;
    netiodaq_buffer* buffer = NULL;
    netiodaq_ticket* ticket = NULL;
    CHECK_OK(netiodaq_buffer_new_of_memory(loop, memory, sizeof memory, &buffer));
    CHECK(netiodaq_buffer_data(buffer) == (void*)memory);
    CHECK_OK(netiodaq_publish_socket_new(loop, "127.0.0.1:0", NULL, &callbacks, &publisher));
    CHECK_OK(netiodaq_publish_socket_prepare(publisher, buffer));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "the socket is not buffered",
                netiodaq_publish_socket_publish_copy(publisher, 1, "x", 1, 0));
    netiodaq_slice slice = {buffer, 10, sizeof memory - 10};
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS,
                 netiodaq_publish_socket_publishv(publisher, 1, &slice, 1, 7, 0, NULL, 0));
    netiodaq_subscribe_socket* subscriber = subscribed(publisher, NULL, &to);
    memset(memory, 'z', sizeof memory);
    CHECK_OK(netiodaq_publish_socket_publishv(publisher, 1, &slice, 1, 7, 3, "12345678", 8));
    run_until(&to.received);
    run_until(&at.completed);
    CHECK(at.key == 7 && at.outcome.sent == 1 && at.outcome.lost == 0 && at.outcome.dropped == 0);
    CHECK(to.size == 8 + sizeof memory - 10 && to.status == 3);
    CHECK(memcmp(to.begin, "12345678", 8) == 0);
    CHECK(((const char*)netiodaq_message_data(to.kept))[8] == 'z');

    CHECK_RESULT(NETIODAQ_TOO_LARGE,
                 netiodaq_publish_socket_publishv(publisher, 1, &slice, 1, 7, 0, "123456789", 9));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_publish_socket_publishv(publisher, 1, NULL, 1, 7, 0, NULL, 0));
    netiodaq_slice many[29] = {{buffer, 0, 1}};
    CHECK_RESULT(NETIODAQ_TOO_MANY_SEGMENTS,
                 netiodaq_publish_socket_publishv(publisher, 1, many, 29, 7, 0, NULL, 0));
    CHECK_RESULT(NETIODAQ_TOO_MANY_SEGMENTS, netiodaq_publish_socket_try_publishv(
                                                 publisher, 1, many, 29, 7, 0, NULL, 0, &ticket));
    at.completed = 0;
    CHECK_OK(netiodaq_publish_socket_try_publishv(publisher, 1, &slice, 1, 8, 0, NULL, 0, &ticket));
    CHECK(ticket == NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publish_socket_resume(publisher, NULL));
    run_until(&at.completed);
    CHECK(at.key == 8);
    CHECK_OK(netiodaq_subscribe_socket_abort(subscriber));
    run_until(&to.closed);
    CHECK(to.reason == NETIODAQ_CLOSE_LOCAL);
    netiodaq_subscribe_socket_free(subscriber);
    run_until(&at.left);
    CHECK_OK(netiodaq_publish_socket_abort(publisher));
    run_until(&at.closed);
    netiodaq_buffer_free(buffer);
    netiodaq_message_free(to.kept);
}

/* One of two subscribers cannot accept a message: a ticket for the rest. */
static void partial(void) {
    static at_publisher at;
    static at_subscriber quick, slow;
    const netiodaq_publish_callbacks callbacks = publish_callbacks(&at);
    netiodaq_publish_socket* publisher = NULL;
    netiodaq_buffer* buffer = NULL;
    netiodaq_options* few = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_SUBSCRIBE_SOCKET_OPTIONS, &few));
    CHECK_OK(netiodaq_options_set(few, "session.receive_count", "4"));
    CHECK_OK(netiodaq_options_set(few, "session.window_limit", "0"));
    CHECK_OK(netiodaq_buffer_new(loop, 100000, &buffer));
    CHECK_OK(netiodaq_publish_socket_new(loop, "127.0.0.1:0", NULL, &callbacks, &publisher));
    netiodaq_subscribe_socket* one = subscribed(publisher, NULL, &quick);
    netiodaq_subscribe_socket* two = subscribed(publisher, few, &slow);
    netiodaq_options_free(few);
    CHECK_OK(netiodaq_subscribe_socket_pause(two));
    netiodaq_slice slice = {buffer, 0, 100000};
    netiodaq_ticket* ticket = NULL;
    netiodaq_result result = NETIODAQ_OK;
    int published = 0;
    while (result == NETIODAQ_OK) {
        result =
            netiodaq_publish_socket_try_publishv(publisher, 1, &slice, 1, 1, 0, NULL, 0, &ticket);
        ++published;
        CHECK_OK(netiodaq_loop_run_once(loop, 0));
    }
    CHECK_RESULT(NETIODAQ_PARTIAL, result);
    CHECK_RESULT(NETIODAQ_PARTIAL, netiodaq_publish_socket_resume(publisher, ticket));
    netiodaq_ticket* second = ticket;
    CHECK_RESULT(NETIODAQ_AGAIN, netiodaq_publish_socket_try_publishv(publisher, 1, &slice, 1, 1, 0,
                                                                      NULL, 0, &second));
    CHECK(second == NULL);
    CHECK_OK(netiodaq_subscribe_socket_resume(two));
    while ((result = netiodaq_publish_socket_resume(publisher, ticket)) == NETIODAQ_PARTIAL) {
        at.writable = 0;
        run_until(&at.writable);
    }
    CHECK_OK(result);
    CHECK_RESULT(NETIODAQ_STALE_TICKET, netiodaq_publish_socket_resume(publisher, ticket));
    netiodaq_ticket_free(ticket);
    netiodaq_ticket_free(NULL);
    while (quick.received < published || slow.received < published || at.completed < published)
        CHECK_OK(netiodaq_loop_run_once(loop, deadline_ms));
    netiodaq_subscribe_socket_free(one);
    netiodaq_subscribe_socket_free(two);
    netiodaq_publish_socket_free(publisher);
    netiodaq_buffer_free(buffer);
    netiodaq_message_free(quick.kept);
    netiodaq_message_free(slow.kept);
}

static void refusals(void) {
    static at_publisher at;
    static at_subscriber to;
    netiodaq_publish_callbacks callbacks = publish_callbacks(&at);
    netiodaq_publish_socket *publisher = NULL, *second = NULL;
    netiodaq_subscribe_socket* subscriber = NULL;
    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_BUFFERED_PUBLISH_SOCKET_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "publisher.slow_policy", "drop"));
    CHECK_OK(netiodaq_options_set(options, "publisher.fids", "1-3,7"));
    CHECK_OK(
        netiodaq_publish_socket_new_buffered(loop, "127.0.0.1:0", options, &callbacks, &publisher));
    CHECK_RESULT(NETIODAQ_NOT_OWNED, netiodaq_publish_socket_publish_copy(publisher, 4, "x", 1, 0));
    CHECK_FAILS(NETIODAQ_NETWORK_ERROR, netiodaq_publish_socket_address(publisher),
                netiodaq_publish_socket_new(loop, netiodaq_publish_socket_address(publisher), NULL,
                                            &callbacks, &second));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "not options of an unbuffered publish socket",
                netiodaq_publish_socket_new(loop, "127.0.0.1:0", options, &callbacks, &second));
    netiodaq_options_free(options);
    subscriber = subscribed(publisher, NULL, &to);
    CHECK_OK(netiodaq_subscribe_socket_subscribe(subscriber, 7, 7, NETIODAQ_POLICY_BLOCK));
    run_until(&to.refused);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publish_socket_prepare(NULL, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_publish_socket_publish_copy(NULL, 1, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_publish_socket_publishv(NULL, 1, NULL, 0, 1, 0, NULL, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_publish_socket_try_publishv(NULL, 1, NULL, 0, 1, 0, NULL, 0, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publish_socket_flush(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publish_socket_close(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publish_socket_abort(NULL));
    CHECK(netiodaq_publish_socket_address(NULL) == NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_publish_socket_new(NULL, "127.0.0.1:0", NULL, &callbacks, &second));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_subscribe(NULL, 1, 1, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_unsubscribe(NULL, 1, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_pause(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_resume(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_close(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscribe_socket_abort(NULL));
    CHECK(netiodaq_subscribe_socket_is_connected(NULL) == 0);
    netiodaq_subscribe_socket_free(NULL);
    netiodaq_subscribe_socket_free(subscriber);
    netiodaq_publish_socket_free(NULL);
    netiodaq_publish_socket_free(publisher);
}

/* The subscriber reconnects to another publisher at the same address, and learns it. */
static void another_publisher(void) {
    static at_publisher at;
    static at_subscriber to;
    const netiodaq_publish_callbacks callbacks = publish_callbacks(&at);
    netiodaq_publish_socket* publisher = NULL;
    netiodaq_options* options = NULL;
    char address[64];
    CHECK_OK(netiodaq_options_new(NETIODAQ_SUBSCRIBE_SOCKET_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "reconnect", "true"));
    CHECK_OK(netiodaq_options_set(options, "retry_interval", "1ms"));
    CHECK_OK(
        netiodaq_publish_socket_new_buffered(loop, "127.0.0.1:0", NULL, &callbacks, &publisher));
    snprintf(address, sizeof address, "%s", netiodaq_publish_socket_address(publisher));
    netiodaq_subscribe_socket* subscriber = subscribed(publisher, options, &to);
    netiodaq_options_free(options);
    netiodaq_publish_socket_free(publisher);
    CHECK_OK(netiodaq_publish_socket_new(loop, address, NULL, &callbacks, &publisher));
    run_until(&to.changed);
    CHECK(to.closed == 0);
    netiodaq_subscribe_socket_free(subscriber);
    netiodaq_publish_socket_free(publisher);
}

int main(void) {
    CHECK_OK(netiodaq_set_log(NULL, NULL));
    CHECK_OK(netiodaq_loop_new(NULL, &loop));
    copies();
    zero_copy();
    partial();
    refusals();
    another_publisher();
    netiodaq_loop_free(loop);
    return 0;
}
