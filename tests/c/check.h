/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_H
#define CHECK_H

#include <netio-daq/netio_daq.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ends the program with a line that names the place, unless the condition holds. */
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s; the last error is: %s\n", __FILE__, __LINE__, #condition,  \
                    netiodaq_last_error());                                                        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The call must give this result; an error must have a text that contains the words. */
#define CHECK_RESULT(result, call) CHECK((call) == (result))
#define CHECK_FAILS(result, words, call)                                                           \
    do {                                                                                           \
        CHECK_RESULT(result, call);                                                                \
        CHECK(strstr(netiodaq_last_error(), words) != NULL);                                       \
    } while (0)
#define CHECK_OK(call) CHECK_RESULT(NETIODAQ_OK, call)

enum { deadline_ms = 60000 }; /* far longer than any operation here takes */

#endif
