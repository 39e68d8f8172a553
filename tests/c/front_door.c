/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1: publisher, subscriber, sender: what each function does, and each error.
 * front_door BUS_FOLDER */
#include "check.h"

#include <poll.h>
#include <threads.h>

static void texts(void) {
    for (netiodaq_result result = NETIODAQ_FAILED; result <= NETIODAQ_PARTIAL; ++result)
        CHECK(strcmp(netiodaq_error_text(result), "unknown result") != 0);
    CHECK(strcmp(netiodaq_error_text(99), "unknown result") == 0);
    CHECK(strcmp(netiodaq_close_reason_text(NETIODAQ_CLOSE_ORDERLY), "closed in order") == 0);
    CHECK(strcmp(netiodaq_close_reason_text(NETIODAQ_CLOSE_FAILED), "failed") == 0);
    CHECK(strcmp(netiodaq_close_reason_text(-1), "unknown reason") == 0);
    CHECK(strcmp(netiodaq_close_reason_text(14), "unknown reason") == 0);
    CHECK(netiodaq_version()[0] != '\0');
    CHECK(netiodaq_last_error()[0] == '\0'); /* nothing has failed yet */
}

static netiodaq_options* new_options(int32_t kind) {
    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(kind, &options));
    return options;
}

static void options(void) {
    netiodaq_options* options = (netiodaq_options*)&options;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "netiodaq_options_new: there is no kind 77",
                netiodaq_options_new(77, &options));
    CHECK(options == NULL);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "out is NULL",
                netiodaq_options_new(NETIODAQ_PUBLISHER_OPTIONS, NULL));
    for (int32_t kind = NETIODAQ_LOOP_OPTIONS; kind <= NETIODAQ_RESPONDER_OPTIONS; ++kind) {
        uint64_t count = 0;
        options = new_options(kind);
        while (netiodaq_options_name(kind, count) != NULL) {
            /* No option accepts this, except those that are texts. */
            const char* name = netiodaq_options_name(kind, count++);
            const netiodaq_result result = netiodaq_options_set(options, name, "?");
            CHECK(result == NETIODAQ_OK || strstr(netiodaq_last_error(), name) != NULL ||
                  strstr(netiodaq_last_error(), "is not an address") != NULL);
        }
        CHECK(count > 10);
        netiodaq_options_free(options);
    }
    CHECK(netiodaq_options_name(77, 0) == NULL);

    options = new_options(NETIODAQ_PUBLISHER_OPTIONS);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "(did you mean 'queue_limit_bytes'?)",
                netiodaq_options_set(options, "queue_limit_byte", "4MiB"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "queue_limit_bytes is '4Mx'; it must be a size",
                netiodaq_options_set(options, "queue_limit_bytes", "4Mx"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "a time with its unit",
                netiodaq_options_set(options, "close_timeout", "10"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "a whole number of milliseconds",
                netiodaq_options_set(options, "close_timeout", "10us"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "one of block, drop, disconnect, newest",
                netiodaq_options_set(options, "slow_policy", "wait"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "true or false",
                netiodaq_options_set(options, "allow_remote_anonymous", "yes"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "fids, such as",
                netiodaq_options_set(options, "fids", "5-3"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "value is NULL",
                netiodaq_options_set(options, "fids", NULL));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "name is NULL", netiodaq_options_set(options, NULL, ""));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "options is NULL", netiodaq_options_set(NULL, "", ""));
    CHECK_OK(netiodaq_options_set(options, "socket.publisher.session.heartbeat", "500ms"));
    CHECK_OK(netiodaq_options_set(options, "socket.page_count", "0"));
    netiodaq_publisher* publisher = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "page_count is 0; it must be",
                netiodaq_publisher_new(NULL, "127.0.0.1:0", options, &publisher));
    netiodaq_sender* sender = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "options of a publisher, not options of a sender",
                netiodaq_sender_new(NULL, "127.0.0.1:1", options, &sender));
    netiodaq_options_free(options);
    netiodaq_options_free(NULL);
}

static netiodaq_publisher* new_publisher(const netiodaq_options* options) {
    netiodaq_publisher* publisher = NULL;
    CHECK_OK(netiodaq_publisher_new(NULL, "127.0.0.1:0", options, &publisher));
    return publisher;
}

static netiodaq_subscriber* new_subscriber(const netiodaq_publisher* to,
                                           const netiodaq_options* options) {
    netiodaq_subscriber* subscriber = NULL;
    CHECK_OK(netiodaq_subscriber_new(NULL, netiodaq_publisher_address(to), options, &subscriber));
    CHECK_OK(netiodaq_subscriber_subscribe(subscriber, 1, 5));
    CHECK_OK(netiodaq_subscriber_wait_until_subscribed(subscriber, deadline_ms));
    return subscriber;
}

static void wrong_publishers(void) {
    netiodaq_publisher* publisher = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "addresses is NULL",
                netiodaq_publisher_new(NULL, NULL, NULL, &publisher));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "'nonsense' is not an address",
                netiodaq_publisher_new(NULL, "nonsense", NULL, &publisher));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "out is NULL",
                netiodaq_publisher_new(NULL, "127.0.0.1:0", NULL, NULL));
    netiodaq_publisher* first = new_publisher(NULL);
    CHECK_FAILS(NETIODAQ_NETWORK_ERROR, netiodaq_publisher_address(first),
                netiodaq_publisher_new(NULL, netiodaq_publisher_address(first), NULL, &publisher));
    CHECK(publisher == NULL);
    CHECK(strchr(netiodaq_last_error(), '\n') == NULL);

    CHECK_FAILS(NETIODAQ_TIMED_OUT, "0 of 1 subscribers",
                netiodaq_publisher_wait_for_subscribers(first, 1, 1));
    CHECK(netiodaq_publisher_is_closed(first) == 0);
    CHECK_OK(netiodaq_publisher_close(first));
    CHECK(netiodaq_publisher_is_closed(first) == 1);
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_publisher_wait_for_subscribers(first, 1, 1));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_publisher_publish(first, 1, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_publisher_try_publish(first, 1, "x", 1, 0));
    netiodaq_publisher_free(first);

    netiodaq_options* options = new_options(NETIODAQ_PUBLISHER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "keys.file", "no-such-file.keys"));
    CHECK_FAILS(NETIODAQ_FAILED, "no-such-file.keys",
                netiodaq_publisher_new(NULL, "127.0.0.1:0", options, &publisher));
    netiodaq_options_free(options);

    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "netiodaq_publisher_publish: publisher is NULL",
                netiodaq_publisher_publish(NULL, 1, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publisher_try_publish(NULL, 1, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publisher_wait_for_subscribers(NULL, 1, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publisher_close(NULL));
    CHECK(netiodaq_publisher_is_closed(NULL) == 0 && netiodaq_publisher_address(NULL) == NULL);
    netiodaq_publisher_free(NULL);
}

static void messages(void) {
    static char bytes[100000];
    const uint64_t sizes[] = {0, 1, 40, 9000, sizeof bytes};
    memset(bytes, 'm', sizeof bytes);
    netiodaq_publisher* publisher = new_publisher(NULL);
    netiodaq_subscriber* subscriber = new_subscriber(publisher, NULL);
    netiodaq_message* message = NULL;
    CHECK_FAILS(NETIODAQ_TIMED_OUT, "timed out",
                netiodaq_subscriber_receive(subscriber, 0, &message));
    CHECK_OK(netiodaq_publisher_wait_for_subscribers(publisher, 1, deadline_ms));
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS, netiodaq_publisher_publish(publisher, 99, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS, netiodaq_publisher_try_publish(publisher, 99, "x", 1, 0));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "data is NULL",
                netiodaq_publisher_publish(publisher, 1, NULL, 1, 0));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        CHECK_OK(netiodaq_publisher_publish(publisher, 1 + i, bytes, sizes[i], (uint8_t)(200 + i)));
    netiodaq_message* kept[sizeof sizes / sizeof *sizes];
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i)
        CHECK_OK(netiodaq_subscriber_receive(subscriber, deadline_ms, &kept[i]));

    CHECK_OK(netiodaq_publisher_close(publisher));
    CHECK_RESULT(NETIODAQ_END, netiodaq_subscriber_receive(subscriber, deadline_ms, &message));
    CHECK(message == NULL && netiodaq_subscriber_is_closed(subscriber) == 1);

    netiodaq_publisher_stats published = {.size_bytes = sizeof published};
    CHECK_OK(netiodaq_publisher_get_stats(publisher, &published));
    CHECK(published.published == 7 && published.without_subscribers == 2 &&
          published.subscribers == 0 && published.size_bytes == sizeof published);
    netiodaq_subscriber_stats received = {.size_bytes = 2 * sizeof(uint64_t), .lost = 77};
    CHECK_OK(netiodaq_subscriber_get_stats(subscriber, &received));
    CHECK(received.messages == 5 && received.lost == 77); /* beyond the size: not touched */
    received.size_bytes = 0;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "stats->size_bytes is 0",
                netiodaq_subscriber_get_stats(subscriber, &received));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publisher_get_stats(publisher, NULL));

    CHECK_OK(netiodaq_subscriber_close(subscriber));
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) { /* they outlive the subscriber */
        CHECK(netiodaq_message_fid(kept[i]) == 1 + i &&
              netiodaq_message_status(kept[i]) == 200 + i);
        CHECK(netiodaq_message_size_bytes(kept[i]) == sizes[i]);
        CHECK(sizes[i] == 0 || memcmp(netiodaq_message_data(kept[i]), bytes, sizes[i]) == 0);
        CHECK(netiodaq_message_lost_before(kept[i]) == 0);
        netiodaq_message_free(kept[i]);
    }
    CHECK(netiodaq_message_data(NULL) == NULL && netiodaq_message_size_bytes(NULL) == 0 &&
          netiodaq_message_fid(NULL) == 0 && netiodaq_message_status(NULL) == 0 &&
          netiodaq_message_lost_before(NULL) == 0);
    netiodaq_message_free(NULL);
}

static void batches(void) {
    enum { messages = 10000 };
    netiodaq_context* context = NULL;
    CHECK_OK(netiodaq_context_new(NULL, &context));
    netiodaq_publisher* publisher = NULL;
    CHECK_OK(netiodaq_publisher_new(context, "127.0.0.1:0", NULL, &publisher));
    netiodaq_subscriber* subscriber = NULL;
    CHECK_OK(
        netiodaq_subscriber_new(context, netiodaq_publisher_address(publisher), NULL, &subscriber));
    netiodaq_context_free(context); /* publisher and subscriber still use it */
    CHECK_OK(netiodaq_subscriber_subscribe(subscriber, 1, 5));
    CHECK_OK(netiodaq_subscriber_wait_until_subscribed(subscriber, -1));
    netiodaq_batch* batch = NULL;
    CHECK_OK(netiodaq_batch_new(&batch));
    CHECK_RESULT(NETIODAQ_TIMED_OUT, netiodaq_subscriber_receive_batch(subscriber, 0, batch));
    CHECK(netiodaq_batch_count(batch) == 0);
    uint64_t next = 0;
    for (uint64_t i = 0; i < messages; ++i)
        CHECK_OK(netiodaq_publisher_publish(publisher, 2, &i, sizeof i, 0));
    while (next < messages) {
        struct pollfd waiting = {.fd = netiodaq_subscriber_fd(subscriber), .events = POLLIN};
        CHECK(poll(&waiting, 1, deadline_ms) == 1);
        while (netiodaq_subscriber_receive_batch(subscriber, 0, batch) == NETIODAQ_OK) {
            const netiodaq_item* items = netiodaq_batch_items(batch);
            for (uint64_t i = 0; i < netiodaq_batch_count(batch); ++i) {
                CHECK(items[i].fid == 2 && items[i].size_bytes == sizeof next &&
                      items[i].lost_before == 0 && items[i].is_gap == 0);
                CHECK(memcmp(items[i].data, &next, sizeof next) == 0);
                ++next;
            }
        }
    }
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_receive_batch(subscriber, 0, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_receive_batch(NULL, 0, batch));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_batch_new(NULL));
    CHECK(netiodaq_batch_count(NULL) == 0 && netiodaq_batch_items(NULL) == NULL);
    CHECK(netiodaq_subscriber_fd(NULL) == -1);
    CHECK_OK(netiodaq_subscriber_unsubscribe(subscriber, 1, 5));
    netiodaq_batch_free(batch);
    netiodaq_batch_free(NULL);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
}

static void limits(void) {
    static char bytes[70000];
    netiodaq_options* options = new_options(NETIODAQ_PUBLISHER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "fids", "0-63, 0x80"));
    CHECK_OK(netiodaq_options_set(options, "publish_timeout", "1ms"));
    CHECK_OK(netiodaq_options_set(options, "queue_limit_bytes", "128KiB"));
    CHECK_OK(netiodaq_options_set(options, "close_timeout", "10ms"));
    CHECK_OK(netiodaq_options_set(options, "socket.page_size_bytes", "32KiB"));
    CHECK_OK(netiodaq_options_set(options, "socket.page_count", "16"));
    CHECK_OK(netiodaq_options_set(options, "socket.publisher.largest_message_bytes", "64KiB"));
    netiodaq_publisher* publisher = new_publisher(options);
    netiodaq_options_free(options);
    CHECK_RESULT(NETIODAQ_NOT_OWNED, netiodaq_publisher_try_publish(publisher, 64, "x", 1, 0));
    CHECK_FAILS(NETIODAQ_NOT_OWNED, "0x40", netiodaq_publisher_publish(publisher, 64, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS, netiodaq_publisher_publish(publisher, 128, "x", 1, 0));

    options = new_options(NETIODAQ_SUBSCRIBER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "queue_limit_messages", "1"));
    CHECK_OK(netiodaq_options_set(options, "socket.session.receive_count", "4"));
    netiodaq_subscriber* subscriber = new_subscriber(publisher, options);
    netiodaq_options_free(options);
    CHECK_RESULT(NETIODAQ_TOO_LARGE,
                 netiodaq_publisher_try_publish(publisher, 1, bytes, sizeof bytes, 0));
    CHECK_FAILS(NETIODAQ_TOO_LARGE, "65536",
                netiodaq_publisher_publish(publisher, 1, bytes, sizeof bytes, 0));
    /* Nothing is received, so publishing has to stop. */
    netiodaq_result result = NETIODAQ_OK;
    for (int i = 0; i < 100000 && result == NETIODAQ_OK; ++i)
        result = netiodaq_publisher_try_publish(publisher, 1, bytes, 10000, 0);
    CHECK(result == NETIODAQ_AGAIN);
    do {
        result = netiodaq_publisher_publish(publisher, 1, bytes, 10000, 0);
    } while (result == NETIODAQ_OK);
    CHECK(result == NETIODAQ_AGAIN && strlen(netiodaq_last_error()) > 20);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
}

static void refused(void) {
    netiodaq_options* options = new_options(NETIODAQ_PUBLISHER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "slow_policy", "drop"));
    netiodaq_publisher* publisher = new_publisher(options);
    netiodaq_options_free(options);
    netiodaq_subscriber* subscriber = NULL;
    CHECK_OK(
        netiodaq_subscriber_new(NULL, netiodaq_publisher_address(publisher), NULL, &subscriber));
    CHECK_OK(netiodaq_subscriber_subscribe_with_policy(subscriber, 1, 1, NETIODAQ_POLICY_NEWEST));
    CHECK_OK(netiodaq_subscriber_wait_until_subscribed(subscriber, deadline_ms));
    CHECK_OK(netiodaq_subscriber_subscribe_with_policy(subscriber, 2, 2, NETIODAQ_POLICY_BLOCK));
    netiodaq_message* message = NULL;
    CHECK_RESULT(NETIODAQ_TIMED_OUT,
                 netiodaq_subscriber_wait_until_subscribed(subscriber, deadline_ms));
    CHECK_FAILS(NETIODAQ_CLOSED, "0x2", netiodaq_subscriber_receive(subscriber, -1, &message));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "there is no policy 9",
                netiodaq_subscriber_subscribe_with_policy(subscriber, 1, 1, 9));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_subscribe(subscriber, 5, 3));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_subscribe(NULL, 1, 3));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_unsubscribe(NULL, 1, 3));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_wait_until_subscribed(NULL, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_receive(NULL, 1, &message));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_receive(subscriber, 1, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_subscriber_close(NULL));
    CHECK(netiodaq_subscriber_is_closed(NULL) == 0);
    netiodaq_subscriber_free(NULL);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
}

static void bus(const char* folder) {
    netiodaq_subscriber* subscriber = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "either addresses or the option bus.where",
                netiodaq_subscriber_new(NULL, NULL, NULL, &subscriber));
    netiodaq_options* of_publisher = new_options(NETIODAQ_PUBLISHER_OPTIONS);
    netiodaq_options* of_subscriber = new_options(NETIODAQ_SUBSCRIBER_OPTIONS);
    CHECK_OK(netiodaq_options_set(of_publisher, "bus.where", folder));
    CHECK_OK(netiodaq_options_set(of_publisher, "fids", "1-5"));
    CHECK_OK(netiodaq_options_set(of_subscriber, "bus.where", folder));
    CHECK_OK(netiodaq_options_set(of_subscriber, "bus.poll", "10ms"));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "either addresses or the option bus.where",
                netiodaq_subscriber_new(NULL, "127.0.0.1:1", of_subscriber, &subscriber));
    netiodaq_publisher* publisher = new_publisher(of_publisher);
    CHECK_OK(netiodaq_subscriber_new(NULL, NULL, of_subscriber, &subscriber));
    CHECK_OK(netiodaq_subscriber_subscribe(subscriber, 3, 3));
    CHECK_OK(netiodaq_subscriber_wait_until_subscribed(subscriber, deadline_ms));
    CHECK_OK(netiodaq_publisher_publish(publisher, 3, "found", 5, 0));
    netiodaq_message* message = NULL;
    CHECK_OK(netiodaq_subscriber_receive(subscriber, deadline_ms, &message));
    CHECK(memcmp(netiodaq_message_data(message), "found", 5) == 0);
    netiodaq_message_free(message);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
    netiodaq_options_free(of_publisher);
    netiodaq_options_free(of_subscriber);
}

static void senders(void) {
    netiodaq_sender* sender = NULL;
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_sender_new(NULL, "127.0.0.1:1,127.0.0.1:2", NULL, &sender));
    netiodaq_options* options = new_options(NETIODAQ_SENDER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "send_timeout", "1ms"));
    CHECK_OK(netiodaq_options_set(options, "queue_limit_bytes", "4KiB"));
    CHECK_OK(netiodaq_options_set(options, "close_timeout", "1ms"));
    CHECK_OK(
        netiodaq_sender_new(NULL, "127.0.0.1:1", options, &sender)); /* no socket listens there */
    netiodaq_options_free(options);
    static const char bytes[1000];
    netiodaq_result result = NETIODAQ_OK;
    while (result == NETIODAQ_OK)
        result = netiodaq_sender_try_send(sender, bytes, sizeof bytes);
    CHECK(result == NETIODAQ_AGAIN);
    CHECK_RESULT(NETIODAQ_AGAIN, netiodaq_sender_send(sender, bytes, sizeof bytes));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_sender_send(NULL, bytes, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_sender_try_send(NULL, bytes, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_sender_close(NULL));
    CHECK_OK(netiodaq_sender_close(sender));
    CHECK(netiodaq_sender_is_closed(sender) == 1 && netiodaq_sender_is_closed(NULL) == 0);
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_sender_send(sender, bytes, 1));
    netiodaq_sender_stats stats = {.size_bytes = sizeof stats};
    CHECK_OK(netiodaq_sender_get_stats(sender, &stats));
    CHECK(stats.sent == 0 && stats.unsent > 0 && stats.connected == 0);
    netiodaq_sender_free(sender);
    netiodaq_sender_free(NULL);
}

/* --- threads ------------------------------------------------------------------------------------
 */

enum { threads = 4, messages_per_thread = 2000 };

static int publish_some(void* publisher) {
    for (uint64_t i = 0; i < messages_per_thread; ++i)
        CHECK_OK(
            netiodaq_publisher_publish((netiodaq_publisher*)publisher, 1 + i % 5, &i, sizeof i, 0));
    /* Each thread has its own last error. */
    CHECK(netiodaq_last_error()[0] == '\0');
    return 0;
}

static int receive_all(void* subscriber) {
    int count = 0;
    netiodaq_message* message = NULL;
    netiodaq_result result;
    while ((result = netiodaq_subscriber_receive((netiodaq_subscriber*)subscriber, -1, &message)) ==
           NETIODAQ_OK) {
        ++count;
        netiodaq_message_free(message);
    }
    CHECK(result == NETIODAQ_END);
    return count;
}

static void several_threads(void) {
    netiodaq_publisher* publisher = new_publisher(NULL);
    netiodaq_subscriber* subscriber = new_subscriber(publisher, NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_publisher_close(NULL));
    thrd_t publishing[threads], receiving[threads];
    for (int i = 0; i < threads; ++i) {
        CHECK(thrd_create(&publishing[i], publish_some, publisher) == thrd_success);
        CHECK(thrd_create(&receiving[i], receive_all, subscriber) == thrd_success);
    }
    int received = 0;
    for (int i = 0; i < threads; ++i)
        CHECK(thrd_join(publishing[i], NULL) == thrd_success);
    CHECK_OK(netiodaq_publisher_close(publisher)); /* END at each receiving thread */
    for (int i = 0; i < threads; ++i) {
        int count = 0;
        CHECK(thrd_join(receiving[i], &count) == thrd_success);
        received += count;
    }
    CHECK(received == threads * messages_per_thread);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
}

/* --- context and log ----------------------------------------------------------------------------
 */

static mtx_t lock;
static cnd_t changed;
static int published_by_task = 0;

static void publish_in_task(void* publisher) {
    /* A call on the context's thread does not wait. */
    CHECK_RESULT(NETIODAQ_NO_SUBSCRIBERS,
                 netiodaq_publisher_publish((netiodaq_publisher*)publisher, 1, "x", 1, 0));
    CHECK_RESULT(NETIODAQ_TIMED_OUT,
                 netiodaq_publisher_wait_for_subscribers((netiodaq_publisher*)publisher, 1, -1));
    mtx_lock(&lock);
    published_by_task = 1;
    cnd_signal(&changed);
    mtx_unlock(&lock);
}

static void contexts(void) {
    CHECK(mtx_init(&lock, mtx_plain) == thrd_success && cnd_init(&changed) == thrd_success);
    netiodaq_options* options = new_options(NETIODAQ_LOOP_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "fabric.provider", "sockets"));
    netiodaq_context* context = NULL;
    CHECK(netiodaq_context_new(options, &context) < 0 &&
          strstr(netiodaq_last_error(), "sockets") != NULL);
    CHECK_OK(netiodaq_options_set(options, "fabric.provider", "tcp"));
    CHECK_OK(netiodaq_options_set(options, "loop.mode", "adaptive"));
    CHECK_OK(netiodaq_context_new(options, &context));
    netiodaq_options_free(options);
    netiodaq_publisher* publisher = NULL;
    CHECK_OK(netiodaq_publisher_new(context, "127.0.0.1:0", NULL, &publisher));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "task is NULL",
                netiodaq_context_post(context, NULL, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_context_post(NULL, publish_in_task, NULL));
    CHECK_OK(netiodaq_context_post(context, publish_in_task, publisher));
    mtx_lock(&lock);
    while (!published_by_task)
        cnd_wait(&changed, &lock);
    mtx_unlock(&lock);
    netiodaq_publisher_free(publisher);
    netiodaq_context_free(context);
    netiodaq_context_free(NULL);
}

static void count_line(const char* line, void* user) {
    CHECK(line[0] != '\0');
    ++*(int*)user;
}

static void logs(void) {
    /* A publisher that has to discard messages writes a line about it. */
    int lines = 0;
    CHECK_OK(netiodaq_set_log(count_line, &lines));
    netiodaq_options* options = new_options(NETIODAQ_SENDER_OPTIONS);
    CHECK_OK(netiodaq_options_set(options, "close_timeout", "1ms"));
    netiodaq_sender* sender = NULL;
    CHECK_OK(netiodaq_sender_new(NULL, "127.0.0.1:1", options, &sender));
    CHECK_OK(netiodaq_sender_send(sender, "x", 1));
    netiodaq_sender_free(sender);
    netiodaq_options_free(options);
    CHECK_OK(netiodaq_set_log(NULL, NULL));
    CHECK(lines > 0);
}

int main(int count, char** arguments) {
    CHECK(count == 2);
    texts();
    CHECK_OK(netiodaq_set_log(NULL, NULL));
    options();
    wrong_publishers();
    messages();
    batches();
    limits();
    refused();
    bus(arguments[1]);
    senders();
    several_threads();
    contexts();
    logs();
    return 0;
}
