/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NETIODAQ_NETIO_DAQ_H
#define NETIODAQ_NETIO_DAQ_H

/* The C interface of netio: publish/subscribe, messages and byte streams, for C11 and every
 * language that can call C. docs/c.md has complete programs and the counterparts of NetIO-next's
 * functions.
 *
 * Level 1, for any thread and without callbacks: publisher, subscriber, sender, requester,
 * responder, stream.
 * Level 2, an event loop on one thread with sockets that call back: loop, timer, signal, send,
 * listen, publish and subscribe sockets.
 *
 * Results. A function that can fail returns a result. Negative: it has not done its work, and
 * netiodaq_last_error() has one line with place, cause and remedy, the text of the C++ interface.
 * Zero or positive: done. A NULL handle or an invalid argument is NETIODAQ_INVALID_ARGUMENT.
 *
 * Ownership. The caller owns what a function stores through its last parameter `out`, and frees it
 * with the function *_free of its type; *_free(NULL) does nothing. If the function fails, it stores
 * NULL. Texts and bytes that the caller passes are copied before a function returns, except memory
 * of a netiodaq_buffer, which is in use until its completion. Texts that a function returns must
 * not be freed; they are valid until the next call on the same handle by which they may change.
 *
 * Threads. Level 1: any thread may use a handle, except where stated, and one frees it when no
 * other uses it. Level 2: see there. A forked child must not use handles of its parent: such a
 * call ends the child with one line. A callback must return: it must not throw, call longjmp() or
 * end its thread.
 *
 * Texts are UTF-8 and end with a null character; in that of netiodaq_last_error(), other bytes and
 * control characters of a peer are '?'. Sizes are in bytes, and at most PTRDIFF_MAX. A time-out of
 * -1 means no limit, 0 means that the call does not wait. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* --- results and errors ---------------------------------------------------------------------- */

typedef int32_t netiodaq_result;

enum {
    NETIODAQ_OK = 0,
    NETIODAQ_NO_SUBSCRIBERS = 1, /* done; the fid has no subscriber, and no completion follows */
    NETIODAQ_PARTIAL = 2,        /* some subscribers get it; continue with the ticket */

    NETIODAQ_AGAIN = -1,             /* no space now; nothing was accepted, try again */
    NETIODAQ_TIMED_OUT = -2,         /* the time-out has passed */
    NETIODAQ_END = -3,               /* in order: no further message or byte follows */
    NETIODAQ_CLOSED = -4,            /* the object or its connection is closed */
    NETIODAQ_TOO_LARGE = -5,         /* larger than the peer or the options allow */
    NETIODAQ_TOO_MANY_SEGMENTS = -6, /* more slices than are possible */
    NETIODAQ_NOT_OWNED = -7,         /* the fid is not one of this publisher */
    NETIODAQ_STALE_TICKET = -8,      /* the ticket has no unfinished publication */
    NETIODAQ_INVALID_ARGUMENT = -9,  /* NULL, a wrong value, an unknown option */
    NETIODAQ_NETWORK_ERROR = -10,    /* a system or network error during set-up */
    NETIODAQ_OUT_OF_MEMORY = -11,    /* memory is exhausted */
    NETIODAQ_WRONG_THREAD = -12,     /* level 2: another thread runs the loop now */
    NETIODAQ_ENDED_EARLY = -13,      /* the stream ended before all requested bytes had arrived */
    NETIODAQ_FAILED = -14            /* another error: a key file, an announcement */
};

/* A short text for a result, such as "timed out". Any thread; a constant. */
const char* netiodaq_error_text(netiodaq_result result);
/* What the last call that failed on this thread reports. Valid until the next call that fails on
 * this thread. Empty if none has failed. */
const char* netiodaq_last_error(void);
/* The version of the library, "MAJOR.MINOR.PATCH". A constant. */
const char* netiodaq_version(void);

/* A log line about a problem: a publisher that cannot be reached, a slow subscriber. */
typedef void (*netiodaq_log_function)(const char* line, void* user);
/* Sets the function that receives log lines; NULL discards them. Without this call they go to
 * standard error. It is called from any thread, one call at a time, and must not call
 * netiodaq_set_log(). Any thread. */
netiodaq_result netiodaq_set_log(netiodaq_log_function function, void* user);

/* Why a connection ended. */
enum {
    NETIODAQ_CLOSE_LOCAL = 0,             /* aborted here */
    NETIODAQ_CLOSE_ORDERLY = 1,           /* the user of the peer has received everything */
    NETIODAQ_CLOSE_UNCONFIRMED = 2,       /* closed, and the peer did not confirm everything */
    NETIODAQ_CLOSE_LOST = 3,              /* the connection broke */
    NETIODAQ_CLOSE_REFUSED = 4,           /* no socket listens at the address */
    NETIODAQ_CLOSE_UNREACHABLE = 5,       /* no route, or the name cannot be resolved */
    NETIODAQ_CLOSE_REJECTED = 6,          /* the listener rejected the connection */
    NETIODAQ_CLOSE_CONNECT_TIMEOUT = 7,   /* no answer in time */
    NETIODAQ_CLOSE_HANDSHAKE_TIMEOUT = 8, /* the peer did not finish the handshake */
    NETIODAQ_CLOSE_SILENT = 9,            /* no sign of life of the peer */
    NETIODAQ_CLOSE_TOO_SLOW = 10,         /* one side was too slow for the policy of the other */
    NETIODAQ_CLOSE_PROTOCOL_ERROR = 11,   /* the peer sent what its protocol does not allow */
    NETIODAQ_CLOSE_NOT_ADMITTED = 12,     /* a key was not proved, or was removed */
    NETIODAQ_CLOSE_FAILED = 13            /* another error */
};
/* A short text for a reason. A constant. */
const char* netiodaq_close_reason_text(int32_t reason);

/* --- options --------------------------------------------------------------------------------- */

/* Options have the names that they have in C++ (docs/options.md), with the path where they are
 * nested, and values as on the command line:
 *
 *     netiodaq_options_set(options, "queue_limit_bytes", "4MiB");
 *     netiodaq_options_set(options, "socket.publisher.session.heartbeat", "500ms");
 *     netiodaq_options_set(options, "keys.file", "site.keys");
 *
 * A size is in bytes or has a unit (64KiB), a time needs a unit (10s), a switch is true or false, a
 * list has commas. One set of options may create any number of objects; each takes a copy. */
typedef struct netiodaq_options netiodaq_options;

enum {
    NETIODAQ_LOOP_OPTIONS = 1, /* of a context or a loop: loop.mode, fabric.provider ... */
    NETIODAQ_PUBLISHER_OPTIONS = 2,
    NETIODAQ_SUBSCRIBER_OPTIONS = 3,
    NETIODAQ_SENDER_OPTIONS = 4,
    NETIODAQ_STREAM_OPTIONS = 5, /* of a stream or a stream listener */
    NETIODAQ_PUBLISH_SOCKET_OPTIONS = 6,
    NETIODAQ_BUFFERED_PUBLISH_SOCKET_OPTIONS = 7,
    NETIODAQ_SUBSCRIBE_SOCKET_OPTIONS = 8,
    NETIODAQ_SEND_SOCKET_OPTIONS = 9,
    NETIODAQ_BUFFERED_SEND_SOCKET_OPTIONS = 10,
    NETIODAQ_LISTEN_SOCKET_OPTIONS = 11,
    NETIODAQ_REQUESTER_OPTIONS = 12,
    NETIODAQ_RESPONDER_OPTIONS = 13
};

/* Creates options of one of these kinds with their defaults. One thread at a time. */
netiodaq_result netiodaq_options_new(int32_t kind, netiodaq_options** out);
/* Sets an option. An unknown name or an invalid value changes nothing. The allowed range is checked
 * when the object is created. */
netiodaq_result netiodaq_options_set(netiodaq_options* options, const char* name,
                                     const char* value);
/* The name of an option of this kind, for index 0, 1 ...; NULL after the last. A constant. */
const char* netiodaq_options_name(int32_t kind, uint64_t index);
void netiodaq_options_free(netiodaq_options* options);

/* --- level 1: context ------------------------------------------------------------------------ */

/* An event loop with a thread of its own. Each publisher, subscriber, sender, requester and
 * responder creates one, unless it is given one that several share. The thread ends when the
 * context and all objects that use it are freed. */
typedef struct netiodaq_context netiodaq_context;
typedef void (*netiodaq_task)(void* user);

/* options: NETIODAQ_LOOP_OPTIONS, or NULL. */
netiodaq_result netiodaq_context_new(const netiodaq_options* options, netiodaq_context** out);
/* Runs the task on the context's thread, in the order of the calls. Level 1 calls on that thread do
 * not wait. The task must not free the last handle of this context or an object that uses it.
 * AGAIN: loop.post_limit tasks are waiting. */
netiodaq_result netiodaq_context_post(netiodaq_context* context, netiodaq_task task, void* user);
void netiodaq_context_free(netiodaq_context* context);

/* --- level 1: publisher ---------------------------------------------------------------------- */

typedef struct netiodaq_publisher netiodaq_publisher;

/* In structures that the library fills, the caller sets size_bytes to the size of the structure
 * before the call; a later version may add members at the end. */
typedef struct netiodaq_publisher_stats {
    uint64_t size_bytes;
    uint64_t published;           /* sent, or published without subscribers */
    uint64_t without_subscribers; /* of `published` */
    uint64_t unpublished;         /* accepted, and discarded by close */
    uint64_t subscribers;         /* with a subscription, now */
} netiodaq_publisher_stats;

/* Listens at the addresses "HOST:PORT", several separated by commas; port 0: any free port. With
 * the option bus.where, announces the publisher there with the option fids. context: NULL for one
 * of its own. options: NETIODAQ_PUBLISHER_OPTIONS, or NULL. */
netiodaq_result netiodaq_publisher_new(netiodaq_context* context, const char* addresses,
                                       const netiodaq_options* options, netiodaq_publisher** out);
/* Copies the message and publishes it; waits up to publish_timeout while there is no space.
 * `status` is sent with it. OK, or NO_SUBSCRIBERS: accepted and counted, and the fid had no
 * subscriber. AGAIN: no space for publish_timeout. TOO_LARGE, NOT_OWNED, CLOSED. `data` may be NULL
 * if size_bytes is 0. */
netiodaq_result netiodaq_publisher_publish(netiodaq_publisher* publisher, uint64_t fid,
                                           const void* data, uint64_t size_bytes, uint8_t status);
/* The same without waiting: AGAIN if there is no space for this fid now. */
netiodaq_result netiodaq_publisher_try_publish(netiodaq_publisher* publisher, uint64_t fid,
                                               const void* data, uint64_t size_bytes,
                                               uint8_t status);
/* Waits until `count` subscribers have a subscription each. TIMED_OUT, CLOSED. */
netiodaq_result netiodaq_publisher_wait_for_subscribers(netiodaq_publisher* publisher,
                                                        uint64_t count, int64_t timeout_ms);
/* Sends what was published, waits until every subscriber has confirmed it, and disconnects those
 * without progress for close_timeout. */
netiodaq_result netiodaq_publisher_close(netiodaq_publisher* publisher);
/* 1: close was called and all connections have ended; otherwise 0. */
int32_t netiodaq_publisher_is_closed(const netiodaq_publisher* publisher);
/* The first address where it listens, with the port that was chosen; valid until it is freed. */
const char* netiodaq_publisher_address(const netiodaq_publisher* publisher);
netiodaq_result netiodaq_publisher_get_stats(const netiodaq_publisher* publisher,
                                             netiodaq_publisher_stats* stats);
/* Closes as netiodaq_publisher_close does, if it is not closed. */
void netiodaq_publisher_free(netiodaq_publisher* publisher);

/* --- level 1: subscriber --------------------------------------------------------------------- */

typedef struct netiodaq_subscriber netiodaq_subscriber;
/* A received message. It holds its memory until it is freed, also after the subscriber is freed;
 * messages of 8 KiB and more are not copied. Any thread may use and free it. */
typedef struct netiodaq_message netiodaq_message;
/* Many received messages in contiguous memory, which is used again. One thread at a time. */
typedef struct netiodaq_batch netiodaq_batch;

/* What happens when a subscriber is slow. */
enum {
    NETIODAQ_POLICY_DEFAULT = -1,   /* as the publisher has chosen */
    NETIODAQ_POLICY_BLOCK = 0,      /* the publisher waits */
    NETIODAQ_POLICY_DROP = 1,       /* messages are dropped and counted */
    NETIODAQ_POLICY_DISCONNECT = 2, /* as block, and disconnects after a time */
    NETIODAQ_POLICY_NEWEST = 3      /* only the newest message of each fid is sent */
};

typedef struct netiodaq_subscriber_stats {
    uint64_t size_bytes;
    uint64_t messages;      /* arrived */
    uint64_t lost;          /* published and not received, as far as is known */
    uint64_t lost_at_end;   /* of `lost`: after the last message of their fid */
    uint64_t dropped;       /* of `lost`: they arrived when the queue was full */
    uint64_t restarts;      /* another publisher answered at the same address */
    uint64_t unknown_tails; /* publishers that ended without their totals */
    uint64_t publishers;    /* connected */
} netiodaq_subscriber_stats;

/* A message of a batch. This structure does not change within version 0 of the interface. */
typedef struct netiodaq_item {
    uint64_t fid;
    uint64_t lost_before; /* lost messages of this fid before this one */
    const void* data;     /* valid until the batch changes */
    uint64_t size_bytes;
    uint32_t status;
    uint32_t is_gap; /* 1: no message; lost_before were lost after the last one of the fid */
} netiodaq_item;

/* Connects to the publishers at these addresses, "HOST:PORT", several separated by commas; or, with
 * NULL, to those that the bus of the option bus.where announces. Waits for publishers that are not
 * there yet, and reconnects. Does not wait. context: NULL for one of its own. options:
 * NETIODAQ_SUBSCRIBER_OPTIONS, or NULL. */
netiodaq_result netiodaq_subscriber_new(netiodaq_context* context, const char* addresses,
                                        const netiodaq_options* options, netiodaq_subscriber** out);
/* Subscribes to the fids from first to last, both included. Does not wait. */
netiodaq_result netiodaq_subscriber_subscribe(netiodaq_subscriber* subscriber, uint64_t first_fid,
                                              uint64_t last_fid);
/* The same with one of NETIODAQ_POLICY_..., which must not block longer than the publisher's. */
netiodaq_result netiodaq_subscriber_subscribe_with_policy(netiodaq_subscriber* subscriber,
                                                          uint64_t first_fid, uint64_t last_fid,
                                                          int32_t policy);
netiodaq_result netiodaq_subscriber_unsubscribe(netiodaq_subscriber* subscriber, uint64_t first_fid,
                                                uint64_t last_fid);
/* Waits until a publisher has accepted each subscribed fid: messages that are published later
 * arrive. TIMED_OUT: also if a publisher has refused some, or the subscriber has ended. */
netiodaq_result netiodaq_subscriber_wait_until_subscribed(netiodaq_subscriber* subscriber,
                                                          int64_t timeout_ms);
/* The next message. TIMED_OUT; END: closed, or all publishers have closed in order, and every
 * message was received; FAILED or CLOSED: a publisher refuses a subscription or was lost for good.
 * Several threads may call it: each message goes to one of them. */
netiodaq_result netiodaq_subscriber_receive(netiodaq_subscriber* subscriber, int64_t timeout_ms,
                                            netiodaq_message** out);
/* Replaces the contents of the batch by the next messages, at least one, without copying them. The
 * results are those of netiodaq_subscriber_receive; if it fails, the batch is empty. */
netiodaq_result netiodaq_subscriber_receive_batch(netiodaq_subscriber* subscriber,
                                                  int64_t timeout_ms, netiodaq_batch* batch);
/* A descriptor for poll(2), readable while messages are queued: then receive with time-out 0 until
 * the result is TIMED_OUT. It belongs to the subscriber. -1 for NULL. */
int32_t netiodaq_subscriber_fd(const netiodaq_subscriber* subscriber);
/* Closes all connections in order. Messages in the queue can still be received. */
netiodaq_result netiodaq_subscriber_close(netiodaq_subscriber* subscriber);
/* 1: no further message will arrive; otherwise 0. */
int32_t netiodaq_subscriber_is_closed(const netiodaq_subscriber* subscriber);
netiodaq_result netiodaq_subscriber_get_stats(const netiodaq_subscriber* subscriber,
                                              netiodaq_subscriber_stats* stats);
/* Closes, and waits for a second at most. */
void netiodaq_subscriber_free(netiodaq_subscriber* subscriber);

/* For NULL these return 0 and NULL. */
uint64_t netiodaq_message_fid(const netiodaq_message* message);
const void* netiodaq_message_data(const netiodaq_message* message); /* until it is freed */
uint64_t netiodaq_message_size_bytes(const netiodaq_message* message);
uint8_t netiodaq_message_status(const netiodaq_message* message);
/* The number of messages of this fid that were lost before this one. */
uint64_t netiodaq_message_lost_before(const netiodaq_message* message);
void netiodaq_message_free(netiodaq_message* message);

netiodaq_result netiodaq_batch_new(netiodaq_batch** out);
uint64_t netiodaq_batch_count(const netiodaq_batch* batch);
/* An array of netiodaq_batch_count items, valid until the batch changes. */
const netiodaq_item* netiodaq_batch_items(const netiodaq_batch* batch);
void netiodaq_batch_free(netiodaq_batch* batch);

/* --- level 1: sender ------------------------------------------------------------------------- */

/* Sends messages to one listen socket. */
typedef struct netiodaq_sender netiodaq_sender;

typedef struct netiodaq_sender_stats {
    uint64_t size_bytes;
    uint64_t sent;               /* passed to a connection */
    uint64_t unsent;             /* too large, or discarded by close */
    uint64_t unconfirmed_frames; /* of lost connections */
    uint64_t connected;          /* 0 or 1 */
} netiodaq_sender_stats;

/* Connects to "HOST:PORT" with the first message; waits for a receiver that is not there, and
 * reconnects. options: NETIODAQ_SENDER_OPTIONS, or NULL. */
netiodaq_result netiodaq_sender_new(netiodaq_context* context, const char* address,
                                    const netiodaq_options* options, netiodaq_sender** out);
/* Copies the message and sends it; waits up to send_timeout while there is no space. AGAIN,
 * TOO_LARGE (known while connected), CLOSED. */
netiodaq_result netiodaq_sender_send(netiodaq_sender* sender, const void* data,
                                     uint64_t size_bytes);
/* The same without waiting. */
netiodaq_result netiodaq_sender_try_send(netiodaq_sender* sender, const void* data,
                                         uint64_t size_bytes);
/* Sends what was accepted and waits until the receiver has confirmed it, within close_timeout and
 * close_limit. */
netiodaq_result netiodaq_sender_close(netiodaq_sender* sender);
int32_t netiodaq_sender_is_closed(const netiodaq_sender* sender);
netiodaq_result netiodaq_sender_get_stats(const netiodaq_sender* sender,
                                          netiodaq_sender_stats* stats);
/* Closes as netiodaq_sender_close does. */
void netiodaq_sender_free(netiodaq_sender* sender);

/* --- level 1: requests and replies ----------------------------------------------------------- */

/* Sends requests to one responder and receives its replies. */
typedef struct netiodaq_requester netiodaq_requester;
/* The reply to one request: one message or more. One thread at a time. It may outlive its
 * requester. */
typedef struct netiodaq_reply netiodaq_reply;
/* Receives requests of requesters, and replies to them. */
typedef struct netiodaq_responder netiodaq_responder;
/* A received request. One thread at a time. It may outlive its responder. */
typedef struct netiodaq_request netiodaq_request;

/* How a request ended. */
enum {
    NETIODAQ_REQUEST_OPEN = 0,         /* it has not ended */
    NETIODAQ_REQUEST_REPLIED = 1,      /* the whole reply has arrived */
    NETIODAQ_REQUEST_TIMED_OUT = 2,    /* its time is over */
    NETIODAQ_REQUEST_CANCELED = 3,     /* by netiodaq_reply_cancel or the end of the requester */
    NETIODAQ_REQUEST_DISCONNECTED = 4, /* it was sent, and the connection ended */
    NETIODAQ_REQUEST_NO_REPLY = 5,     /* the responder has freed it without a reply */
    NETIODAQ_REQUEST_FAILED = 6,       /* the responder reports a failure, in a text */
    NETIODAQ_REQUEST_TOO_LARGE = 7     /* for the responder, or the reply for reply_limit_bytes */
};

typedef struct netiodaq_requester_stats {
    uint64_t size_bytes;
    uint64_t outstanding; /* open now */
    uint64_t replied;     /* this and the following: requests that ended, by their end */
    uint64_t timed_out;
    uint64_t canceled;
    uint64_t disconnected;
    uint64_t failed;       /* no reply, a failure, too large */
    uint64_t late;         /* messages of replies to requests that had ended */
    uint64_t queued_bytes; /* that wait for the connection */
    uint64_t reply_bytes;  /* arrived, and not taken */
    uint64_t connected;    /* 0 or 1 */
} netiodaq_requester_stats;

typedef struct netiodaq_responder_stats {
    uint64_t size_bytes;
    uint64_t peers;    /* connected requesters */
    uint64_t waiting;  /* requests that wait for netiodaq_responder_receive */
    uint64_t open;     /* requests that have not ended, with those that wait */
    uint64_t requests; /* received */
    uint64_t replied;
    uint64_t failed;   /* by netiodaq_request_fail */
    uint64_t no_reply; /* freed without a reply */
    uint64_t canceled; /* by their requester, or because it is gone */
    uint64_t too_slow; /* requesters that were disconnected after send_timeout */
} netiodaq_responder_stats;

/* Connects to "HOST:PORT" with the first request, and again when the connection is lost. A request
 * waits for a responder that is not there yet; it is not repeated. context: NULL for one of its
 * own. options: NETIODAQ_REQUESTER_OPTIONS, or NULL. */
netiodaq_result netiodaq_requester_new(netiodaq_context* context, const char* address,
                                       const netiodaq_options* options, netiodaq_requester** out);
/* Copies the request and sends it, without waiting for its reply. timeout_ms is the time until the
 * whole reply has arrived. Waits, within this time, while a limit is reached. AGAIN: it is still
 * reached. CLOSED. */
netiodaq_result netiodaq_requester_send(netiodaq_requester* requester, const void* data,
                                        uint64_t size_bytes, int64_t timeout_ms,
                                        netiodaq_reply** out);
/* Ends all open requests as canceled, and the connection. */
netiodaq_result netiodaq_requester_close(netiodaq_requester* requester);
netiodaq_result netiodaq_requester_get_stats(const netiodaq_requester* requester,
                                             netiodaq_requester_stats* stats);
/* Closes as netiodaq_requester_close does. */
void netiodaq_requester_free(netiodaq_requester* requester);

/* Stores the next message of the reply, which is valid until the next call of this function for
 * this reply, or until the reply is freed. TIMED_OUT: it has not arrived within timeout_ms, and the
 * request stays open. END: after the last message. CLOSED: the request has ended otherwise, after
 * the messages that had arrived; netiodaq_reply_end has the reason. */
netiodaq_result netiodaq_reply_next(netiodaq_reply* reply, int64_t timeout_ms, const void** data,
                                    uint64_t* size_bytes);
/* One of NETIODAQ_REQUEST_...; -1 for NULL. */
int32_t netiodaq_reply_end(const netiodaq_reply* reply);
/* Ends the request, if it is open, and notifies the responder. Messages that have arrived can still
 * be taken. */
netiodaq_result netiodaq_reply_cancel(netiodaq_reply* reply);
/* Cancels the request, if it is open. */
void netiodaq_reply_free(netiodaq_reply* reply);

/* Listens at the addresses "HOST:PORT", several separated by commas; port 0: any free port.
 * context: NULL for one of its own. options: NETIODAQ_RESPONDER_OPTIONS, or NULL. */
netiodaq_result netiodaq_responder_new(netiodaq_context* context, const char* addresses,
                                       const netiodaq_options* options, netiodaq_responder** out);
/* The first address where it listens, with the port that was chosen; valid until it is freed. */
const char* netiodaq_responder_address(const netiodaq_responder* responder);
/* The next request. TIMED_OUT; END: after netiodaq_responder_close. Several threads may call it:
 * each request goes to one of them. */
netiodaq_result netiodaq_responder_receive(netiodaq_responder* responder, int64_t timeout_ms,
                                           netiodaq_request** out);
/* Stops listening; requests that were not received end without a reply. Waits until the replies
 * that were given are sent and the connections have closed in order, at most
 * socket.session.close_limit. */
netiodaq_result netiodaq_responder_close(netiodaq_responder* responder);
netiodaq_result netiodaq_responder_get_stats(const netiodaq_responder* responder,
                                             netiodaq_responder_stats* stats);
/* Closes as netiodaq_responder_close does. */
void netiodaq_responder_free(netiodaq_responder* responder);

/* For NULL these return 0 and NULL. The data and the address are valid until the request is
 * freed. */
const void* netiodaq_request_data(const netiodaq_request* request);
uint64_t netiodaq_request_size_bytes(const netiodaq_request* request);
const char* netiodaq_request_peer_address(const netiodaq_request* request);
/* Returns 1 if the requester has canceled the request or is gone: a reply has no effect then.
 * Otherwise 0. */
int32_t netiodaq_request_is_canceled(const netiodaq_request* request);
/* Copies the message, replies with it, and ends the request. Waits while reply_queue_limit_bytes
 * wait for this requester, at most send_timeout. CLOSED: the request has ended before. TOO_LARGE:
 * for the requester; the request is still open. */
netiodaq_result netiodaq_request_reply(netiodaq_request* request, const void* data,
                                       uint64_t size_bytes);
/* The same, but the request stays open: further messages of the reply follow, until
 * netiodaq_request_reply sends the last one. */
netiodaq_result netiodaq_request_reply_part(netiodaq_request* request, const void* data,
                                            uint64_t size_bytes);
/* Ends the request as failed at its requester, which gets up to 4096 bytes of the text. */
netiodaq_result netiodaq_request_fail(netiodaq_request* request, const char* why);
/* Ends the request without a reply, if it is open. */
void netiodaq_request_free(netiodaq_request* request);

/* --- level 1: streams ------------------------------------------------------------------------ */

/* A byte stream in both directions, with blocking calls. One thread at a time; a listener and the
 * streams that it has accepted count as one object, and the listener is freed last. The time limits
 * are the options call_timeout and progress_timeout. */
typedef struct netiodaq_stream netiodaq_stream;
typedef struct netiodaq_stream_listener netiodaq_stream_listener;

/* Connects to "HOST:PORT". options: NETIODAQ_STREAM_OPTIONS, or NULL. TIMED_OUT, CLOSED: there is
 * no stream. */
netiodaq_result netiodaq_stream_connect(const char* address, const netiodaq_options* options,
                                        netiodaq_stream** out);
/* Reads what has arrived, at least one byte, into the caller's memory and stores the number. END:
 * the peer has ended the stream. TIMED_OUT: no byte is lost. */
netiodaq_result netiodaq_stream_read(netiodaq_stream* stream, void* memory, uint64_t size_bytes,
                                     uint64_t* read_bytes);
/* Fills the memory. ENDED_EARLY: the stream has fewer bytes, and the next read returns them. */
netiodaq_result netiodaq_stream_read_exactly(netiodaq_stream* stream, void* memory,
                                             uint64_t size_bytes);
/* Writes all bytes. TIMED_OUT: up to 64 KiB nothing was sent; of more, the connection has ended. */
netiodaq_result netiodaq_stream_write(netiodaq_stream* stream, const void* data,
                                      uint64_t size_bytes);
/* Ends this direction; the peer reads END after the last byte. Does not wait. */
netiodaq_result netiodaq_stream_shutdown_send(netiodaq_stream* stream);
/* Ends this direction and waits until the peer has received everything. */
netiodaq_result netiodaq_stream_close(netiodaq_stream* stream);
/* The limit of each later call in total; 0: no limit. */
netiodaq_result netiodaq_stream_set_call_timeout_ms(netiodaq_stream* stream, int64_t timeout_ms);
/* The limit of each later call while no byte is transferred; 0: no limit. */
netiodaq_result netiodaq_stream_set_progress_timeout_ms(netiodaq_stream* stream,
                                                        int64_t timeout_ms);
const char* netiodaq_stream_peer_address(const netiodaq_stream* stream);
/* Aborts a connection that was not closed. */
void netiodaq_stream_free(netiodaq_stream* stream);

/* Listens at "HOST:PORT". options: NETIODAQ_STREAM_OPTIONS, or NULL. */
netiodaq_result netiodaq_stream_listener_new(const char* address, const netiodaq_options* options,
                                             netiodaq_stream_listener** out);
/* The next peer that connects. TIMED_OUT; CLOSED: after stop. */
netiodaq_result netiodaq_stream_listener_accept(netiodaq_stream_listener* listener,
                                                netiodaq_stream** out);
/* Stops listening; an accept that waits in another thread returns CLOSED. Any thread. */
netiodaq_result netiodaq_stream_listener_stop(netiodaq_stream_listener* listener);
/* With the port that was chosen. */
const char* netiodaq_stream_listener_address(const netiodaq_stream_listener* listener);
void netiodaq_stream_listener_free(netiodaq_stream_listener* listener);

/* --- level 2: the event loop ----------------------------------------------------------------- */

/* A loop with the network that its sockets use. All objects of a loop belong to the thread that
 * runs it; while no thread does, to any thread, one at a time. Other threads may only call
 * netiodaq_loop_post, netiodaq_loop_stop and netiodaq_signal_fire. Any other call from another
 * thread while the loop runs returns WRONG_THREAD; a *_free then ends the program with one line.
 *
 * A call never calls back: callbacks run from the loop, one after another. They must not block. A
 * callback may call every function of its loop's objects except netiodaq_loop_run,
 * netiodaq_loop_run_once, netiodaq_loop_dispatch and netiodaq_loop_free. It may free its own
 * object; no callback of it follows. Buffers, sockets, timers, signals and watches are freed before
 * their loop, and buffers after the sockets that use them. */
typedef struct netiodaq_loop netiodaq_loop;
typedef struct netiodaq_timer netiodaq_timer;
typedef struct netiodaq_signal netiodaq_signal;
typedef struct netiodaq_watch netiodaq_watch;

/* options: NETIODAQ_LOOP_OPTIONS, or NULL. */
netiodaq_result netiodaq_loop_new(const netiodaq_options* options, netiodaq_loop** out);
/* Runs until netiodaq_loop_stop. */
netiodaq_result netiodaq_loop_run(netiodaq_loop* loop);
/* Runs one turn. If there is no work, waits up to timeout_ms and runs another one. */
netiodaq_result netiodaq_loop_run_once(netiodaq_loop* loop, int64_t timeout_ms);
/* Ends the current run, or makes the next one return at once. Any thread; not from a handler of
 * signal(2). */
netiodaq_result netiodaq_loop_stop(netiodaq_loop* loop);
/* Runs the task on the loop's thread, in the order of posting; tasks that were posted before
 * netiodaq_loop_run come first. AGAIN: loop.post_limit tasks are waiting. Any thread. */
netiodaq_result netiodaq_loop_post(netiodaq_loop* loop, netiodaq_task task, void* user);
/* For a loop inside another one: when the descriptor is readable, call netiodaq_loop_dispatch; also
 * at the beginning, and after calls from outside of callbacks. It belongs to the loop. -1 if the
 * call fails. */
int32_t netiodaq_loop_fd(netiodaq_loop* loop);
/* Runs turns until no work is left, for about 5 ms at most; then the descriptor stays readable. */
netiodaq_result netiodaq_loop_dispatch(netiodaq_loop* loop);
void netiodaq_loop_free(netiodaq_loop* loop);

typedef void (*netiodaq_timer_function)(netiodaq_timer* timer, void* user);
netiodaq_result netiodaq_timer_new(netiodaq_loop* loop, netiodaq_timer_function function,
                                   void* user, netiodaq_timer** out);
/* Calls the function once per period, until it is stopped or started again. A late loop makes up
 * for up to 100 calls. */
netiodaq_result netiodaq_timer_start_s(netiodaq_timer* timer, uint64_t period_s);
netiodaq_result netiodaq_timer_start_ms(netiodaq_timer* timer, uint64_t period_ms);
netiodaq_result netiodaq_timer_start_us(netiodaq_timer* timer, uint64_t period_us);
/* Calls the function once. */
netiodaq_result netiodaq_timer_start_once_us(netiodaq_timer* timer, uint64_t delay_us);
netiodaq_result netiodaq_timer_stop(netiodaq_timer* timer);
void netiodaq_timer_free(netiodaq_timer* timer);

typedef void (*netiodaq_signal_function)(netiodaq_signal* signal, void* user);
/* A signal between threads: after netiodaq_signal_fire the function is called on the loop's thread,
 * at least once; firing it again before that call has no further effect. */
netiodaq_result netiodaq_signal_new(netiodaq_loop* loop, netiodaq_signal_function function,
                                    void* user, netiodaq_signal** out);
/* Any thread. */
netiodaq_result netiodaq_signal_fire(netiodaq_signal* signal);
void netiodaq_signal_free(netiodaq_signal* signal);

/* number: of the signal, or the descriptor. */
typedef void (*netiodaq_watch_function)(netiodaq_watch* watch, int32_t number, void* user);
/* Calls the function when the process receives one of the signals (SIGINT ...), which it blocks in
 * this thread and those that this thread starts later. Create it before other threads. */
netiodaq_result netiodaq_watch_new_os_signals(netiodaq_loop* loop, const int32_t* numbers,
                                              uint64_t count, netiodaq_watch_function function,
                                              void* user, netiodaq_watch** out);
/* Calls the function while the descriptor is readable, or writable if that is not 0. The descriptor
 * stays the caller's and must stay open. */
netiodaq_result netiodaq_watch_new_descriptor(netiodaq_loop* loop, int32_t descriptor,
                                              int32_t writable, netiodaq_watch_function function,
                                              void* user, netiodaq_watch** out);
void netiodaq_watch_free(netiodaq_watch* watch);

/* --- level 2: memory of zero-copy messages --------------------------------------------------- */

/* Memory that the network reads. It is registered with each device at first use. */
typedef struct netiodaq_buffer netiodaq_buffer;

/* A part of a buffer. */
typedef struct netiodaq_slice {
    netiodaq_buffer* buffer;
    uint64_t offset_bytes;
    uint64_t size_bytes;
} netiodaq_slice;

/* Allocates zeroed memory. */
netiodaq_result netiodaq_buffer_new(netiodaq_loop* loop, uint64_t size_bytes,
                                    netiodaq_buffer** out);
/* Uses memory of the caller's, which must stay valid until the buffer is freed. */
netiodaq_result netiodaq_buffer_new_of_memory(netiodaq_loop* loop, void* memory,
                                              uint64_t size_bytes, netiodaq_buffer** out);
void* netiodaq_buffer_data(netiodaq_buffer* buffer);
uint64_t netiodaq_buffer_size_bytes(const netiodaq_buffer* buffer);
/* No message from this buffer may be in flight. */
void netiodaq_buffer_free(netiodaq_buffer* buffer);

/* How a zero-copy send ended. */
enum {
    NETIODAQ_SEND_DONE = 0,     /* sent; the receiver may not have processed it yet */
    NETIODAQ_SEND_CANCELED = 1, /* the connection ended before */
    NETIODAQ_SEND_FAILED = 2    /* the network reported an error */
};

/* --- level 2: send sockets ------------------------------------------------------------------- */

/* Callbacks are structures: size_bytes is the size of the structure, `user` is passed to each
 * function, and each function may be NULL. They are copied. `detail` is one line for people, valid
 * during the call. */
typedef struct netiodaq_send_socket netiodaq_send_socket;
typedef struct netiodaq_send_callbacks {
    uint64_t size_bytes;
    void* user;
    void (*on_connected)(netiodaq_send_socket* socket, void* user);
    /* The memory of this key may be used again. Once for each accepted zero-copy message. */
    void (*on_send_completed)(netiodaq_send_socket* socket, uint64_t key, int32_t outcome,
                              void* user);
    /* After AGAIN: try it again. */
    void (*on_writable)(netiodaq_send_socket* socket, void* user);
    /* Refused, rejected, lost, closed. retrying 1: it connects again by itself; 0: connect may be
     * called again. */
    void (*on_closed)(netiodaq_send_socket* socket, int32_t reason, const char* detail,
                      int32_t retrying, void* user);
} netiodaq_send_callbacks;

/* Sends from registered memory, without a copy. options: NETIODAQ_SEND_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_send_socket_new(netiodaq_loop* loop, const netiodaq_options* options,
                                         const netiodaq_send_callbacks* callbacks,
                                         netiodaq_send_socket** out);
/* Copies messages into pages. options: NETIODAQ_BUFFERED_SEND_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_send_socket_new_buffered(netiodaq_loop* loop,
                                                  const netiodaq_options* options,
                                                  const netiodaq_send_callbacks* callbacks,
                                                  netiodaq_send_socket** out);
/* Connects to "HOST:PORT"; on_connected or on_closed follows. INVALID_ARGUMENT: it is connected or
 * connecting already. */
netiodaq_result netiodaq_send_socket_connect(netiodaq_send_socket* socket, const char* address);
/* Closes in order; on_closed follows. */
netiodaq_result netiodaq_send_socket_disconnect(netiodaq_send_socket* socket);
/* Closes at once; on_closed follows. */
netiodaq_result netiodaq_send_socket_abort(netiodaq_send_socket* socket);
/* Sends up to 28 slices as one message; on_send_completed(key) follows. AGAIN, CLOSED, TOO_LARGE,
 * TOO_MANY_SEGMENTS; INVALID_ARGUMENT: a slice is not within its buffer, or the socket is buffered.
 */
netiodaq_result netiodaq_send_socket_sendv(netiodaq_send_socket* socket,
                                           const netiodaq_slice* slices, uint64_t count,
                                           uint64_t key);
/* The same with `immediate`, 8 bytes of the user's that are sent with the message. */
netiodaq_result netiodaq_send_socket_sendv_immediate(netiodaq_send_socket* socket,
                                                     const netiodaq_slice* slices, uint64_t count,
                                                     uint64_t key, uint64_t immediate);
/* Copies the message. A buffered socket takes any size that the receiver accepts, another one up to
 * 48 bytes; no completion follows. */
netiodaq_result netiodaq_send_socket_send_copy(netiodaq_send_socket* socket, const void* data,
                                               uint64_t size_bytes);
/* Buffered: sends the messages that wait in a page now. */
netiodaq_result netiodaq_send_socket_flush(netiodaq_send_socket* socket);
int32_t netiodaq_send_socket_is_connected(const netiodaq_send_socket* socket);
/* The largest message; 0 while not connected. */
uint64_t netiodaq_send_socket_message_limit_bytes(const netiodaq_send_socket* socket);
/* Ends at once; no callback follows. */
void netiodaq_send_socket_free(netiodaq_send_socket* socket);

/* --- level 2: listen sockets ----------------------------------------------------------------- */

typedef struct netiodaq_listen_socket netiodaq_listen_socket;
/* A connected sender. The listen socket owns it; it is valid until its on_closed has returned. */
typedef struct netiodaq_receive_socket netiodaq_receive_socket;

typedef struct netiodaq_listen_callbacks {
    uint64_t size_bytes;
    void* user;
    void (*on_connected)(netiodaq_receive_socket* socket, void* user);
    /* The bytes are valid during the call; netiodaq_receive_socket_keep makes them valid for
     * longer. immediate: NULL if the message has none. */
    void (*on_message)(netiodaq_receive_socket* socket, const void* data, uint64_t size_bytes,
                       const uint64_t* immediate, void* user);
    void (*on_closed)(netiodaq_receive_socket* socket, int32_t reason, const char* detail,
                      void* user);
    /* After close or abort: the last event. */
    void (*on_listen_closed)(netiodaq_listen_socket* socket, int32_t reason, const char* detail,
                             void* user);
} netiodaq_listen_callbacks;

/* Listens at "HOST:PORT", several separated by commas, for buffered and other send sockets.
 * options: NETIODAQ_LISTEN_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_listen_socket_new(netiodaq_loop* loop, const char* addresses,
                                           const netiodaq_options* options,
                                           const netiodaq_listen_callbacks* callbacks,
                                           netiodaq_listen_socket** out);
/* Closes every connection in order; on_listen_closed follows. */
netiodaq_result netiodaq_listen_socket_close(netiodaq_listen_socket* socket);
/* Closes every connection at once; on_listen_closed follows. */
netiodaq_result netiodaq_listen_socket_abort(netiodaq_listen_socket* socket);
/* The first address, with the port that was chosen. */
const char* netiodaq_listen_socket_address(const netiodaq_listen_socket* socket);
void netiodaq_listen_socket_free(netiodaq_listen_socket* socket);

/* A pointer of the user's for this sender; NULL at first. */
netiodaq_result netiodaq_receive_socket_set_user(netiodaq_receive_socket* socket, void* user);
void* netiodaq_receive_socket_user(const netiodaq_receive_socket* socket);
/* "HOST:PORT" of the sender, written into the caller's memory; cut off if it does not fit. */
netiodaq_result netiodaq_receive_socket_peer_address(const netiodaq_receive_socket* socket,
                                                     char* text, uint64_t size_bytes);
/* Within on_message: the bytes of that call or a part of them, until the message is freed; from
 * 8 KiB on without a copy. */
netiodaq_result netiodaq_receive_socket_keep(netiodaq_receive_socket* socket, const void* data,
                                             uint64_t size_bytes, netiodaq_message** out);
/* Stops delivery from the next message on, so that the sender has to wait. */
netiodaq_result netiodaq_receive_socket_pause(netiodaq_receive_socket* socket);
netiodaq_result netiodaq_receive_socket_resume(netiodaq_receive_socket* socket);
/* Closes this connection in order. */
netiodaq_result netiodaq_receive_socket_close(netiodaq_receive_socket* socket);

/* --- level 2: publish sockets ---------------------------------------------------------------- */

typedef struct netiodaq_publish_socket netiodaq_publish_socket;
/* A publication that some subscribers do not have yet. */
typedef struct netiodaq_ticket netiodaq_ticket;

/* How many subscribers of a publication were sent it, and how many were not. */
typedef struct netiodaq_outcome {
    uint32_t sent;
    uint32_t dropped; /* dropped by their policy */
    uint32_t unsubscribed;
    uint32_t lost; /* their connection ended */
} netiodaq_outcome;

typedef struct netiodaq_publish_callbacks {
    uint64_t size_bytes;
    void* user;
    void (*on_subscriber_connected)(netiodaq_publish_socket* socket, const char* peer, void* user);
    void (*on_subscribed)(netiodaq_publish_socket* socket, const char* peer, uint64_t first_fid,
                          uint64_t last_fid, void* user);
    void (*on_unsubscribed)(netiodaq_publish_socket* socket, const char* peer, uint64_t first_fid,
                            uint64_t last_fid, void* user);
    void (*on_subscriber_closed)(netiodaq_publish_socket* socket, const char* peer, int32_t reason,
                                 const char* detail, void* user);
    /* The memory of this key may be used again. Once for each accepted zero-copy publication. */
    void (*on_publish_completed)(netiodaq_publish_socket* socket, uint64_t key,
                                 const netiodaq_outcome* outcome, void* user);
    /* After AGAIN or PARTIAL: try it again, or resume. */
    void (*on_writable)(netiodaq_publish_socket* socket, void* user);
    /* After close or abort: the last event. */
    void (*on_closed)(netiodaq_publish_socket* socket, int32_t reason, const char* detail,
                      void* user);
} netiodaq_publish_callbacks;

/* Publishes from registered memory, without a copy, at "HOST:PORT", several separated by commas.
 * options: NETIODAQ_PUBLISH_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_publish_socket_new(netiodaq_loop* loop, const char* addresses,
                                            const netiodaq_options* options,
                                            const netiodaq_publish_callbacks* callbacks,
                                            netiodaq_publish_socket** out);
/* Copies messages into pages. options: NETIODAQ_BUFFERED_PUBLISH_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_publish_socket_new_buffered(netiodaq_loop* loop, const char* addresses,
                                                     const netiodaq_options* options,
                                                     const netiodaq_publish_callbacks* callbacks,
                                                     netiodaq_publish_socket** out);
/* Publishes up to 28 slices as one message. Up to 8 bytes of `header` come first; NULL and 0: none.
 * OK: on_publish_completed(key) follows. NO_SUBSCRIBERS: nothing follows. AGAIN: no subscriber got
 * it. TOO_LARGE, TOO_MANY_SEGMENTS, NOT_OWNED, CLOSED; INVALID_ARGUMENT: a slice is not within its
 * buffer, or the socket is buffered. */
netiodaq_result netiodaq_publish_socket_publishv(netiodaq_publish_socket* socket, uint64_t fid,
                                                 const netiodaq_slice* slices, uint64_t count,
                                                 uint64_t key, uint8_t status, const void* header,
                                                 uint64_t header_bytes);
/* The same without a queue in the library. PARTIAL: stores a ticket; call
 * netiodaq_publish_socket_resume in on_writable. */
netiodaq_result netiodaq_publish_socket_try_publishv(netiodaq_publish_socket* socket, uint64_t fid,
                                                     const netiodaq_slice* slices, uint64_t count,
                                                     uint64_t key, uint8_t status,
                                                     const void* header, uint64_t header_bytes,
                                                     netiodaq_ticket** out);
/* Sends the publication to those of its subscribers that it was not sent to yet. OK, PARTIAL,
 * STALE_TICKET. */
netiodaq_result netiodaq_publish_socket_resume(netiodaq_publish_socket* socket,
                                               netiodaq_ticket* ticket);
/* If the ticket is open, the library finishes its publication. */
void netiodaq_ticket_free(netiodaq_ticket* ticket);
/* Buffered: copies the message. OK, NO_SUBSCRIBERS, AGAIN, TOO_LARGE, NOT_OWNED, CLOSED. */
netiodaq_result netiodaq_publish_socket_publish_copy(netiodaq_publish_socket* socket, uint64_t fid,
                                                     const void* data, uint64_t size_bytes,
                                                     uint8_t status);
/* Buffered: sends the messages that wait in a page now. */
netiodaq_result netiodaq_publish_socket_flush(netiodaq_publish_socket* socket);
/* Registers the buffer with the devices now, not at the first publication. */
netiodaq_result netiodaq_publish_socket_prepare(netiodaq_publish_socket* socket,
                                                netiodaq_buffer* buffer);
/* Sends what was published; on_closed follows when every subscriber has confirmed it. */
netiodaq_result netiodaq_publish_socket_close(netiodaq_publish_socket* socket);
/* Closes at once; on_closed follows. */
netiodaq_result netiodaq_publish_socket_abort(netiodaq_publish_socket* socket);
/* The first address, with the port that was chosen. */
const char* netiodaq_publish_socket_address(const netiodaq_publish_socket* socket);
/* Ends at once; no callback follows, and the memory of all messages is free. */
void netiodaq_publish_socket_free(netiodaq_publish_socket* socket);

/* --- level 2: subscribe sockets -------------------------------------------------------------- */

typedef struct netiodaq_subscribe_socket netiodaq_subscribe_socket;

typedef struct netiodaq_subscribe_callbacks {
    uint64_t size_bytes;
    void* user;
    void (*on_connected)(netiodaq_subscribe_socket* socket, void* user);
    /* The publisher has accepted: messages published from now on arrive. */
    void (*on_subscribed)(netiodaq_subscribe_socket* socket, uint64_t first_fid, uint64_t last_fid,
                          void* user);
    void (*on_unsubscribed)(netiodaq_subscribe_socket* socket, uint64_t first_fid,
                            uint64_t last_fid, void* user);
    /* The publisher refuses these fids: a limit, the policy, or the rights of the key. */
    void (*on_refused)(netiodaq_subscribe_socket* socket, uint64_t first_fid, uint64_t last_fid,
                       void* user);
    /* The bytes are valid during the call; netiodaq_subscribe_socket_keep makes them valid for
     * longer. */
    void (*on_message)(netiodaq_subscribe_socket* socket, uint64_t fid, const void* data,
                       uint64_t size_bytes, uint8_t status, void* user);
    /* `count` messages of this fid were published and did not arrive: dropped by a policy, or
     * published while there was no connection. */
    void (*on_lost)(netiodaq_subscribe_socket* socket, uint64_t fid, uint64_t count, void* user);
    /* Another publisher answers; its counts start from the beginning. */
    void (*on_publisher_changed)(netiodaq_subscribe_socket* socket, void* user);
    /* retrying 1: it connects again by itself. After close or abort: the last event. */
    void (*on_closed)(netiodaq_subscribe_socket* socket, int32_t reason, const char* detail,
                      int32_t retrying, void* user);
} netiodaq_subscribe_callbacks;

/* Connects to one publisher, buffered or not, at "HOST:PORT"; further addresses of the same one are
 * separated by commas. options: NETIODAQ_SUBSCRIBE_SOCKET_OPTIONS, or NULL. */
netiodaq_result netiodaq_subscribe_socket_new(netiodaq_loop* loop, const char* addresses,
                                              const netiodaq_options* options,
                                              const netiodaq_subscribe_callbacks* callbacks,
                                              netiodaq_subscribe_socket** out);
/* Subscribes with one of NETIODAQ_POLICY_...; may be called before it is connected. */
netiodaq_result netiodaq_subscribe_socket_subscribe(netiodaq_subscribe_socket* socket,
                                                    uint64_t first_fid, uint64_t last_fid,
                                                    int32_t policy);
netiodaq_result netiodaq_subscribe_socket_unsubscribe(netiodaq_subscribe_socket* socket,
                                                      uint64_t first_fid, uint64_t last_fid);
/* Within on_message: the bytes of that call or a part of them, until the message is freed; from
 * 8 KiB on without a copy. The message has the fid and the status of the call. */
netiodaq_result netiodaq_subscribe_socket_keep(netiodaq_subscribe_socket* socket, const void* data,
                                               uint64_t size_bytes, netiodaq_message** out);
/* Stops delivery from the next message on; the publisher sees a slow subscriber. */
netiodaq_result netiodaq_subscribe_socket_pause(netiodaq_subscribe_socket* socket);
netiodaq_result netiodaq_subscribe_socket_resume(netiodaq_subscribe_socket* socket);
int32_t netiodaq_subscribe_socket_is_connected(const netiodaq_subscribe_socket* socket);
/* Closes in order; on_closed follows. */
netiodaq_result netiodaq_subscribe_socket_close(netiodaq_subscribe_socket* socket);
/* Closes at once; on_closed follows. */
netiodaq_result netiodaq_subscribe_socket_abort(netiodaq_subscribe_socket* socket);
/* Ends at once; no callback follows. */
void netiodaq_subscribe_socket_free(netiodaq_subscribe_socket* socket);

#ifdef __cplusplus
}
#endif

#endif
