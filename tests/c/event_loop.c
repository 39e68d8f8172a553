/* SPDX-License-Identifier: Apache-2.0 */
/* Level 2: loop, timers, signals, watches; send and listen sockets. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <threads.h>
#include <unistd.h>

static netiodaq_loop* loop;
static int calls;

static void run_until(const int* condition) {
    while (!*condition)
        CHECK_OK(netiodaq_loop_run_once(loop, deadline_ms));
}

/* --- loop ---------------------------------------------------------------------------------------
 */

static void stop_after_three(netiodaq_timer* timer, void* user) {
    ++*(int*)user;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "running already", netiodaq_loop_run(loop));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_run_once(loop, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_dispatch(loop));
    if (*(int*)user < 3) return;
    netiodaq_timer_free(timer); /* in its own callback */
    CHECK_OK(netiodaq_loop_stop(loop));
}

static void timers(void) {
    netiodaq_timer* timer = NULL;
    calls = 0;
    CHECK_OK(netiodaq_timer_new(loop, stop_after_three, &calls, &timer));
    CHECK_OK(netiodaq_timer_start_s(timer, 1000));
    CHECK_OK(netiodaq_timer_stop(timer));
    CHECK_OK(netiodaq_timer_start_us(timer, 1000000000));
    CHECK_OK(netiodaq_timer_start_ms(timer, 1));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "netiodaq_timer_start_us: the period is 0",
                netiodaq_timer_start_us(timer, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_timer_start_s(timer, UINT64_MAX));
    CHECK_OK(netiodaq_loop_run(loop));
    CHECK(calls == 3);
    CHECK_OK(netiodaq_timer_new(loop, stop_after_three, &calls, &timer));
    CHECK_OK(netiodaq_timer_start_once_us(timer, UINT64_MAX)); /* never */
    CHECK_OK(netiodaq_timer_start_once_us(timer, 0));
    CHECK_OK(netiodaq_loop_run(loop));
    CHECK(calls == 4);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "function is NULL",
                netiodaq_timer_new(loop, NULL, NULL, &timer));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_timer_new(NULL, stop_after_three, NULL, &timer));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_timer_start_s(NULL, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_timer_start_ms(NULL, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_timer_start_once_us(NULL, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_timer_stop(NULL));
    netiodaq_timer_free(NULL);
}

static netiodaq_timer* watched_timer;

/* From another thread, while the loop runs. */
static int fire_from_elsewhere(void* signal) {
    CHECK_FAILS(NETIODAQ_WRONG_THREAD, "another thread runs the loop",
                netiodaq_timer_stop(watched_timer));
    CHECK_RESULT(NETIODAQ_WRONG_THREAD, netiodaq_loop_run(loop));
    CHECK(netiodaq_loop_fd(loop) == -1);
    CHECK_OK(netiodaq_signal_fire((netiodaq_signal*)signal));
    return 0;
}

static void on_signal(netiodaq_signal* signal, void* user) {
    ++*(int*)user;
    netiodaq_signal_free(signal); /* in its own callback */
    CHECK_OK(netiodaq_loop_stop(loop));
}

static thrd_t other;

static void start_other_thread(void* signal) {
    CHECK(thrd_create(&other, fire_from_elsewhere, signal) == thrd_success);
}

static void signals(void) {
    netiodaq_signal* signal = NULL;
    calls = 0;
    CHECK_OK(netiodaq_timer_new(loop, stop_after_three, &calls, &watched_timer));
    CHECK_OK(netiodaq_signal_new(loop, on_signal, &calls, &signal));
    CHECK_OK(netiodaq_loop_post(loop, start_other_thread, signal)); /* runs first */
    CHECK_OK(netiodaq_loop_run(loop));
    CHECK(thrd_join(other, NULL) == thrd_success);
    CHECK(calls == 1);
    netiodaq_timer_free(watched_timer);

    CHECK_OK(netiodaq_signal_new(loop, on_signal, &calls, &signal));
    CHECK_OK(netiodaq_signal_fire(signal));
    netiodaq_signal_free(signal); /* it was fired and is not called any more */
    CHECK_OK(netiodaq_loop_run_once(loop, 0));
    CHECK(calls == 1);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_signal_new(loop, NULL, NULL, &signal));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_signal_fire(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_post(loop, NULL, NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_post(NULL, start_other_thread, NULL));
    netiodaq_signal_free(NULL);
}

static int last_number;

static void on_watch(netiodaq_watch* watch, int32_t number, void* user) {
    ++*(int*)user;
    last_number = number;
    netiodaq_watch_free(watch); /* in its own callback */
}

static void watches(void) {
    netiodaq_watch* watch = NULL;
    const int32_t numbers[] = {SIGUSR1, SIGUSR2};
    calls = 0;
    CHECK_OK(netiodaq_watch_new_os_signals(loop, numbers, 2, on_watch, &calls, &watch));
    CHECK(raise(SIGUSR2) == 0);
    run_until(&calls);
    CHECK(last_number == SIGUSR2);

    int ends[2];
    calls = 0;
    CHECK(pipe(ends) == 0);
    CHECK_OK(netiodaq_watch_new_descriptor(loop, ends[0], 0, on_watch, &calls, &watch));
    CHECK_OK(netiodaq_loop_run_once(loop, 0));
    CHECK(calls == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    run_until(&calls);
    CHECK(last_number == ends[0]);
    calls = 0;
    CHECK_OK(netiodaq_watch_new_descriptor(loop, ends[1], 1, on_watch, &calls, &watch));
    run_until(&calls);
    CHECK(last_number == ends[1]);
    close(ends[0]);
    close(ends[1]);
    CHECK_RESULT(NETIODAQ_NETWORK_ERROR,
                 netiodaq_watch_new_descriptor(loop, 12345, 0, on_watch, NULL, &watch));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_watch_new_os_signals(loop, NULL, 2, on_watch, NULL, &watch));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_watch_new_os_signals(loop, numbers, 0, on_watch, NULL, &watch));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_watch_new_descriptor(loop, 0, 0, NULL, NULL, &watch));
    netiodaq_watch_free(NULL);
}

static void count_call(void* user) {
    ++*(int*)user;
}

static void inside_another_loop(void) {
    calls = 0;
    struct pollfd waiting = {.fd = netiodaq_loop_fd(loop), .events = POLLIN};
    CHECK(waiting.fd >= 0 && netiodaq_loop_fd(NULL) == -1);
    CHECK_OK(netiodaq_loop_dispatch(loop));
    CHECK_OK(netiodaq_loop_post(loop, count_call, &calls));
    CHECK(poll(&waiting, 1, deadline_ms) == 1);
    CHECK_OK(netiodaq_loop_dispatch(loop));
    CHECK(calls == 1);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_run(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_run_once(NULL, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_dispatch(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_stop(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_loop_new(NULL, NULL));
    netiodaq_loop_free(NULL);
}

/* --- send and listen sockets ---------------------------------------------------------------------
 */

typedef struct {
    int connected, completed, writable, closed; /* at the sender */
    int peers, received, left, listen_closed;   /* at the listener */
    int32_t reason, outcome;
    uint64_t key, size, immediate;
    netiodaq_message* kept;
    netiodaq_receive_socket* peer;
    int free_when_closed;
} seen;

static void on_connected(netiodaq_send_socket* socket, void* user) {
    CHECK(netiodaq_send_socket_is_connected(socket) == 1);
    ++((seen*)user)->connected;
}
static void on_send_completed(netiodaq_send_socket* socket, uint64_t key, int32_t outcome,
                              void* user) {
    (void)socket;
    ++((seen*)user)->completed;
    ((seen*)user)->key = key;
    ((seen*)user)->outcome = outcome;
}
static void on_writable(netiodaq_send_socket* socket, void* user) {
    (void)socket;
    ++((seen*)user)->writable;
}
static void on_closed(netiodaq_send_socket* socket, int32_t reason, const char* detail,
                      int32_t retrying, void* user) {
    CHECK(retrying == 0 && detail != NULL);
    ++((seen*)user)->closed;
    ((seen*)user)->reason = reason;
    if (((seen*)user)->free_when_closed) netiodaq_send_socket_free(socket);
}
static void on_peer(netiodaq_receive_socket* socket, void* user) {
    char address[64];
    char few[5];
    ++((seen*)user)->peers;
    ((seen*)user)->peer = socket;
    CHECK(netiodaq_receive_socket_user(socket) == NULL);
    CHECK_OK(netiodaq_receive_socket_set_user(socket, user));
    CHECK_OK(netiodaq_receive_socket_peer_address(socket, address, sizeof address));
    CHECK(strncmp(address, "127.0.0.1:", 10) == 0);
    CHECK_OK(netiodaq_receive_socket_peer_address(socket, few, sizeof few));
    CHECK(strcmp(few, "127.") == 0);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_peer_address(socket, few, 0));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_peer_address(socket, NULL, 9));
    netiodaq_message* message = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "within its on_message only",
                netiodaq_receive_socket_keep(socket, "x", 1, &message));
}
static void on_message(netiodaq_receive_socket* socket, const void* data, uint64_t size_bytes,
                       const uint64_t* immediate, void* user) {
    seen* to = (seen*)user;
    CHECK(netiodaq_receive_socket_user(socket) == user);
    ++to->received;
    to->size = size_bytes;
    to->immediate = immediate != NULL ? *immediate : 0;
    netiodaq_message_free(to->kept);
    CHECK_OK(netiodaq_receive_socket_keep(socket, data, size_bytes, &to->kept));
    netiodaq_message* wrong = NULL;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "not within the message",
                netiodaq_receive_socket_keep(socket, "elsewhere", 1, &wrong));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "no memory is so large",
                netiodaq_receive_socket_keep(socket, data, UINT64_MAX, &wrong));
}
static void on_peer_closed(netiodaq_receive_socket* socket, int32_t reason, const char* detail,
                           void* user) {
    CHECK(netiodaq_receive_socket_user(socket) == user && detail != NULL && reason >= 0);
    ++((seen*)user)->left;
}
static void on_listen_closed(netiodaq_listen_socket* socket, int32_t reason, const char* detail,
                             void* user) {
    CHECK(detail != NULL && reason >= 0);
    ++((seen*)user)->listen_closed;
    netiodaq_listen_socket_free(socket); /* in its own callback */
}

static netiodaq_send_callbacks send_callbacks(seen* user) {
    return (netiodaq_send_callbacks){.size_bytes = sizeof(netiodaq_send_callbacks),
                                     .user = user,
                                     .on_connected = on_connected,
                                     .on_send_completed = on_send_completed,
                                     .on_writable = on_writable,
                                     .on_closed = on_closed};
}

static netiodaq_listen_socket* listening(seen* user) {
    netiodaq_listen_socket* listener = NULL;
    const netiodaq_listen_callbacks callbacks = {.size_bytes = sizeof callbacks,
                                                 .user = user,
                                                 .on_connected = on_peer,
                                                 .on_message = on_message,
                                                 .on_closed = on_peer_closed,
                                                 .on_listen_closed = on_listen_closed};
    CHECK_OK(netiodaq_listen_socket_new(loop, "127.0.0.1:0", NULL, &callbacks, &listener));
    return listener;
}

static void slices(netiodaq_send_socket* socket, netiodaq_buffer* buffer) {
    netiodaq_slice many[29];
    for (int i = 0; i < 29; ++i)
        many[i] = (netiodaq_slice){.buffer = buffer, .offset_bytes = 0, .size_bytes = 1};
    CHECK_RESULT(NETIODAQ_TOO_MANY_SEGMENTS, netiodaq_send_socket_sendv(socket, many, 29, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_sendv(socket, NULL, 1, 1));
    many[0].offset_bytes = netiodaq_buffer_size_bytes(buffer);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "is not within its buffer",
                netiodaq_send_socket_sendv(socket, many, 1, 1));
    many[0].offset_bytes = 2;
    many[0].size_bytes = UINT64_MAX;
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_sendv(socket, many, 1, 1));
    many[0].buffer = NULL;
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_sendv(socket, many, 1, 1));
    many[0] = (netiodaq_slice){.buffer = buffer, .size_bytes = 100000};
    CHECK_RESULT(NETIODAQ_TOO_LARGE, netiodaq_send_socket_sendv(socket, many, 1, 1));
}

static void unbuffered(void) {
    static seen from, to;
    netiodaq_listen_socket* listener = listening(&to);
    const netiodaq_send_callbacks callbacks = send_callbacks(&from);
    netiodaq_send_socket* socket = NULL;
    netiodaq_buffer* buffer = NULL;
    CHECK_OK(netiodaq_buffer_new(loop, 200000, &buffer));
    CHECK_OK(netiodaq_send_socket_new(loop, NULL, &callbacks, &socket));
    netiodaq_slice two[] = {{buffer, 0, 10000}, {buffer, 20000, 10000}};
    CHECK_RESULT(NETIODAQ_CLOSED, netiodaq_send_socket_sendv(socket, two, 2, 1));
    CHECK(netiodaq_send_socket_message_limit_bytes(socket) == 0);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_connect(socket, "nonsense"));
    CHECK_OK(netiodaq_send_socket_connect(socket, netiodaq_listen_socket_address(listener)));
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "connected or connecting",
                netiodaq_send_socket_connect(socket, netiodaq_listen_socket_address(listener)));
    run_until(&from.connected);
    CHECK(netiodaq_send_socket_message_limit_bytes(socket) > 20000);
    slices(socket, buffer);
    memset(netiodaq_buffer_data(buffer), 'a', 10000);
    memset((char*)netiodaq_buffer_data(buffer) + 20000, 'b', 10000);
    CHECK_OK(netiodaq_send_socket_sendv_immediate(socket, two, 2, 42, 4711));
    run_until(&to.received);
    run_until(&from.completed);
    CHECK(from.key == 42 && from.outcome == NETIODAQ_SEND_DONE);
    CHECK(to.size == 20000 && to.immediate == 4711);
    CHECK(((const char*)netiodaq_message_data(to.kept))[9999] == 'a');
    CHECK(((const char*)netiodaq_message_data(to.kept))[10000] == 'b');
    CHECK(netiodaq_message_size_bytes(to.kept) == 20000);

    CHECK_OK(netiodaq_receive_socket_pause(to.peer));
    netiodaq_result result = NETIODAQ_OK; /* until all receive buffers are full */
    for (int i = 0; i < 100000 && result == NETIODAQ_OK; ++i) {
        result = netiodaq_send_socket_send_copy(socket, "few bytes", 9);
        CHECK_OK(netiodaq_loop_run_once(loop, 0));
    }
    CHECK(result == NETIODAQ_AGAIN);
    CHECK_RESULT(NETIODAQ_TOO_LARGE,
                 netiodaq_send_socket_send_copy(socket, netiodaq_buffer_data(buffer), 49));
    CHECK_OK(netiodaq_receive_socket_resume(to.peer));
    run_until(&from.writable);
    CHECK_OK(netiodaq_send_socket_flush(socket));
    CHECK_OK(netiodaq_send_socket_disconnect(socket));
    run_until(&from.closed);
    CHECK(from.reason == NETIODAQ_CLOSE_ORDERLY && to.size == 9);
    run_until(&to.left);
    CHECK_OK(netiodaq_listen_socket_close(listener));
    run_until(&to.listen_closed);
    netiodaq_send_socket_free(socket);
    netiodaq_buffer_free(buffer);
    netiodaq_message_free(to.kept);
}

static void buffered(void) {
    static seen from, to;
    netiodaq_listen_socket* listener = listening(&to);
    const netiodaq_send_callbacks callbacks = send_callbacks(&from);
    netiodaq_send_socket* socket = NULL;
    netiodaq_options* options = NULL;
    from.free_when_closed = 1;
    CHECK_OK(netiodaq_options_new(NETIODAQ_BUFFERED_SEND_SOCKET_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "flush_time", "100us"));
    CHECK_OK(netiodaq_options_set(options, "socket.session.close_timeout", "30s"));
    CHECK_OK(netiodaq_send_socket_new_buffered(loop, options, &callbacks, &socket));
    netiodaq_options_free(options);
    CHECK_OK(netiodaq_send_socket_connect(socket, netiodaq_listen_socket_address(listener)));
    run_until(&from.connected);
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "the socket is buffered",
                netiodaq_send_socket_sendv(socket, NULL, 0, 1));
    static char large[100000];
    CHECK_OK(netiodaq_send_socket_send_copy(socket, large, sizeof large));
    CHECK_OK(netiodaq_send_socket_flush(socket));
    run_until(&to.received);
    CHECK(to.size == sizeof large && to.immediate == 0);
    CHECK_OK(netiodaq_receive_socket_close(to.peer));
    run_until(&from.closed); /* it frees the socket */
    run_until(&to.left);
    CHECK_OK(netiodaq_listen_socket_abort(listener));
    run_until(&to.listen_closed);
    netiodaq_message_free(to.kept);
}

static void failures(void) {
    static seen from;
    netiodaq_send_callbacks callbacks = send_callbacks(&from);
    netiodaq_send_socket* socket = NULL;
    netiodaq_listen_socket* listener = NULL;
    CHECK_OK(netiodaq_send_socket_new(loop, NULL, &callbacks, &socket));
    CHECK_OK(netiodaq_send_socket_connect(socket, "127.0.0.1:1"));
    run_until(&from.closed);
    CHECK(from.reason == NETIODAQ_CLOSE_REFUSED);
    CHECK_OK(netiodaq_send_socket_connect(socket, "127.0.0.1:1")); /* again */
    CHECK_OK(netiodaq_send_socket_abort(socket));
    netiodaq_send_socket_free(socket); /* while it connects: silent */
    callbacks.size_bytes = 0;
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "callbacks->size_bytes is 0",
                netiodaq_send_socket_new(loop, NULL, &callbacks, &socket));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_new(loop, NULL, NULL, &socket));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_send_socket_new_buffered(loop, NULL, NULL, &socket));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_listen_socket_new(loop, "127.0.0.1:0", NULL, NULL, &listener));
    const netiodaq_listen_callbacks none = {.size_bytes = sizeof none};
    CHECK_FAILS(NETIODAQ_INVALID_ARGUMENT, "allow_remote_anonymous",
                netiodaq_listen_socket_new(loop, "0.0.0.0:0", NULL, &none, &listener));
    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_LISTEN_SOCKET_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "allow_remote_anonymous", "true"));
    CHECK_FAILS(NETIODAQ_NETWORK_ERROR, "192.0.2.1",
                netiodaq_listen_socket_new(loop, "192.0.2.1:0", options, &none, &listener));
    netiodaq_options_free(options);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_connect(NULL, "127.0.0.1:1"));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_disconnect(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_abort(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_sendv(NULL, NULL, 0, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT,
                 netiodaq_send_socket_sendv_immediate(NULL, NULL, 0, 1, 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_send_copy(NULL, "x", 1));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_send_socket_flush(NULL));
    CHECK(netiodaq_send_socket_is_connected(NULL) == 0);
    CHECK(netiodaq_send_socket_message_limit_bytes(NULL) == 0);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_listen_socket_close(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_listen_socket_abort(NULL));
    CHECK(netiodaq_listen_socket_address(NULL) == NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_set_user(NULL, NULL));
    CHECK(netiodaq_receive_socket_user(NULL) == NULL);
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_pause(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_resume(NULL));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_receive_socket_close(NULL));
    netiodaq_buffer* buffer = NULL;
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_buffer_new(loop, 0, &buffer));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_buffer_new(NULL, 1, &buffer));
    CHECK_RESULT(NETIODAQ_INVALID_ARGUMENT, netiodaq_buffer_new_of_memory(loop, NULL, 1, &buffer));
    CHECK(netiodaq_buffer_new(loop, UINT64_MAX / 2, &buffer) < 0 && buffer == NULL);
    CHECK(netiodaq_buffer_data(NULL) == NULL && netiodaq_buffer_size_bytes(NULL) == 0);
    netiodaq_send_socket_free(NULL);
    netiodaq_listen_socket_free(NULL);
    netiodaq_buffer_free(NULL);
}

/* A sender of level 1, which has a thread of its own. */
static void from_any_thread(void) {
    static seen to;
    netiodaq_listen_socket* listener = listening(&to);
    netiodaq_sender* sender = NULL;
    CHECK_OK(netiodaq_sender_new(NULL, netiodaq_listen_socket_address(listener), NULL, &sender));
    CHECK_OK(netiodaq_sender_send(sender, "text", 4));
    CHECK_OK(netiodaq_sender_try_send(sender, NULL, 0));
    while (to.received < 2)
        CHECK_OK(netiodaq_loop_run_once(loop, deadline_ms));
    CHECK(to.size == 0);
    netiodaq_sender_stats stats = {.size_bytes = sizeof stats};
    CHECK_OK(netiodaq_sender_get_stats(sender, &stats));
    CHECK(stats.sent == 2 && stats.connected == 1);
    netiodaq_listen_socket_free(listener); /* at once: the connection is lost for the sender */
    CHECK_OK(netiodaq_sender_close(sender));
    netiodaq_sender_free(sender);
    netiodaq_message_free(to.kept);
}

int main(void) {
    CHECK_OK(netiodaq_set_log(NULL, NULL));
    netiodaq_options* options = NULL;
    CHECK_OK(netiodaq_options_new(NETIODAQ_LOOP_OPTIONS, &options));
    CHECK_OK(netiodaq_options_set(options, "fabric.provider", "tcp"));
    CHECK_OK(netiodaq_loop_new(options, &loop));
    netiodaq_options_free(options);
    timers();
    signals();
    watches();
    inside_another_loop();
    unbuffered();
    buffered();
    failures();
    from_any_thread();
    netiodaq_loop_free(loop);
    return 0;
}
