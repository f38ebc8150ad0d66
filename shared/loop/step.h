/* step.h - what one step of an operation returns, so that the compiler refuses a path that forgets to end. */
#ifndef PAWL_SHARED_STEP_H
#define PAWL_SHARED_STEP_H

enum step {
    ANSWERED, /* the request has its answer */
    SUSPENDED /* a continuation is registered and will run exactly once, later */
};

#endif
