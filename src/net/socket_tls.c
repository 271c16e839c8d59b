/* Carries a TLS session's bytes over a socket.
 *
 * Outgoing records are collected in one buffer of the loop and passed to the write queue before the
 * call ends, so they reach the kernel in one write. Incoming ciphertext is decrypted directly from
 * the loop's read buffer into its plain buffer; if the owner stops reading meanwhile, the rest of
 * the ciphertext (at most one read) is kept in `held`.
 *
 * Invariant: while `held` has bytes the stream is not read, so bytes stay in order. */
#include <string.h>

#include "base/mem.h"
#include "net/socket_internal.h"
#include "net/tls_session.h"

#define GATHER_BYTES 4096
#define FLUSH_BYTES ((size_t)64 * 1024)

struct socket_tls {
    tls_session *session;
    loop_task resume;
    char *held;
    size_t held_bytes;
    size_t staged_bytes;
    bool may_have_more; /* reading stopped before the session was empty */
};

/* --- out -------------------------------------------------------------------------------------- */

static bay_err flush(net_socket *self)
{
    bay_str staged = {self->loop->cipher_buffer, self->tls->staged_bytes};
    self->tls->staged_bytes = 0;
    return staged.len == 0 ? BAY_OK : stream_queue_write(&self->queue, &staged, 1);
}

static bool stage(void *user, bay_str ciphertext)
{
    net_socket *self = user;
    while (ciphertext.len > 0) {
        size_t room = LOOP_CIPHER_BYTES - self->tls->staged_bytes;
        size_t len = ciphertext.len < room ? ciphertext.len : room;
        memcpy(self->loop->cipher_buffer + self->tls->staged_bytes, ciphertext.at, len);
        self->tls->staged_bytes += len;
        ciphertext.at += len;
        ciphertext.len -= len;
        if (self->tls->staged_bytes >= FLUSH_BYTES) {
            bay_err err = flush(self);
            if (err != BAY_OK && err != BAY_ERR_AGAIN) {
                return false;
            }
        }
    }
    return true;
}

/* Small spans (a head and its body) share one record. */
static bay_err encrypt(net_socket *self, const bay_str *spans, size_t count)
{
    char gathered[GATHER_BYTES];
    size_t len = 0;
    bay_err err = BAY_OK;
    for (size_t i = 0; i < count && err == BAY_OK; i++) {
        if (len > 0 && spans[i].len > sizeof(gathered) - len) {
            err = tls_session_write(self->tls->session, (bay_str){gathered, len}, NULL);
            len = 0;
        }
        if (err == BAY_OK && spans[i].len > sizeof(gathered)) {
            err = tls_session_write(self->tls->session, spans[i], NULL);
        } else if (err == BAY_OK && spans[i].len > 0) {
            memcpy(gathered + len, spans[i].at, spans[i].len);
            len += spans[i].len;
        }
    }
    if (err == BAY_OK) {
        err = tls_session_write(self->tls->session, (bay_str){gathered, len}, NULL);
    }
    mem_wipe(gathered, len);
    return err;
}

bay_err socket_tls_write(net_socket *self, const bay_str *spans, size_t count)
{
    bay_err encrypted = encrypt(self, spans, count);
    bay_err err = flush(self);
    if (err != BAY_OK && err != BAY_ERR_AGAIN) {
        return err;
    }
    if (encrypted != BAY_OK) {
        return self->queue.is_broken ? BAY_ERR_CLOSED : encrypted;
    }
    return stream_queue_bytes(&self->queue) > self->queue.high_bytes ? BAY_ERR_AGAIN : BAY_OK;
}

void socket_tls_end(net_socket *self)
{
    tls_session_end(self->tls->session);
    (void)flush(self); /* the next read or write detects a broken queue */
}

/* --- in --------------------------------------------------------------------------------------- */

static void shake_hands(net_socket *self)
{
    bay_diag diag = {.code = BAY_OK};
    bay_err err = tls_session_handshake(self->tls->session, &diag);
    (void)flush(self); /* an alert, too, is sent before the end */
    if (err == BAY_OK) {
        socket_say_connected(self);
    } else if (err != BAY_ERR_AGAIN) {
        socket_fail(self, BAY_ERR_TLS, diag.text);
    }
}

static void read_records(net_socket *self)
{
    socket_tls *tls = self->tls;
    tls->may_have_more = true;
    while (self->state == SOCKET_CONNECTED && self->wants_read) {
        bay_diag diag = {.code = BAY_OK};
        size_t len = 0;
        char *plain = self->loop->plain_buffer;
        bay_err err = tls_session_read(tls->session, plain, LOOP_PLAIN_BYTES, &len, &diag);
        (void)flush(self); /* answers of TLS itself, alerts */
        if (err == BAY_OK) {
            socket_say_data(self, (bay_str){plain, len});
        } else if (err == BAY_ERR_EOF) {
            socket_say_eof(self);
        } else if (err == BAY_ERR_AGAIN) {
            tls->may_have_more = false;
            return;
        } else {
            socket_fail(self, BAY_ERR_TLS, diag.text);
        }
    }
}

/* Keeps what the owner has not read; `left` may be in the old `held`. */
static void hold(net_socket *self, bay_str left)
{
    socket_tls *tls = self->tls;
    char *old = tls->held;
    tls->held = NULL;
    tls->held_bytes = 0;
    tls_session_give(tls->session, (bay_str){NULL, 0});
    if (left.len > 0 && self->state == SOCKET_CONNECTED && !self->is_eof) {
        tls->held = mem_dup(left.at, left.len);
        if (tls->held == NULL) {
            socket_fail_quietly(self, BAY_ERR_NOMEM, NULL);
        } else {
            tls->held_bytes = left.len;
        }
    }
    mem_free(old);
}

static void pump(net_socket *self)
{
    if (self->state == SOCKET_HANDSHAKING) {
        shake_hands(self);
    }
    if (self->state == SOCKET_CONNECTED) {
        read_records(self);
    }
    hold(self, tls_session_left(self->tls->session));
    if (self->state == SOCKET_CONNECTED && !self->wants_read) {
        socket_raw_read_stop(self);
    }
}

void socket_tls_input(net_socket *self, bay_str bytes)
{
    tls_session_give(self->tls->session, bytes);
    pump(self);
}

static void on_resume(void *argument)
{
    net_socket *self = argument;
    if (self->state != SOCKET_CONNECTED || !self->wants_read) {
        return;
    }
    tls_session_give(self->tls->session, (bay_str){self->tls->held, self->tls->held_bytes});
    pump(self);
    if (self->state == SOCKET_CONNECTED && self->wants_read) {
        socket_raw_read_start(self);
    }
}

void socket_tls_resume(net_socket *self)
{
    if (self->tls->may_have_more || self->tls->held_bytes > 0) {
        loop_defer(self->loop, &self->tls->resume);
    } else {
        socket_raw_read_start(self);
    }
}

/* --- making ----------------------------------------------------------------------------------- */

bay_err socket_tls_new(net_socket *self, tls_context *context, bay_str server_name, bay_diag *diag)
{
    bay_err err = loop_tls_buffers(self->loop);
    if (err != BAY_OK) {
        return err;
    }
    socket_tls *tls = mem_zalloc(sizeof(*tls));
    if (tls == NULL) {
        return BAY_ERR_NOMEM;
    }
    err = tls_session_new(context, server_name, stage, self, &tls->session, diag);
    if (err != BAY_OK) {
        mem_free(tls);
        return err;
    }
    tls->resume = (loop_task){.function = on_resume, .argument = self};
    self->tls = tls;
    return BAY_OK;
}

void socket_tls_free(net_socket *self)
{
    if (self->tls == NULL) {
        return;
    }
    loop_undefer(self->loop, &self->tls->resume);
    tls_session_free(self->tls->session);
    mem_free(self->tls->held);
    mem_free(self->tls);
    self->tls = NULL;
}

void socket_tls_start(net_socket *self)
{
    socket_raw_read_start(self);
    if (self->state == SOCKET_HANDSHAKING) {
        shake_hands(self); /* a client's first message */
    }
}

size_t socket_tls_certificate(const net_socket *self, tls_certificate_part part, char *out,
                              size_t cap)
{
    return tls_session_certificate(self->tls->session, part, out, cap);
}

bool socket_tls_is_http2(const net_socket *self)
{
    return tls_session_is_http2(self->tls->session);
}

void socket_tls_offer_http2(net_socket *self)
{
    if (!tls_session_offer_http2(self->tls->session)) {
        socket_fail_quietly(self, BAY_ERR_NOMEM, NULL);
    }
}
