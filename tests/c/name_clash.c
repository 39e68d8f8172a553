/* SPDX-License-Identifier: Apache-2.0 */
/* A program with functions of its own that have the names of FELIX's library. */
#include "check.h"

static int calls = 0;

void netio_init(void* context);
void netio_run(void* loop);
void netio_terminate(void* loop);
int netio_send(void* socket, void* data, unsigned size);
void netio_timer_init(void* timer);

void netio_init(void* context) {
    calls += context == NULL;
}
void netio_run(void* loop) {
    calls += loop == NULL;
}
void netio_terminate(void* loop) {
    calls += loop == NULL;
}
int netio_send(void* socket, void* data, unsigned size) {
    return calls += socket == data && size == 0;
}
void netio_timer_init(void* timer) {
    calls += timer == NULL;
}

int main(void) {
    netiodaq_publisher* publisher = NULL;
    netiodaq_subscriber* subscriber = NULL;
    netiodaq_message* message = NULL;
    netio_init(NULL);
    CHECK_OK(netiodaq_publisher_new(NULL, "127.0.0.1:0", NULL, &publisher));
    CHECK_OK(
        netiodaq_subscriber_new(NULL, netiodaq_publisher_address(publisher), NULL, &subscriber));
    CHECK_OK(netiodaq_subscriber_subscribe(subscriber, 7, 7));
    CHECK_OK(netiodaq_subscriber_wait_until_subscribed(subscriber, deadline_ms));
    CHECK_OK(netiodaq_publisher_publish(publisher, 7, "both", 4, 0));
    CHECK_OK(netiodaq_subscriber_receive(subscriber, deadline_ms, &message));
    netiodaq_message_free(message);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
    netio_run(NULL);
    netio_timer_init(NULL);
    netio_terminate(NULL);
    return netio_send(NULL, NULL, 0) == 5 ? 0 : 1; /* the library has called none of them */
}
