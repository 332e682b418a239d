/* tuner/measure/worker_message.c: framed messages. */
#include "tuner/measure/worker_message.h"
#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { MAGIC = 0x746c6672, MAX_BODY = 256 << 20 };

typedef struct {
    uint32_t magic, kind;
    uint64_t size;
} frame_header;

static bool send_all(int fd, const void *bytes, size_t size)
{
    const char *p = bytes;
    while (size > 0) {
        ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

static bool receive_all(int fd, void *bytes, size_t size)
{
    char *p = bytes;
    while (size > 0) {
        ssize_t n = recv(fd, p, size, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        size -= (size_t)n;
    }
    return true;
}

bool tl_frame_send(int fd, tl_frame_kind kind, const tl_text *body)
{
    frame_header header = { MAGIC, (uint32_t)kind, body != NULL ? body->size : 0 };
    if ((body != NULL && body->failed) || !send_all(fd, &header, sizeof header))
        return false;
    return header.size == 0 || send_all(fd, body->data, body->size);
}

bool tl_frame_receive(int fd, tl_frame_kind *kind, tl_text *body)
{
    frame_header header;
    char part[16384];
    body->size = 0;
    if (!receive_all(fd, &header, sizeof header) || header.magic != MAGIC ||
        header.kind < TL_FRAME_CONFIG || header.kind > TL_FRAME_DIED || header.size > MAX_BODY)
        return false;
    *kind = (tl_frame_kind)header.kind;
    for (uint64_t left = header.size; left > 0;) {
        size_t n = left < sizeof part ? (size_t)left : sizeof part;
        if (!receive_all(fd, part, n))
            return false;
        tl_text_add_bytes(body, part, n);
        left -= n;
    }
    return !body->failed;
}

void tl_pack_int(tl_text *out, int64_t value)
{
    tl_text_add_bytes(out, &value, sizeof value);
}

void tl_pack_real(tl_text *out, double value)
{
    tl_text_add_bytes(out, &value, sizeof value);
}

void tl_pack_bytes(tl_text *out, const void *bytes, size_t size)
{
    tl_pack_int(out, (int64_t)size);
    if (size > 0)
        tl_text_add_bytes(out, bytes, size);
}

void tl_pack_text(tl_text *out, const char *text)
{
    tl_pack_bytes(out, text != NULL ? text : "", text != NULL ? strlen(text) + 1 : 1);
}

tl_unpacker tl_unpack(const tl_text *body)
{
    return (tl_unpacker){ tl_text_get(body), body->size, 0, false };
}

static const void *take(tl_unpacker *u, size_t size)
{
    assert(u->at <= u->size);
    if (u->failed || size > u->size - u->at) {
        u->failed = true;
        return NULL;
    }
    const void *p = u->data + u->at;
    u->at += size;
    return p;
}

int64_t tl_unpack_int(tl_unpacker *u)
{
    int64_t value = 0;
    const void *p = take(u, sizeof value);
    if (p != NULL)
        memcpy(&value, p, sizeof value);
    return value;
}

double tl_unpack_real(tl_unpacker *u)
{
    double value = 0;
    const void *p = take(u, sizeof value);
    if (p != NULL)
        memcpy(&value, p, sizeof value);
    return value;
}

const void *tl_unpack_bytes(tl_unpacker *u, size_t *size)
{
    int64_t n = tl_unpack_int(u);
    if (n < 0) {
        u->failed = true;
        n = 0;
    }
    const void *p = take(u, (size_t)n);
    *size = p != NULL ? (size_t)n : 0;
    return p;
}

const char *tl_unpack_text(tl_unpacker *u)
{
    size_t size;
    const char *text = tl_unpack_bytes(u, &size);
    if (text == NULL || size == 0 || text[size - 1] != '\0') {
        u->failed = true;
        return "";
    }
    return text;
}
