/* remember.h - bounds the memory of what is over and remembered (--remember-max): the oldest goes first.
 *
 * Nothing is counted while Redis uses less in all. Else every few seconds a sample of all leases says how
 * much it is, and for how long it is over; when it is more than the bound, what is over for longer than what
 * fits is forgotten. What must be remembered is not (lease/scripts/sweep_early.lua): when that alone is more,
 * nothing new is granted, while this service says so. */
#ifndef PAWL_LEASE_REMEMBER_H
#define PAWL_LEASE_REMEMBER_H

#include "shared/member/member.h"

struct remember;

struct remember *remember_new(struct worker *worker, struct member_line *line);
/* No new call begins; one in flight ends with the store. */
void remember_stop(struct remember *remember);
void remember_free(struct remember *remember);

#endif
