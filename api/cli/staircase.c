/* staircase.c - the picture of a fence, painted on a canvas from back to front: cells of characters and
 * colours that are painted over each other and then written out. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/cli/cli.h"
#include "api/cli/staircase.h"

/* -- the canvas */

enum { MARGIN = 10, RISE = 3, LABEL_SIZE = 64, LEGEND_ROWS_MAX = 2 };

/* Below the characters of ASCII that can be seen. */
enum glyph {
    HOLDS = 1,
    SILENT,
    BELIEVES,
    WAITS,
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

enum colour { PLAIN, FIRST, SECOND, THIRD, FOURTH, BAD, FAINT, FORBIDDEN, STRONG };

struct cell {
    unsigned char glyph, colour;
};

struct canvas {
    unsigned width, height, style; /* enum stair_style */
    struct cell *cells;
};

static const struct {
    const char *unicode;
    char plain;
} glyphs[GLYPH_END] = {
    [HOLDS] = {"━", '='},   [SILENT] = {"╱", '/'},    [BELIEVES] = {"╌", '-'}, [WAITS] = {"·", '.'},
    [DOT] = {"●", 'o'},     [CROSS] = {"✕", 'X'},     [SHADE] = {"░", '.'},    [STEP] = {"━", '='},
    [RISER] = {"┃", '|'},   [RISE_FROM] = {"┛", '+'}, [RISE_TO] = {"┏", '+'},  [AXIS] = {"─", '-'},
    [TICK_UP] = {"┴", '+'}, [AXIS_LEFT] = {"│", '|'}, [CORNER] = {"└", '+'},   [TICK_LEFT] = {"┤", '+'},
    [ARROW] = {"→", '>'},
};

static const char *const colours[] = {
    [PLAIN] = "0",    [FIRST] = "0;33", [SECOND] = "0;36",      [THIRD] = "0;35", [FOURTH] = "0;34",
    [BAD] = "0;1;31", [FAINT] = "0;2",  [FORBIDDEN] = "0;2;31", [STRONG] = "0;1",
};

/* -- painting */

static void canvas_paint(struct canvas *canvas, unsigned row, unsigned column, unsigned glyph,
                         enum colour colour)
{
    if (row < canvas->height && column < canvas->width) {
        canvas->cells[row * canvas->width + column] = (struct cell){(unsigned char)glyph,
                                                                    (unsigned char)colour};
    }
}

static void canvas_paint_text(struct canvas *canvas, unsigned row, unsigned column, const char *text,
                              enum colour colour)
{
    for (; *text != '\0'; text++, column++)
        canvas_paint(canvas, row, column, *text >= ' ' && *text < 0x7f ? (unsigned)*text : '?', colour);
}

/* -- writing out */

static void canvas_write(FILE *out, const struct canvas *canvas)
{
    for (unsigned row = 0; row < canvas->height; row++) {
        const struct cell *cells = &canvas->cells[row * canvas->width];
        unsigned end = canvas->width, colour = PLAIN;

        while (end > 0 && cells[end - 1].glyph == ' ')
            end--;
        for (unsigned column = 0; column < end; column++) {
            unsigned glyph = cells[column].glyph;

            if ((canvas->style & STAIR_COLOUR) && colour != cells[column].colour) {
                colour = cells[column].colour;
                fprintf(out, "\033[%sm", colours[colour]);
            }
            if (glyph < GLYPH_END && (canvas->style & STAIR_UNICODE))
                fputs(glyphs[glyph].unicode, out);
            else
                fputc(glyph < GLYPH_END ? glyphs[glyph].plain : (int)glyph, out);
        }
        fputs(colour != PLAIN ? "\033[0m\n" : "\n", out);
    }
}

/* -- the picture */

struct picture {
    const struct stair_event *events;
    size_t count;
    enum stair_ground ground;
    unsigned columns, lanes, grants, floor; /* floor: the row of the time axis */
    struct canvas canvas;
    uint64_t end_ms;
    const char *holders[STAIR_HOLDERS_MAX];
    struct {
        int64_t token;
        uint64_t at_ms;        /* when it was known to be granted: not after a higher one */
    } grant[STAIR_GRANTS_MAX]; /* by token */
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

    while (level < p->grants && p->grant[level].token <= token)
        level++;
    return level;
}

static unsigned level_at(const struct picture *p, unsigned column)
{
    unsigned level = 0;

    while (level < p->grants && column_of(p, p->grant[level].at_ms) <= column)
        level++;
    return level;
}

static unsigned lane_of(const struct picture *p, const char *holder)
{
    unsigned lane = 0;

    while (lane < p->lanes && strcmp(p->holders[lane], holder) != 0)
        lane++;
    return lane;
}

/* -- painting */

static enum colour colour_of_lane(unsigned lane)
{
    return (enum colour)(FIRST + lane % 4);
}

/* What a lane shows after an event; ' ': nothing. *stale: another was granted after its holder. Beyond the
 * end of its hold it believes, as long as no refusal has come. */
static unsigned lane_after(const char *holder, const struct stair_event *event, unsigned before, bool *stale)
{
    bool own = strcmp(event->holder, holder) == 0;

    if (!own && event->kind == STAIR_GRANTED) {
        *stale = true;
        return before == HOLDS ? BELIEVES : before;
    }
    switch (own ? event->kind : STAIR_ACCEPTED) {
    case STAIR_GRANTED:
    case STAIR_SHARED: *stale = false; return HOLDS;
    case STAIR_WAITING: return WAITS;
    case STAIR_STOPPED: return SILENT;
    case STAIR_CONTINUED: return *stale ? BELIEVES : HOLDS;
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
    bool stale = false;
    char name[MARGIN];

    snprintf(name, sizeof(name), "%*.*s", MARGIN - 2, MARGIN - 2, p->holders[lane]);
    canvas_paint_text(&p->canvas, lane, 0, name, colour);
    for (size_t i = 0; i <= p->count; i++) {
        unsigned until = i < p->count ? column_of(p, p->events[i].at_ms) : MARGIN + p->columns;

        for (; column < until; column++)
            canvas_paint(&p->canvas, lane, column, state, colour);
        state = i < p->count ? lane_after(p->holders[lane], &p->events[i], state, &stale) : state;
    }
}

/* What the dots mean, in the first of them where there is room. */
static void paint_waits(struct picture *p, const struct stair_event *event)
{
    static const char waits[] = "waits";
    unsigned lane = lane_of(p, event->holder), at = column_of(p, event->at_ms) + 1;

    for (unsigned column = at; column < at + sizeof(waits); column++)
        if (column >= p->canvas.width || p->canvas.cells[lane * p->canvas.width + column].glyph != WAITS)
            return;
    canvas_paint_text(&p->canvas, lane, at, waits, colour_of_lane(lane));
}

static void paint_stairs(struct picture *p)
{
    for (unsigned column = MARGIN; column < MARGIN + p->columns; column++) {
        unsigned level = level_at(p, column), before = level_at(p, column - 1);
        unsigned top = row_of_level(p, level);

        if (level == 0)
            continue;
        for (unsigned row = top; row < p->floor; row++)
            canvas_paint(&p->canvas, row, column, row == top ? STEP : SHADE, row == top ? STRONG : FORBIDDEN);
        if (level == before || column == MARGIN)
            continue;
        for (unsigned row = top; row < row_of_level(p, before); row++)
            canvas_paint(&p->canvas, row, column, row == top ? RISE_TO : RISER, STRONG);
        if (before > 0)
            canvas_paint(&p->canvas, row_of_level(p, before), column, RISE_FROM, STRONG);
    }
}

/* In the lowest row: what the shade means. */
static void paint_rule(struct picture *p)
{
    static const char rule[] = " below the stairs: refused ";
    unsigned from = p->grants > 0 ? column_of(p, p->grant[0].at_ms) : MARGIN;
    unsigned room = MARGIN + p->columns - from, len = sizeof(rule) - 1;

    if (p->grants > 0 && room >= len)
        canvas_paint_text(&p->canvas, p->floor - 1, from + (room - len) / 2, rule, BAD);
}

static void paint_token_axis(struct picture *p)
{
    char label[LABEL_SIZE];

    for (unsigned row = p->lanes + 1; row < p->floor; row++)
        canvas_paint(&p->canvas, row, MARGIN - 1, AXIS_LEFT, FAINT);
    for (unsigned i = 0; i < p->grants; i++) {
        int len = snprintf(label, sizeof(label), "%" PRId64, p->grant[i].token);
        unsigned at = (unsigned)len + 2 < MARGIN ? MARGIN - 2 - (unsigned)len : 0;

        canvas_paint_text(&p->canvas, row_of_level(p, i + 1), at, label, STRONG);
        canvas_paint(&p->canvas, row_of_level(p, i + 1), MARGIN - 1, TICK_LEFT, FAINT);
    }
    canvas_paint_text(&p->canvas, p->lanes + 1, MARGIN - 7, "token", FAINT);
}

static void paint_time_axis(struct picture *p)
{
    uint64_t step_ms = p->end_ms <= 1000 ? 100 : p->end_ms <= 12000 ? 1000 : p->end_ms / 10000 * 1000;
    char label[LABEL_SIZE];

    for (unsigned column = MARGIN; column < MARGIN + p->columns; column++)
        canvas_paint(&p->canvas, p->floor, column, AXIS, FAINT);
    canvas_paint(&p->canvas, p->floor, MARGIN - 1, CORNER, FAINT);
    for (uint64_t at_ms = 0; at_ms <= p->end_ms; at_ms += step_ms) {
        unsigned column = column_of(p, at_ms);

        if (column + 3 < MARGIN + p->columns) {
            if (at_ms % 1000 != 0)
                snprintf(label, sizeof(label), "0.%" PRIu64, at_ms / 100);
            else
                snprintf(label, sizeof(label), "%" PRIu64 "%s", at_ms / 1000, at_ms == 0 ? " s" : "");
            canvas_paint(&p->canvas, p->floor, column, TICK_UP, FAINT);
            canvas_paint_text(&p->canvas, p->floor + 1, column, label, FAINT);
        }
    }
    canvas_paint(&p->canvas, p->floor, MARGIN + p->columns - 1, ARROW, FAINT);
    canvas_paint_text(&p->canvas, p->floor + 1, p->canvas.width - 4, "time", FAINT);
}

/* Beside the cross where there is room: what it was. */
static void paint_refusal(struct picture *p, const struct stair_event *event, unsigned row, unsigned column)
{
    char label[LABEL_SIZE];
    int len = snprintf(label, sizeof(label), " %.8s, token %" PRId64 ": refused ", event->holder,
                       event->token);
    unsigned at = column + 1;

    if (at + (unsigned)len > MARGIN + p->columns)
        at = column > MARGIN + (unsigned)len ? column - (unsigned)len : MARGIN;
    canvas_paint_text(&p->canvas, row, at, label, BAD);
    canvas_paint(&p->canvas, row, column, CROSS, BAD);
}

static void paint_write(struct picture *p, const struct stair_event *event)
{
    unsigned lane = lane_of(p, event->holder), column = column_of(p, event->at_ms);
    unsigned row = p->ground == STAIR_FLAT ? lane : row_of_level(p, level_of_token(p, event->token));

    if (event->kind == STAIR_REFUSED) {
        paint_refusal(p, event, row, column);
    } else if (event->kind == STAIR_ACCEPTED) {
        canvas_paint(&p->canvas, row, column, DOT, colour_of_lane(lane));
        if (p->ground == STAIR_STEPS) {
            canvas_paint(&p->canvas, row - 1, column, (unsigned)event->holder[0] & 0x7f,
                         colour_of_lane(lane));
        }
    }
}

/* -- all of it */

static void paint_legend(struct picture *p)
{
    static const struct {
        enum glyph glyph;
        enum colour colour;
        unsigned times;
        const char *meaning;
    } samples[] = {{HOLDS, PLAIN, 3, "holds"},
                   {SILENT, PLAIN, 3, "silent"},
                   {BELIEVES, PLAIN, 3, "believes that it holds"},
                   {DOT, PLAIN, 1, "written"},
                   {CROSS, BAD, 1, "refused"}};
    size_t count = sizeof(samples) / sizeof(samples[0]) - (p->ground == STAIR_FLAT);
    unsigned row = p->floor + 3, column = 2;

    for (size_t i = 0; i < count; i++) {
        unsigned len = samples[i].times + 1 + (unsigned)strlen(samples[i].meaning);

        if (column + len > p->canvas.width) {
            row++;
            column = 2;
        }
        for (unsigned j = 0; j < samples[i].times; j++)
            canvas_paint(&p->canvas, row, column + j, samples[i].glyph, samples[i].colour);
        canvas_paint_text(&p->canvas, row, column + samples[i].times + 1, samples[i].meaning, PLAIN);
        column += len + 3;
    }
    p->canvas.height = row + 1;
}

/* Two grants at once may be reported in either order; the stairs only rise. */
static void read_grant(struct picture *p, const struct stair_event *event)
{
    unsigned at = p->grants++;

    for (; at > 0 && p->grant[at - 1].token > event->token; at--)
        p->grant[at] = p->grant[at - 1];
    p->grant[at].token = event->token;
    p->grant[at].at_ms = at + 1 < p->grants && p->grant[at + 1].at_ms < event->at_ms ? p->grant[at + 1].at_ms
                                                                                     : event->at_ms;
}

static void read_events(struct picture *p)
{
    for (size_t i = 0; i < p->count; i++) {
        const struct stair_event *event = &p->events[i];

        if (lane_of(p, event->holder) == p->lanes && p->lanes < STAIR_HOLDERS_MAX)
            p->holders[p->lanes++] = event->holder;
        if ((event->kind == STAIR_GRANTED || event->kind == STAIR_SHARED) && p->grants < STAIR_GRANTS_MAX)
            read_grant(p, event);
        p->end_ms = event->at_ms > p->end_ms ? event->at_ms : p->end_ms;
    }
    p->end_ms += p->end_ms / 12 + 1; /* so that the last event is not at the very edge */
    p->floor = p->ground == STAIR_FLAT ? p->lanes : p->lanes + 2 + (p->grants > 0 ? p->grants : 1) * RISE;
}

char *staircase_draw(const struct stair_event *events, size_t count, unsigned width, unsigned style,
                     enum stair_ground ground)
{
    struct picture p = {.events = events, .count = count, .ground = ground};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    if (out == NULL)
        abort();
    width = width < STAIR_WIDTH_MIN ? STAIR_WIDTH_MIN : width > STAIR_WIDTH_MAX ? STAIR_WIDTH_MAX : width;
    p.columns = width - MARGIN;
    read_events(&p);
    p.canvas = (struct canvas){width, p.floor + 3 + LEGEND_ROWS_MAX, style, NULL};
    p.canvas.cells = cli_alloc((size_t)width * p.canvas.height * sizeof(*p.canvas.cells));
    for (size_t i = 0; i < (size_t)width * p.canvas.height; i++)
        p.canvas.cells[i] = (struct cell){' ', PLAIN};
    for (unsigned lane = 0; lane < p.lanes; lane++)
        paint_lane(&p, lane);
    if (ground == STAIR_STEPS) {
        paint_stairs(&p);
        paint_rule(&p);
        paint_token_axis(&p);
    }
    paint_time_axis(&p);
    for (size_t i = 0; i < count; i++)
        if (events[i].kind == STAIR_WAITING)
            paint_waits(&p, &events[i]);
        else
            paint_write(&p, &events[i]);
    paint_legend(&p);
    canvas_write(out, &p.canvas);
    free(p.canvas.cells);
    if (fclose(out) != 0)
        abort();
    return text;
}
