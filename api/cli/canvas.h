/* canvas.h - cells of characters and colours that are painted over each other and then written out. For
 * staircase.c alone. */
#ifndef PAWL_CLI_CANVAS_H
#define PAWL_CLI_CANVAS_H

#include <stdbool.h>
#include <stdio.h>

/* Cells below 128 are that ASCII character. */
enum glyph {
    HOLDS = 128,
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

/* All blank; canvas_done() frees. */
void canvas_init(struct canvas *canvas, unsigned width, unsigned height, unsigned style);
void canvas_done(struct canvas *canvas);

/* What lies outside is left out. */
void canvas_paint(struct canvas *canvas, unsigned row, unsigned column, unsigned glyph, enum colour colour);
void canvas_paint_text(struct canvas *canvas, unsigned row, unsigned column, const char *text,
                       enum colour colour);
/* Whether this glyph is there. */
bool canvas_is(const struct canvas *canvas, unsigned row, unsigned column, enum glyph glyph);

/* Without blanks at the ends of lines. */
void canvas_write(FILE *out, const struct canvas *canvas);
/* A few of one glyph as it looks in the picture, and a blank. */
void canvas_write_sample(FILE *out, const struct canvas *canvas, enum glyph glyph, enum colour colour,
                         unsigned times);

#endif
