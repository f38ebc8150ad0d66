/* intents.c - the list of the intents of this process that are open. */
#include "gateway/intent/intents.h"

#include "shared/text/memory.h"

#include <assert.h>
#include <stdlib.h>

/* -- all of the process */

void intents_init(struct intents *intents)
{
    *intents = (struct intents){.first = NULL};
    if (pthread_mutex_init(&intents->mutex, NULL) != 0) {
        abort();
    }
}

void intents_done(struct intents *intents)
{
    while (intents->first != NULL) {
        struct intent *next = intents->first->next;

        free(intents->first);
        intents->first = next;
    }
    pthread_mutex_destroy(&intents->mutex);
}

unsigned intents_count(struct intents *intents)
{
    unsigned count;

    pthread_mutex_lock(&intents->mutex);
    count = intents->count;
    pthread_mutex_unlock(&intents->mutex);
    return count;
}

static bool is_to_tell(const struct intent *one)
{
    return !one->told_again &&
           (one->word == INTENT_OPEN || one->word == INTENT_UNKNOWN || one->word == INTENT_KEPT);
}

unsigned intents_copy(struct intents *intents, struct intent *into, unsigned most)
{
    unsigned count = 0;

    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = intents->first; one != NULL && count < most; one = one->next) {
        if (is_to_tell(one) && (count == 0 || one->stripe == into[0].stripe)) {
            one->told_again = true;
            into[count].stripe = one->stripe;
            into[count].len = one->len;
            memcpy(into[count++].text, one->text, one->len);
        }
    }
    pthread_mutex_unlock(&intents->mutex);
    return count;
}

void intents_again(struct intents *intents)
{
    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = intents->first; one != NULL; one = one->next) {
        one->told_again = false;
    }
    pthread_mutex_unlock(&intents->mutex);
}

static void intents_add(struct intents *intents, struct intent *intent)
{
    pthread_mutex_lock(&intents->mutex);
    intent->prev = NULL;
    intent->next = intents->first;
    if (intent->next != NULL) {
        intent->next->prev = intent;
    }
    intents->first = intent;
    intents->count += intent->word != INTENT_ASKED;
    pthread_mutex_unlock(&intents->mutex);
}

/* With the mutex held. */
static void intents_unlink(struct intents *intents, struct intent *intent)
{
    if (intent->prev != NULL) {
        intent->prev->next = intent->next;
    } else {
        intents->first = intent->next;
    }
    if (intent->next != NULL) {
        intent->next->prev = intent->prev;
    }
    intents->count -= intent->word != INTENT_ASKED;
}

void intents_drop(struct intents *intents, struct intent *intent)
{
    pthread_mutex_lock(&intents->mutex);
    intents_unlink(intents, intent);
    pthread_mutex_unlock(&intents->mutex);
    free(intent);
}

/* -- one */

struct bytes intent_part(struct bytes text, enum intent_part part)
{
    const char *at = text.at, *end = text.at + text.len;

    for (unsigned i = 0; at != NULL && i < (unsigned)part; i++) {
        const char *space = memchr(at, ' ', (size_t)(end - at));

        at = space != NULL ? space + 1 : NULL;
    }
    if (at == NULL) {
        return (struct bytes){NULL, 0};
    }
    const char *space = memchr(at, ' ', (size_t)(end - at));
    return (struct bytes){at, (size_t)((space != NULL ? space : end) - at)};
}

static struct intent *intent_make(struct intents *intents, unsigned stripe, struct bytes text,
                                  enum intent_word word)
{
    struct intent *intent = must_have(malloc(sizeof(*intent)));

    assert(text.len <= INTENT_TEXT_MAX);
    intent->after = NULL;
    intent->word = word;
    intent->stripe = stripe;
    intent->told_again = intent->is_second = intent->is_shown = false;
    intent->len = text.len;
    memcpy(intent->text, text.at, text.len);
    intents_add(intents, intent);
    return intent;
}

struct intent *intent_new(struct intents *intents, unsigned stripe, struct bytes text)
{
    return intent_make(intents, stripe, text, INTENT_OPEN);
}

struct intent *intent_ask(struct intents *intents, unsigned stripe, struct bytes text)
{
    return intent_make(intents, stripe, text, INTENT_ASKED);
}

/* With the mutex held. */
static void word_put(struct intents *intents, struct intent *intent, enum intent_word word)
{
    intents->count += intent->word == INTENT_ASKED;
    intent->word = word;
}

static void text_put(struct intent *intent, struct bytes text)
{
    assert(intent->word == INTENT_ASKED && text.len <= INTENT_TEXT_MAX);
    intent->len = text.len;
    memcpy(intent->text, text.at, text.len);
}

void intent_recorded(struct intents *intents, struct intent *intent, struct bytes text)
{
    pthread_mutex_lock(&intents->mutex);
    text_put(intent, text);
    word_put(intents, intent, INTENT_OPEN);
    intent->told_again = true; /* this very store has it; else there would be no end of telling under load */
    pthread_mutex_unlock(&intents->mutex);
}

void intent_text(struct intents *intents, struct intent *intent, struct bytes text)
{
    pthread_mutex_lock(&intents->mutex);
    text_put(intent, text);
    pthread_mutex_unlock(&intents->mutex);
}

void intent_add_ids(struct intents *intents, struct intent *intent, struct bytes ids)
{
    struct bytes kind = intent_part((struct bytes){intent->text, intent->len}, INTENT_KIND);
    char *at = intent->text + (kind.at - intent->text) + kind.len;

    pthread_mutex_lock(&intents->mutex);
    assert(intent->word == INTENT_OPEN && kind.len > 0 && intent->len + ids.len <= INTENT_TEXT_MAX);
    memmove(at + ids.len, at, (size_t)(intent->text + intent->len - at));
    memcpy(at, ids.at, ids.len);
    intent->len += ids.len;
    pthread_mutex_unlock(&intents->mutex);
}

void intent_set_word(struct intents *intents, struct intent *intent, enum intent_word word)
{
    assert(word != INTENT_ASKED && word != INTENT_OPEN);
    pthread_mutex_lock(&intents->mutex);
    assert(intent->word == INTENT_ASKED || intent->word == INTENT_OPEN);
    word_put(intents, intent, word);
    pthread_mutex_unlock(&intents->mutex);
}

/* Both of this process. An admission that is under way is known by its number alone. */
static bool is_same(const struct intent *one, struct bytes text)
{
    const enum intent_part short_id = INTENT_SEQ; /* the last of its four words */
    static const enum intent_part parts[] = {INTENT_NAME,    INTENT_EPOCH,       INTENT_TOKEN, INTENT_SEQ,
                                             INTENT_GATEWAY, INTENT_INCARNATION, INTENT_ID};
    struct bytes own = {one->text, one->len};

    if (intent_part(own, INTENT_ID).len == 0) {
        return bytes_equal(intent_part(own, short_id), intent_part(text, INTENT_ID));
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (!bytes_equal(intent_part(own, parts[i]), intent_part(text, parts[i]))) {
            return false;
        }
    }
    return true;
}

bool intents_have(struct intents *intents, unsigned stripe, struct bytes text)
{
    bool has = false;

    pthread_mutex_lock(&intents->mutex);
    for (const struct intent *one = intents->first; one != NULL && !has; one = one->next) {
        has = one->stripe == stripe && is_same(one, text);
    }
    pthread_mutex_unlock(&intents->mutex);
    return has;
}

void intents_drop_unknown(struct intents *intents, unsigned stripe, struct bytes text)
{
    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = intents->first; one != NULL; one = one->next) {
        struct bytes own = {one->text, one->len};

        if ((one->word != INTENT_OPEN && one->word != INTENT_UNKNOWN) || one->stripe != stripe ||
            !is_same(one, text)) {
            continue;
        }
        if (one->word == INTENT_UNKNOWN && bytes_are(intent_part(own, INTENT_STATE), "u")) {
            intents_unlink(intents, one); /* no closer has it any more */
            free(one);
        } else {
            one->is_shown = true;
        }
        break;
    }
    pthread_mutex_unlock(&intents->mutex);
}

void intents_keep(struct intents *intents, unsigned stripe, struct bytes text)
{
    if (text.len <= INTENT_TEXT_MAX) {
        intent_make(intents, stripe, text, INTENT_KEPT);
    }
}

void intents_age_kept(struct intents *intents, unsigned stripe)
{
    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = intents->first; one != NULL; one = one->next) {
        one->is_second |= one->word == INTENT_KEPT && one->stripe == stripe;
    }
    pthread_mutex_unlock(&intents->mutex);
}

void intents_forget_kept(struct intents *intents, unsigned stripe)
{
    pthread_mutex_lock(&intents->mutex);
    for (struct intent *one = intents->first, *next; one != NULL; one = next) {
        next = one->next;
        if (one->word == INTENT_KEPT && one->is_second && one->stripe == stripe) {
            intents_unlink(intents, one);
            free(one);
        }
    }
    pthread_mutex_unlock(&intents->mutex);
}

void intents_unknown(struct intents *intents, struct intent *intent)
{
    struct bytes state = intent_part((struct bytes){intent->text, intent->len}, INTENT_STATE);

    pthread_mutex_lock(&intents->mutex);
    if (intent->is_shown) {
        intents_unlink(intents, intent);
        free(intent);
    } else if (state.len == 1) {
        intent->text[state.at - intent->text] = 'u';
    }
    pthread_mutex_unlock(&intents->mutex);
}
