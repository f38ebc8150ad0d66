/* staircase.c - the picture of a fence. A canvas of cells is painted from back to front and then written out.
 */
#include "api/cli/staircase.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"

enum { MARGIN = 10, RISE = 3, LABEL_SIZE = 64, GLYPHS = 128 };

/* Cells below 128 are that ASCII character. */
enum glyph {
    HOLDS = GLYPHS,
    SILENT,
    BELIEVES,
    DOT,
    CROSS,
    SHADE,
    STEP,
    RISER,
    RISE_FROM,
    RISE_TO,
    AXIS,
    TICK_UP,
    AXIS_LEFT,
    CORNER,
    TICK_LEFT,
    ARROW,
    GLYPH_END
};

static const struct {
    const char *unicode;
    char plain;
} glyphs[GLYPH_END - GLYPHS] = {
    [HOLDS - GLYPHS] = {"━", '='},     [SILENT - GLYPHS] = {"╱", '/'}, [BELIEVES - GLYPHS] = {"╌", '-'},
    [DOT - GLYPHS] = {"●", 'o'},       [CROSS - GLYPHS] = {"✕", 'X'},  [SHADE - GLYPHS] = {"░", '.'},
    [STEP - GLYPHS] = {"━", '='},      [RISER - GLYPHS] = {"┃", '|'},  [RISE_FROM - GLYPHS] = {"┛", '+'},
    [RISE_TO - GLYPHS] = {"┏", '+'},   [AXIS - GLYPHS] = {"─", '-'},   [TICK_UP - GLYPHS] = {"┴", '+'},
    [AXIS_LEFT - GLYPHS] = {"│", '|'}, [CORNER - GLYPHS] = {"└", '+'}, [TICK_LEFT - GLYPHS] = {"┤", '+'},
    [ARROW - GLYPHS] = {"→", '>'},
};

enum colour { PLAIN, FIRST, SECOND, THIRD, FOURTH, BAD, FAINT, FORBIDDEN, STRONG };

static const char *const colours[] = {
    [PLAIN] = "0",    [FIRST] = "0;33", [SECOND] = "0;36",      [THIRD] = "0;35", [FOURTH] = "0;34",
    [BAD] = "0;1;31", [FAINT] = "0;2",  [FORBIDDEN] = "0;2;31", [STRONG] = "0;1",
};

struct cell {
    unsigned char glyph, colour;
};

struct holder {
    const char *name;
    bool stale; /* another was granted after it */
};

struct picture {
    const struct stair_event *events;
    size_t count;
    unsigned style, width, height, columns, lanes, grants, floor; /* floor: the row of the time axis */
    uint64_t end_ms;
    struct holder holders[STAIR_HOLDERS_MAX];
    const struct stair_event *grant[STAIR_GRANTS_MAX];
    struct cell *cells;
};

/* -- where things are */

static unsigned column_of(const struct picture *p, uint64_t at_ms)
{
    return MARGIN + (unsigned)(at_ms * (p->columns - 1) / p->end_ms);
}

static unsigned row_of_level(const struct picture *p, unsigned level)
{
    return p->floor - level * RISE;
}

/* The step that a token belongs to; below the first one: 0, the floor. */
static unsigned level_of_token(const struct picture *p, int64_t token)
{
    unsigned level = 0;

    while (level < p->grants && p->grant[level]->token <= token) {
        level++;
    }
    return level;
}

static unsigned level_at(const struct picture *p, unsigned column)
{
    unsigned level = 0;

    while (level < p->grants && column_of(p, p->grant[level]->at_ms) <= column) {
        level++;
    }
    return level;
}

static unsigned lane_of(const struct picture *p, const char *holder)
{
    unsigned lane = 0;

    while (lane < p->lanes && strcmp(p->holders[lane].name, holder) != 0) {
        lane++;
    }
    return lane;
}

/* -- painting */

static void paint(struct picture *p, unsigned row, unsigned column, unsigned glyph, enum colour colour)
{
    if (row < p->height && column < p->width) {
        p->cells[row * p->width + column] = (struct cell){(unsigned char)glyph, (unsigned char)colour};
    }
}

static void paint_text(struct picture *p, unsigned row, unsigned column, const char *text, enum colour colour)
{
    for (; *text != '\0'; text++, column++) {
        paint(p, row, column, *text >= ' ' && *text < 0x7f ? (unsigned)*text : '?', colour);
    }
}

static enum colour colour_of_lane(unsigned lane)
{
    return (enum colour)(FIRST + lane % 4);
}

/* What a lane shows after an event of its holder; ' ': nothing. */
static unsigned lane_after(const struct picture *p, const struct stair_event *event, unsigned before)
{
    switch (event->kind) {
    case STAIR_GRANTED: return HOLDS;
    case STAIR_STOPPED: return SILENT;
    case STAIR_CONTINUED: return p->holders[lane_of(p, event->holder)].stale ? BELIEVES : HOLDS;
    case STAIR_REFUSED:
    case STAIR_RELEASED: return ' ';
    case STAIR_ACCEPTED: return before;
    }
    abort();
}

static void paint_lane(struct picture *p, unsigned lane)
{
    unsigned state = ' ', column = MARGIN;
    enum colour colour = colour_of_lane(lane);
    char name[MARGIN];

    p->holders[lane].stale = false;
    snprintf(name, sizeof(name), "%*.*s", MARGIN - 2, MARGIN - 2, p->holders[lane].name);
    paint_text(p, lane, 0, name, colour);
    for (size_t i = 0; i <= p->count; i++) {
        const struct stair_event *event = i < p->count ? &p->events[i] : NULL;
        unsigned until = event != NULL ? column_of(p, event->at_ms) : MARGIN + p->columns;

        for (; column < until; column++) {
            paint(p, lane, column, state, colour);
        }
        if (event != NULL && strcmp(event->holder, p->holders[lane].name) == 0) {
            state = lane_after(p, event, state);
            p->holders[lane].stale = p->holders[lane].stale && event->kind != STAIR_GRANTED;
        } else if (event != NULL && event->kind == STAIR_GRANTED) {
            p->holders[lane].stale = true;
        }
    }
}

static void paint_stairs(struct picture *p)
{
    for (unsigned column = MARGIN; column < MARGIN + p->columns; column++) {
        unsigned level = level_at(p, column), before = level_at(p, column - 1);
        unsigned top = row_of_level(p, level);

        if (level == 0) {
            continue;
        }
        for (unsigned row = top; row < p->floor; row++) {
            paint(p, row, column, row == top ? STEP : SHADE, row == top ? STRONG : FORBIDDEN);
        }
        if (level == before || column == MARGIN) {
            continue;
        }
        for (unsigned row = top; row < row_of_level(p, before); row++) {
            paint(p, row, column, row == top ? RISE_TO : RISER, STRONG);
        }
        if (before > 0) {
            paint(p, row_of_level(p, before), column, RISE_FROM, STRONG);
        }
    }
}

/* In the lowest row: what the shade means. */
static void paint_rule(struct picture *p)
{
    static const char rule[] = " below the stairs: refused ";
    unsigned from = p->grants > 0 ? column_of(p, p->grant[0]->at_ms) : MARGIN;
    unsigned room = MARGIN + p->columns - from, len = sizeof(rule) - 1;

    if (p->grants > 0 && room >= len) {
        paint_text(p, p->floor - 1, from + (room - len) / 2, rule, BAD);
    }
}

static void paint_axes(struct picture *p)
{
    uint64_t step_ms = p->end_ms <= 12000 ? 1000 : p->end_ms / 10000 * 1000;
    char label[LABEL_SIZE];

    for (unsigned row = p->lanes + 1; row < p->floor; row++) {
        paint(p, row, MARGIN - 1, AXIS_LEFT, FAINT);
    }
    for (unsigned i = 0; i < p->grants; i++) {
        int len = snprintf(label, sizeof(label), "%" PRId64, p->grant[i]->token);
        unsigned at = (unsigned)len + 2 < MARGIN ? MARGIN - 2 - (unsigned)len : 0;

        paint_text(p, row_of_level(p, i + 1), at, label, STRONG);
        paint(p, row_of_level(p, i + 1), MARGIN - 1, TICK_LEFT, FAINT);
    }
    paint_text(p, p->lanes + 1, MARGIN - 7, "token", FAINT);
    for (unsigned column = MARGIN; column < MARGIN + p->columns; column++) {
        paint(p, p->floor, column, AXIS, FAINT);
    }
    paint(p, p->floor, MARGIN - 1, CORNER, FAINT);
    for (uint64_t at_ms = 0; at_ms <= p->end_ms; at_ms += step_ms) {
        unsigned column = column_of(p, at_ms);

        if (column + 3 < MARGIN + p->columns) {
            snprintf(label, sizeof(label), "%" PRIu64 "%s", at_ms / 1000, at_ms == 0 ? " s" : "");
            paint(p, p->floor, column, TICK_UP, FAINT);
            paint_text(p, p->floor + 1, column, label, FAINT);
        }
    }
    paint(p, p->floor, MARGIN + p->columns - 1, ARROW, FAINT);
    paint_text(p, p->floor + 1, p->width - 4, "time", FAINT);
}

/* Beside the cross where there is room: what it was. */
static void paint_refusal(struct picture *p, const struct stair_event *event, unsigned row, unsigned column)
{
    char label[LABEL_SIZE];
    int len = snprintf(label, sizeof(label), " %.8s, token %" PRId64 ": refused ", event->holder,
                       event->token);
    unsigned at = column + 1;

    if (at + (unsigned)len > MARGIN + p->columns) {
        at = column > MARGIN + (unsigned)len ? column - (unsigned)len : MARGIN;
    }
    paint_text(p, row, at, label, BAD);
    paint(p, row, column, CROSS, BAD);
}

static void paint_writes(struct picture *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct stair_event *event = &p->events[i];
        unsigned row = row_of_level(p, level_of_token(p, event->token));
        unsigned column = column_of(p, event->at_ms);

        if (event->kind == STAIR_REFUSED) {
            paint_refusal(p, event, row, column);
        } else if (event->kind == STAIR_ACCEPTED) {
            enum colour colour = colour_of_lane(lane_of(p, event->holder));

            paint(p, row, column, DOT, colour);
            paint(p, row - 1, column, (unsigned)event->holder[0] & 0x7f, colour);
        }
    }
}

/* -- writing out */

static void write_cell(FILE *out, const struct picture *p, struct cell cell, unsigned *colour)
{
    if ((p->style & STAIR_COLOUR) && *colour != cell.colour) {
        fprintf(out, "\033[%sm", colours[cell.colour]);
        *colour = cell.colour;
    }
    if (cell.glyph < GLYPHS) {
        fputc(cell.glyph, out);
    } else if (p->style & STAIR_UNICODE) {
        fputs(glyphs[cell.glyph - GLYPHS].unicode, out);
    } else {
        fputc(glyphs[cell.glyph - GLYPHS].plain, out);
    }
}

static void write_rows(FILE *out, const struct picture *p)
{
    for (unsigned row = 0; row < p->height; row++) {
        const struct cell *cells = &p->cells[row * p->width];
        unsigned end = p->width, colour = PLAIN;

        while (end > 0 && cells[end - 1].glyph == ' ') {
            end--;
        }
        for (unsigned column = 0; column < end; column++) {
            write_cell(out, p, cells[column], &colour);
        }
        fputs(colour != PLAIN ? "\033[0m\n" : "\n", out);
    }
}

/* A sample, as it looks in the picture, and what it means. */
static void write_sample(FILE *out, const struct picture *p, enum glyph glyph, enum colour colour,
                         unsigned times)
{
    unsigned now = PLAIN;

    for (unsigned i = 0; i < times; i++) {
        write_cell(out, p, (struct cell){(unsigned char)glyph, (unsigned char)colour}, &now);
    }
    fputs(now != PLAIN ? "\033[0m " : " ", out);
}

static void write_legend(FILE *out, const struct picture *p)
{
    static const struct {
        enum glyph glyph;
        enum colour colour;
        unsigned times;
        const char *meaning;
    } samples[] = {{HOLDS, PLAIN, 3, "holds   "},
                   {SILENT, PLAIN, 3, "silent   "},
                   {BELIEVES, PLAIN, 3, "believes that it holds   "},
                   {DOT, PLAIN, 1, "written   "},
                   {CROSS, BAD, 1, "refused\n"}};

    fputs("\n  ", out);
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
        write_sample(out, p, samples[i].glyph, samples[i].colour, samples[i].times);
        fputs(samples[i].meaning, out);
    }
}

/* -- all of it */

static void read_events(struct picture *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct stair_event *event = &p->events[i];

        if (lane_of(p, event->holder) == p->lanes && p->lanes < STAIR_HOLDERS_MAX) {
            p->holders[p->lanes++] = (struct holder){.name = event->holder};
        }
        if (event->kind == STAIR_GRANTED && p->grants < STAIR_GRANTS_MAX) {
            p->grant[p->grants++] = event;
        }
        p->end_ms = event->at_ms > p->end_ms ? event->at_ms : p->end_ms;
    }
    p->end_ms += p->end_ms / 12 + 1; /* so that the last event is not at the very edge */
    p->floor = p->lanes + 2 + (p->grants > 0 ? p->grants : 1) * RISE;
    p->height = p->floor + 2;
    p->columns = p->width - MARGIN;
}

char *staircase_draw(const struct stair_event *events, size_t count, unsigned width, unsigned style)
{
    struct picture p = {.events = events, .count = count, .style = style};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL) {
        abort();
    }
    p.width = width < STAIR_WIDTH_MIN ? STAIR_WIDTH_MIN : width > STAIR_WIDTH_MAX ? STAIR_WIDTH_MAX : width;
    read_events(&p);
    p.cells = cli_alloc((size_t)p.width * p.height * sizeof(*p.cells));
    for (size_t i = 0; i < (size_t)p.width * p.height; i++) {
        p.cells[i] = (struct cell){' ', PLAIN};
    }
    for (unsigned lane = 0; lane < p.lanes; lane++) {
        paint_lane(&p, lane);
    }
    paint_stairs(&p);
    paint_rule(&p);
    paint_axes(&p);
    paint_writes(&p);
    write_rows(out, &p);
    write_legend(out, &p);
    free(p.cells);
    if (fclose(out) != 0) {
        abort();
    }
    return text;
}
