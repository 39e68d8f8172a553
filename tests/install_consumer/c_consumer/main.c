/* SPDX-License-Identifier: Apache-2.0 */
/* Passes a message by the installed library of this version. */
#include <netio-daq/netio_daq.h>
#include <stdio.h>
#include <string.h>

int main(int count, char** arguments) {
    netiodaq_publisher* publisher = NULL;
    netiodaq_subscriber* subscriber = NULL;
    netiodaq_message* message = NULL;
    const int good = count == 2 && strcmp(arguments[1], netiodaq_version()) == 0 &&
                     netiodaq_publisher_new(NULL, "127.0.0.1:0", NULL, &publisher) == NETIODAQ_OK &&
                     netiodaq_subscriber_new(NULL, netiodaq_publisher_address(publisher), NULL,
                                             &subscriber) == NETIODAQ_OK &&
                     netiodaq_subscriber_subscribe(subscriber, 7, 7) == NETIODAQ_OK &&
                     netiodaq_subscriber_wait_until_subscribed(subscriber, 60000) == NETIODAQ_OK &&
                     netiodaq_publisher_publish(publisher, 7, "text", 4, 0) == NETIODAQ_OK &&
                     netiodaq_subscriber_receive(subscriber, 60000, &message) == NETIODAQ_OK &&
                     netiodaq_message_size_bytes(message) == 4 &&
                     memcmp(netiodaq_message_data(message), "text", 4) == 0;
    if (!good) fprintf(stderr, "%s: %s\n", netiodaq_version(), netiodaq_last_error());
    netiodaq_message_free(message);
    netiodaq_subscriber_free(subscriber);
    netiodaq_publisher_free(publisher);
    return good ? 0 : 1;
}
