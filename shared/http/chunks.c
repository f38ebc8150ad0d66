/* chunks.c - the framing of chunked requests, read byte by byte, before libmicrohttpd does.
 *
 * RFC 9112, 7.1, ends every line of it with CR LF. libmicrohttpd 0.9.75 takes a bare LF, too (connection.c,
 * process_request_body), and a proxy in front that does not would see other requests than we do. */
#include "shared/http/http_internal.h"
#include "shared/text/ascii.h"

/* Sizes of 15 digits; extensions and trailers are forgotten, so not much is taken of them: less than
 * libmicrohttpd has room for, which keeps a record of each trailer (0.9.75,
 * MHD_set_connection_value_n_nocheck_) and has an answer of its own when that does not fit. */
enum { CHUNK_DIGITS_MAX = 15, CHUNK_LINES_MAX = POOL_BYTES / 2, TRAILER_RECORD_BYTES = 64 };

static bool is_name_char(char c)
{
    return ascii_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

static bool is_text_char(char c)
{
    return c == '\t' || ((unsigned char)c >= ' ' && c != 0x7f);
}

static enum http_chunk_place size_next(struct http_chunks *chunks, char c)
{
    int digit = ascii_hex_value(c);

    if (digit >= 0) {
        chunks->left = chunks->left * 16 + (uint64_t)digit;
        return ++chunks->digits <= CHUNK_DIGITS_MAX ? CHUNK_SIZE : CHUNK_WRONG;
    }
    if (chunks->digits == 0) {
        return CHUNK_WRONG;
    }
    return c == '\r' ? CHUNK_SIZE_LF : c == ';' ? CHUNK_EXTENSION : CHUNK_WRONG;
}

/* The place behind one byte that is none of a chunk's data. */
static enum http_chunk_place chunk_next(struct http_chunks *chunks, char c)
{
    switch (chunks->place) {
    case CHUNK_SIZE: return size_next(chunks, c);
    case CHUNK_EXTENSION: return c == '\r' ? CHUNK_SIZE_LF : is_text_char(c) ? CHUNK_EXTENSION : CHUNK_WRONG;
    case CHUNK_SIZE_LF:
        chunks->digits = 0;
        return c != '\n' ? CHUNK_WRONG : chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER;
    case CHUNK_DATA_CR: return c == '\r' ? CHUNK_DATA_LF : CHUNK_WRONG;
    case CHUNK_DATA_LF: return c == '\n' ? CHUNK_SIZE : CHUNK_WRONG;
    case CHUNK_TRAILER: return c == '\r' ? CHUNK_END_LF : is_name_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_NAME:
        return c == ':' ? CHUNK_TRAILER_VALUE : is_name_char(c) ? CHUNK_TRAILER_NAME : CHUNK_WRONG;
    case CHUNK_TRAILER_VALUE:
        return c == '\r' ? CHUNK_TRAILER_LF : is_text_char(c) ? CHUNK_TRAILER_VALUE : CHUNK_WRONG;
    case CHUNK_TRAILER_LF:
        chunks->lines += TRAILER_RECORD_BYTES;
        return c == '\n' ? CHUNK_TRAILER : CHUNK_WRONG;
    case CHUNK_END_LF: return c == '\n' ? CHUNK_END : CHUNK_WRONG;
    case CHUNK_DATA:
    case CHUNK_END:
    case CHUNK_WRONG: break;
    }
    return chunks->place;
}

size_t http_chunks_feed(struct http_chunks *chunks, struct bytes block)
{
    size_t at = 0;

    while (at < block.len && chunks->place != CHUNK_END && chunks->place != CHUNK_WRONG) {
        if (chunks->place == CHUNK_DATA) {
            size_t len = block.len - at < chunks->left ? block.len - at : (size_t)chunks->left;

            at += len;
            chunks->left -= len;
            chunks->place = chunks->left > 0 ? CHUNK_DATA : CHUNK_DATA_CR;
            continue;
        }
        chunks->lines = chunks->place == CHUNK_DATA_LF ? 0 : chunks->lines + 1;
        chunks->place = chunks->lines > CHUNK_LINES_MAX ? CHUNK_WRONG : chunk_next(chunks, block.at[at++]);
    }
    return at;
}
