/* sticky.h - intents that stay open over the writes of one worker with one token (kind o~ in
 * gateway/scripts/lib/intent.lua; tests/model/sticky.pml; docs/decisions/0030).
 *
 * Only for `ordered` routes with an unknown outcome of `hold` or `grace` that are not serial. The first write
 * of a token at a worker has an intent of its own, as all others have; the second one opens an intent that
 * stays, and each later one goes by it when intent_check.lua finds it. A write is under way from before its
 * check is sent until its whole answer. The intent is closed when nothing of it is under way, STICKY_IDLE_MS
 * after the last answer, or at once when somebody who waits asks for it; nothing goes by it from then on. An
 * unknown end ends its use as well: then it becomes unknown, with the numbers of all whose end is.
 *
 * Nothing here is shared between threads: an intent belongs to its worker. */
#ifndef PAWL_GATEWAY_STICKY_H
#define PAWL_GATEWAY_STICKY_H

#include "gateway/intent/intents.h"
#include "shared/store/store.h"
#include "shared/token/keys.h"
#include "shared/token/token.h"

struct forward;
struct gateway_worker;
struct sticky;

enum { STICKY_IDLE_MS = 50, STICKY_UNSURE_MAX = 16 };

void stickies_free(struct gateway_worker *own);

/* A write, or a fenced read, is to ask the store. By which open intent it goes, f->sticky, and it is under
 * way from now on; or NULL: then f->opens says whether the intent that it asks for is one that stays, and
 * those of this worker that it would wait for are closed in front of it, if nothing of them is under way. */
void sticky_take(struct forward *f);
/* The store has recorded its own intent, f->intent; if f->opens, that becomes f->sticky. */
void sticky_recorded(struct forward *f);
/* The store says that it is not to go by it: nothing else does either. */
void sticky_end(struct sticky *sticky);
/* The end of f, which is not under way any more. INTENT_UNKNOWN: its end is not known. */
void sticky_leave(struct forward *f, enum intent_word word);
/* The text under which the store has it; good as long as f is under way. */
struct bytes sticky_text(const struct sticky *sticky);
bool sticky_is(const struct sticky *sticky, struct bytes id);

#endif
