/* test_store_subscriber.c - messages of a real Redis: in order, none from before the confirmation, and an end
 * of hearing that is told, once. */
#include "tests/component/store_relay.h"
#include "tests/unit/drawing.h"

enum { SHORT_MS = 150, TIMEOUT_MS = 1000, MANY = 5000, LOG_MAX = 4000, LARGEST = 16 * 1024, CUT_BYTES = 84 };

/* Every arrow that a subscriber of these tests has gone: f to t is bit t of element f. */
static unsigned walked[SUBSCRIBER_STATES];

struct listener {
    struct store_subscriber_owner owner;
    struct loop *loop;
    struct store_subscriber *subscriber;
    unsigned heard, listens, deaf, inside;
    uint64_t number_at_listens;
    size_t longest;
    bool calling; /* inside a call of the subscriber's */
    char log[LOG_MAX + 1];
    void (*then)(struct listener *listener, struct bytes channel);
};

static void note(struct listener *listener, struct bytes what, struct bytes channel, struct bytes message)
{
    size_t len = strlen(listener->log);

    snprintf(listener->log + len, LOG_MAX - len, "%.*s%.*s%.*s ", (int)what.len, what.at, (int)channel.len,
             channel.at, (int)(message.len < 40 ? message.len : 40), message.at != NULL ? message.at : "");
    listener->inside += listener->calling;
}

static void on_heard(struct store_subscriber_owner *owner, struct bytes channel, struct bytes message)
{
    struct listener *listener = container_of(owner, struct listener, owner);

    listener->heard++;
    listener->longest = message.len > listener->longest ? message.len : listener->longest;
    note(listener, BYTES("="), channel, message);
    if (listener->then != NULL)
        listener->then(listener, channel);
}

static void on_listens(struct store_subscriber_owner *owner, struct bytes channel)
{
    struct listener *listener = container_of(owner, struct listener, owner);

    listener->listens++;
    listener->number_at_listens = listener->subscriber->number;
    note(listener, BYTES("+"), channel, BYTES(""));
    if (listener->then != NULL)
        listener->then(listener, channel);
}

static void on_deaf(struct store_subscriber_owner *owner)
{
    struct listener *listener = container_of(owner, struct listener, owner);

    listener->deaf++;
    note(listener, BYTES("-"), BYTES(""), BYTES(""));
    if (listener->then != NULL)
        listener->then(listener, (struct bytes){NULL, 0});
}

static void listener_open_url(struct listener *listener, const char *url, const char *password,
                              unsigned timeout_ms)
{
    *listener = (struct listener){
        .owner = {on_heard, on_listens, on_deaf}, .loop = loop_new(), .calling = true};
    listener->subscriber = store_subscriber_open(
        listener->loop, &(struct store_options){.url = url, .password = password, .timeout_ms = timeout_ms},
        &listener->owner);
    listener->calling = false;
}

static void listener_close(struct listener *listener)
{
    enum subscriber_state last = listener->subscriber->state;

    for (unsigned i = 0; i < SUBSCRIBER_STATES; i++)
        walked[i] |= listener->subscriber->walked[i];
    walked[last] |= 1u << SUBSCRIBER_IDLE;
    listener->calling = true;
    store_subscriber_close(listener->subscriber);
    loop_free(listener->loop);
    CHECK_INT(listener->inside, 0);
}

/* A test with a listener, which has no subscriber yet, and a relay to a Redis of its own. */
#define TEST_RELAYED(sentence)                                                                               \
    static void sentence##_on(struct redis *redis, struct listener *listener, struct relay *relay);          \
    TEST_REDIS(sentence)                                                                                     \
    {                                                                                                        \
        struct listener listener = {.owner = {on_heard, on_listens, on_deaf}, .loop = loop_new()};           \
        struct relay relay;                                                                                  \
                                                                                                             \
        relay_open(&relay, listener.loop, redis);                                                            \
        sentence##_on(redis, &listener, &relay);                                                             \
        relay_close(&relay);                                                                                 \
        loop_free(listener.loop);                                                                            \
        CHECK_INT(listener.inside, 0);                                                                       \
    }                                                                                                        \
    static void sentence##_on(struct redis *redis, struct listener *listener, struct relay *relay)

static void relay_subscriber(struct listener *listener, const struct relay *relay, unsigned timeout_ms)
{
    struct store_options options = {.url = textf("unix://%s", relay->path), .timeout_ms = timeout_ms};

    listener->subscriber = store_subscriber_open(listener->loop, &options, &listener->owner);
}

/* A test with a subscriber at a Redis of its own. */
#define TEST_SUBSCRIBER(sentence, timeout_ms)                                                                \
    static void sentence##_on(struct redis *redis, struct listener *listener);                               \
    TEST_REDIS(sentence)                                                                                     \
    {                                                                                                        \
        struct listener listener;                                                                            \
                                                                                                             \
        listener_open_url(&listener, redis->url, NULL, timeout_ms);                                          \
        sentence##_on(redis, &listener);                                                                     \
        listener_close(&listener);                                                                           \
    }                                                                                                        \
    static void sentence##_on(struct redis *redis, struct listener *listener)

static void subscribe(struct listener *listener, const char *channel)
{
    listener->calling = true;
    store_subscriber_subscribe(listener->subscriber, bytes_of(channel));
    listener->calling = false;
}

static void listen_to(struct listener *listener, const char *channel)
{
    subscribe(listener, channel);
    WAIT(listener, listener->listens == 1, 2000);
}

static void unsubscribe(struct listener *listener, const char *channel)
{
    listener->calling = true;
    store_subscriber_unsubscribe(listener->subscriber, bytes_of(channel));
    listener->calling = false;
}

static void check_log(struct listener *listener, const char *wanted)
{
    CHECK_TEXT(bytes_of(listener->log), bytes_of(wanted));
    listener->log[0] = '\0';
}

/* To how many connections. */
static unsigned publish(struct redis *redis, const char *channel, const char *message)
{
    return (unsigned)strtoul(redis_askf(redis, "PUBLISH %s %s", channel, message) + 1, NULL, 10);
}

/* Turns until everything that Redis has said so far is taken: a marker comes last. */
static void catch_up(struct listener *listener, struct redis *redis, const char *channel)
{
    unsigned before = listener->heard;

    CHECK(publish(redis, channel, "marker") > 0);
    WAIT(listener, strstr(listener->log, "marker") != NULL && listener->heard > before, 2000);
}

/* -- what is heard */

TEST_SUBSCRIBER(what_is_published_after_the_confirmation_is_heard_in_order, TIMEOUT_MS)
{
    subscribe(listener, "c");
    CHECK_INT(publish(redis, "c", "early"), 0);
    WAIT(listener, listener->listens == 1, 2000);
    CHECK_INT(listener->number_at_listens, 1);
    for (unsigned i = 0; i < 3000; i++) {
        CHECK_INT(publish(redis, "c", textf("%u", i)), 1);
        if (i % 100 == 99) {
            WAIT(listener, listener->heard == i + 1, 2000);
            CHECK(strstr(listener->log, textf("=c%u =c%u ", i - 1, i)) != NULL);
            listener->log[0] = '\0';
        }
    }
    publish(redis, "c", "one");
    publish(redis, "other", "nobody");
    publish(redis, "c", "two");
    WAIT(listener, listener->heard == 3002, 2000);
    check_log(listener, "=cone =ctwo ");
}

TEST_SUBSCRIBER(a_channel_is_listened_to_until_all_who_subscribed_have_gone, TIMEOUT_MS)
{
    subscribe(listener, "twice");
    subscribe(listener, "twice");
    subscribe(listener, "m");
    WAIT(listener, listener->listens == 2, 2000);
    subscribe(listener, "twice");
    unsubscribe(listener, "twice");
    unsubscribe(listener, "twice");
    listener->log[0] = '\0';
    publish(redis, "twice", "still");
    catch_up(listener, redis, "m");
    check_log(listener, "=twicestill =mmarker ");
    unsubscribe(listener, "twice");
    WAIT(listener, publish(redis, "twice", "nobody") == 0, 2000);
    listener->log[0] = '\0';
    catch_up(listener, redis, "m");
    check_log(listener, "=mmarker ");
    CHECK_INT(listener->listens, 2);
}

TEST_SUBSCRIBER(a_pattern_tells_the_channel_and_a_channel_of_it_is_told_twice_in_a_row, TIMEOUT_MS)
{
    subscribe(listener, "p:*");
    subscribe(listener, "p:a");
    WAIT(listener, listener->listens == 2, 2000);
    CHECK(strstr(listener->log, "+p:* ") != NULL);
    listener->log[0] = '\0';
    publish(redis, "p:b", "1");
    publish(redis, "q:b", "2");
    publish(redis, "p:a", "3");
    publish(redis, "p:", "marker");
    WAIT(listener, listener->heard == 4, 2000);
    check_log(listener, "=p:b1 =p:a3 =p:a3 =p:marker ");
    unsubscribe(listener, "p:*");
    WAIT(listener, publish(redis, "p:b", "nobody") == 0, 2000);
    listener->log[0] = '\0';
    catch_up(listener, redis, "p:a");
    check_log(listener, "=p:amarker ");
}

TEST_SUBSCRIBER(nothing_is_heard_of_what_was_unsubscribed_from_a_moment_ago, TIMEOUT_MS)
{
    subscribe(listener, "c");
    subscribe(listener, "m");
    WAIT(listener, listener->listens == 2, 2000);
    listener->log[0] = '\0';
    CHECK_INT(publish(redis, "c", "under-way"), 1);
    unsubscribe(listener, "c");
    catch_up(listener, redis, "m");
    check_log(listener, "=mmarker ");
    /* Here again before the UNSUBSCRIBE is answered: what lies between is not missed in part. */
    subscribe(listener, "c");
    WAIT(listener, listener->listens == 3, 2000);
    listener->log[0] = '\0';
    CHECK_INT(publish(redis, "c", "before"), 1);
    unsubscribe(listener, "c");
    subscribe(listener, "c");
    WAIT(listener, listener->listens == 4, 2000);
    CHECK_INT(publish(redis, "c", "after"), 1);
    WAIT(listener, strstr(listener->log, "after") != NULL, 2000);
    check_log(listener, "+c =cafter ");
}

TEST_SUBSCRIBER(only_the_last_of_several_subscriptions_is_taken_for_confirmed, TIMEOUT_MS)
{
    WAIT(listener, listener->subscriber->number == 1, 2000);
    for (unsigned i = 0; i < 3; i++) {
        subscribe(listener, "c");
        unsubscribe(listener, "c");
    }
    subscribe(listener, "c");
    subscribe(listener, "m");
    unsubscribe(listener, "m");
    subscribe(listener, "z");
    WAIT(listener, strstr(listener->log, "+z") != NULL, 2000);
    check_log(listener, "+c +z ");
    CHECK_INT(publish(redis, "c", "x"), 1);
    CHECK_INT(publish(redis, "m", "x"), 0);
    CHECK(channel_find(&listener->subscriber->channels, BYTES("m")) == NULL);
}

static void change_others(struct listener *listener, struct bytes channel)
{
    if (channel.at == NULL) {
        store_subscriber_subscribe(listener->subscriber, BYTES("of-the-deaf"));
    } else if (bytes_are(channel, "first")) {
        store_subscriber_unsubscribe(listener->subscriber, channel);
        store_subscriber_subscribe(listener->subscriber, BYTES("second"));
    }
}

TEST_SUBSCRIBER(whoever_is_called_may_subscribe_and_unsubscribe, TIMEOUT_MS)
{
    listener->then = change_others;
    subscribe(listener, "first");
    WAIT(listener, strstr(listener->log, "+first +second ") != NULL, 2000);
    redis_kill(redis);
    WAIT(listener, listener->deaf == 1, 2000);
    redis_run(redis, NULL);
    WAIT(listener, listener->listens == 4, 3000);
    check_log(listener, "+first +second - +of-the-deaf +second ");
}

TEST_SUBSCRIBER(thousands_of_channels_are_listened_to_and_again_on_a_new_link, 3000)
{
    for (unsigned i = 0; i < MANY; i++)
        subscribe(listener, textf(i % 10 == 0 ? "pawl:e:%u:*" : "pawl:e:%u", i));
    WAIT(listener, listener->listens == MANY, 5000);
    redis_kill(redis);
    WAIT(listener, listener->deaf == 1, 2000);
    for (unsigned i = 0; i < MANY; i += 2) /* also while there is no link */
        unsubscribe(listener, textf(i % 10 == 0 ? "pawl:e:%u:*" : "pawl:e:%u", i));
    redis_run(redis, NULL);
    WAIT(listener, listener->listens == MANY + MANY / 2, 5000);
    CHECK_INT(listener->number_at_listens, 2);
    for (unsigned i = 0; i < 100; i++)
        CHECK_INT(publish(redis, textf("pawl:e:%u", i), "x"), i % 2);
    WAIT(listener, listener->heard == 50, 2000);
    for (unsigned i = 1; i < MANY; i += 2)
        unsubscribe(listener, textf("pawl:e:%u", i));
    WAIT(listener, publish(redis, textf("pawl:e:%u", MANY - 1u), "x") == 0, 2000);
    CHECK(listener->subscriber->channels.tree == NULL);
    CHECK_INT(listener->deaf, 1);
}

/* -- the end of hearing */

TEST_SUBSCRIBER(a_killed_redis_makes_it_deaf_once_and_the_next_is_listened_to, TIMEOUT_MS)
{
    listen_to(listener, "c");
    redis_kill(redis);
    WAIT(listener, listener->deaf == 1, 2000);
    WAIT(listener, listener->subscriber->attempts >= 4,
         2000); /* none of these was a link that had confirmed */
    redis_run(redis, NULL);
    WAIT(listener, listener->listens == 2, 3000);
    CHECK_INT(listener->subscriber->number, 2);
    CHECK_INT(listener->number_at_listens, 2);
    catch_up(listener, redis, "c");
    check_log(listener, "+c - +c =cmarker ");
}

TEST_SUBSCRIBER(a_link_that_confirmed_nothing_ends_without_a_word, TIMEOUT_MS)
{
    WAIT(listener, listener->subscriber->number == 1, 2000);
    redis_kill(redis);
    WAIT(listener, listener->subscriber->state == SUBSCRIBER_WAITING, 2000);
    redis_run(redis, NULL);
    WAIT(listener, listener->subscriber->number == 2, 3000);
    check_log(listener, "");
}

TEST_SUBSCRIBER(a_stopped_redis_makes_it_deaf_within_the_timeout, SHORT_MS)
{
    listen_to(listener, "c");
    kill(redis->pid, SIGSTOP);
    uint64_t began_ms = waited_ms();
    WAIT(listener, listener->deaf == 1, 2000);
    CHECK(waited_ms() - began_ms <= SHORT_MS + 30);
    WAIT(listener, listener->subscriber->state == SUBSCRIBER_GREETING, 2000);
    WAIT(listener, listener->subscriber->state == SUBSCRIBER_WAITING,
         2000); /* a greeting has its deadline too */
    kill(redis->pid, SIGCONT);
    WAIT(listener, listener->listens == 2, 3000);
    check_log(listener, "+c - +c ");
}

/* Whether it stands through nine times SHORT_MS, PINGed all the while. */
static bool stands_in_silence(struct redis *redis, bool subscribed)
{
    uint64_t till_ms = loop_now_ms() + 9 * SHORT_MS;
    struct listener listener;
    bool stands;

    listener_open_url(&listener, redis->url, NULL, 3 * SHORT_MS);
    if (subscribed)
        subscribe(&listener, "c");
    while (loop_now_ms() < till_ms)
        loop_turn(listener.loop, 10);
    stands = listener.subscriber->number == 1 && listener.subscriber->state == SUBSCRIBER_STANDING &&
             strcmp(listener.log, subscribed ? "+c " : "") == 0;
    listener_close(&listener);
    return stands;
}

/* Redis may itself be held up on a machine that does much else; a subscriber that ends by itself ends each
 * time. */
TEST_REDIS(silence_is_no_end_as_long_as_redis_gives_signs_of_life)
{
    for (unsigned subscribed = 0; subscribed < 2; subscribed++) { /* PING is answered in another form */
        CHECK(stands_in_silence(redis, subscribed) || stands_in_silence(redis, subscribed) ||
              stands_in_silence(redis, subscribed));
    }
}

TEST_SUBSCRIBER(what_came_while_the_process_was_held_up_is_heard, SHORT_MS)
{
    listen_to(listener, "c");
    CHECK_INT(publish(redis, "c", "meanwhile"), 1);
    uint64_t till_ms = loop_now_ms() + 2 * SHORT_MS;
    while (loop_now_ms() < till_ms) { /* the loop does not turn */
    }
    WAIT(listener, listener->heard == 1, 1000);
    check_log(listener, "+c =cmeanwhile ");
    CHECK_INT(listener->subscriber->state, SUBSCRIBER_STANDING);
}

TEST_SUBSCRIBER(a_message_that_is_too_large_ends_the_link, TIMEOUT_MS)
{
    static const char eval[] = "EVAL 'redis.call(\"PUBLISH\", \"c\", string.rep(\"x\", %u))' 0";

    listen_to(listener, "c");
    redis_askf(redis, eval, LARGEST);
    WAIT(listener, listener->heard == 1, 2000);
    CHECK_INT(listener->longest, LARGEST);
    redis_askf(redis, eval, LARGEST + 1);
    WAIT(listener, listener->deaf == 1, 2000);
    WAIT(listener, listener->listens == 2, 2000);
    redis_askf(redis, eval, 4u * 1024 * 1024);
    WAIT(listener, listener->listens == 3, 5000);
    CHECK(listener->deaf == 2 && listener->heard == 1);
}

TEST_RELAYED(a_message_that_will_be_too_large_is_not_waited_for)
{
    static const char eval[] = "EVAL 'redis.call(\"PUBLISH\", \"c\", string.rep(\"x\", 16000))' 0";

    relay_subscriber(listener, relay, TIMEOUT_MS);
    listen_to(listener, "c");
    relay->replace = "$16000\r\n";
    relay->with = "$99999\r\n";
    redis_ask(redis, eval);
    redis_ask(redis, eval);
    WAIT(listener, listener->deaf == 1, 2000);
    CHECK_INT(listener->heard, 0);
    store_subscriber_close(listener->subscriber);
}

TEST_RELAYED(a_link_cut_anywhere_is_made_anew_and_hears)
{
    for (int way = RELAY_UP; way <= RELAY_DOWN; way++) {
        for (int64_t after = 0; after < CUT_BYTES; after += 3) {
            unsigned cuts = relay->cuts;

            relay_hang_up(relay);
            relay->cut_after[way] = after;
            listener->log[0] = '\0';
            listener->listens = listener->deaf = listener->heard = 0;
            relay_subscriber(listener, relay, SHORT_MS);
            subscribe(listener, "c");
            subscribe(listener, "d*");
            while (relay->cuts == cuts) /* signs of life come and go until it is */
                loop_turn(listener->loop, 20);
            WAIT(listener, listener->listens >= 2 && listener->subscriber->state == SUBSCRIBER_STANDING,
                 3000);
            listener->heard = 0;
            WAIT(listener, listener->heard > 0 || publish(redis, "c", "marker") == 0, 1000);
            CHECK(listener->deaf <= 1);
            store_subscriber_close(listener->subscriber);
        }
    }
}

static const struct {
    const char *replace, *with;
} nonsense[] = {
    {"message", "massage"}, {"*3\r\n", "*1\r\n"},
    {"*3\r\n", "*2\r\n"},   {"$5\r\nhello", "-ERRboo\r\n"},
    {"$5\r\n", "?5\r\n"},   {"$7\r\nmessage\r\n$7\r\nchannel", "$9\r\nsubscribe\r\n$5\r\nother"},
};

TEST_RELAYED(nonsense_ends_the_link)
{
    for (size_t i = 0; i < sizeof(nonsense) / sizeof(nonsense[0]); i++) {
        listener->log[0] = '\0';
        listener->listens = listener->deaf = 0;
        relay_subscriber(listener, relay, TIMEOUT_MS);
        listen_to(listener, "channel");
        relay->replace = nonsense[i].replace;
        relay->with = nonsense[i].with;
        CHECK_INT(publish(redis, "channel", "hello"), 1);
        WAIT(listener, listener->deaf == 1, 2000);
        relay->replace = NULL;
        WAIT(listener, listener->listens == 2, 2000);
        check_log(listener, "+channel - +channel ");
        store_subscriber_close(listener->subscriber);
    }
}

/* -- who asks */

/* Whether it comes to listen. */
static bool listens_at(const char *url, const char *password)
{
    struct listener listener;

    listener_open_url(&listener, url, password, TIMEOUT_MS);
    subscribe(&listener, "c");
    for (uint64_t till_ms = loop_now_ms() + 2000;
         listener.listens == 0 && listener.subscriber->attempts < 3 && loop_now_ms() < till_ms;)
        loop_turn(listener.loop, 2);
    bool listens = listener.listens == 1;
    CHECK_INT(listener.subscriber->number, listens);
    listener_close(&listener);
    return listens;
}

TEST_REDIS_AS(it_names_itself_as_the_store_does, "--requirepass", "se/cr@t")
{
    const char *url = textf("redis://127.0.0.1:%u", redis->port);

    CHECK(!listens_at(url, NULL));
    CHECK(listens_at(url, "se/cr@t"));
    CHECK(!listens_at(url, "wr0ng"));
    redis_ask(redis, "AUTH se/cr@t");
    redis_does(redis, "ACL SETUSER pawl on >other resetchannels &c +@all");
    CHECK(listens_at(textf("redis://pawl:other@127.0.0.1:%u", redis->port), NULL));
    redis_does(redis, "ACL SETUSER free on nopass resetchannels &c +@all");
    CHECK(listens_at(textf("redis://free@127.0.0.1:%u", redis->port), NULL));
}

TEST_REDIS(a_channel_that_redis_forbids_is_not_taken_for_listened_to)
{
    struct listener listener;

    redis_does(redis, "ACL SETUSER pawl on >pw resetchannels &d +@all");
    listener_open_url(&listener, textf("redis://pawl:pw@127.0.0.1:%u", redis->port), NULL, TIMEOUT_MS);
    subscribe(&listener, "c");
    WAIT(&listener, listener.subscriber->number >= 2, 2000); /* it tries again */
    check_log(&listener, "");
    redis_does(redis, "ACL SETUSER pawl &c");
    WAIT(&listener, listener.listens == 1, 2000);
    listener_close(&listener);
}

/* -- the drawing */

static const char *const state_names[SUBSCRIBER_STATES] = {
    [SUBSCRIBER_IDLE] = "IDLE",         [SUBSCRIBER_CONNECTING] = "CONNECTING",
    [SUBSCRIBER_GREETING] = "GREETING", [SUBSCRIBER_STANDING] = "STANDING",
    [SUBSCRIBER_WAITING] = "WAITING",
};

static void close_at_once(const char *url, enum subscriber_state state)
{
    struct listener listener;

    listener_open_url(&listener, url, NULL, TIMEOUT_MS);
    subscribe(&listener, "c");
    if (state != SUBSCRIBER_CONNECTING)
        WAIT(&listener, listener.subscriber->state == state, 2000);
    CHECK_INT(listener.subscriber->state, state); /* from where closing goes to IDLE */
    unsubscribe(&listener, "c");
    subscribe(&listener, "c");
    listener_close(&listener);
    CHECK(listener.heard == 0 && listener.listens == 0 && listener.deaf == 0);
}

TEST_REDIS(it_may_be_closed_at_any_moment_and_drawing_table_and_what_it_does_agree)
{
    close_at_once(redis->url, SUBSCRIBER_CONNECTING);
    close_at_once(redis->url, SUBSCRIBER_STANDING);
    kill(redis->pid, SIGSTOP);
    close_at_once(redis->url, SUBSCRIBER_GREETING);
    close_at_once("unix:///nowhere/at/all", SUBSCRIBER_WAITING);
    CHECK_INT(
        drawing_check("shared/store/subscriber.c", state_names, SUBSCRIBER_STATES, subscriber_allows, walked),
        11);
}

CHECK_MAIN
