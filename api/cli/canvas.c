/* canvas.c - cells of characters and colours that are painted over each other and then written out. */
#include "api/cli/canvas.h"

#include <stdlib.h>

#include "api/cli/cli.h"
#include "api/cli/staircase.h"

enum { GLYPH_FIRST = HOLDS };

static const struct {
    const char *unicode;
    char plain;
} glyphs[GLYPH_END - GLYPH_FIRST] = {
    [HOLDS - GLYPH_FIRST] = {"━", '='},    [SILENT - GLYPH_FIRST] = {"╱", '/'},
    [BELIEVES - GLYPH_FIRST] = {"╌", '-'}, [WAITS - GLYPH_FIRST] = {"·", '.'},
    [DOT - GLYPH_FIRST] = {"●", 'o'},      [CROSS - GLYPH_FIRST] = {"✕", 'X'},
    [SHADE - GLYPH_FIRST] = {"░", '.'},    [STEP - GLYPH_FIRST] = {"━", '='},
    [RISER - GLYPH_FIRST] = {"┃", '|'},    [RISE_FROM - GLYPH_FIRST] = {"┛", '+'},
    [RISE_TO - GLYPH_FIRST] = {"┏", '+'},  [AXIS - GLYPH_FIRST] = {"─", '-'},
    [TICK_UP - GLYPH_FIRST] = {"┴", '+'},  [AXIS_LEFT - GLYPH_FIRST] = {"│", '|'},
    [CORNER - GLYPH_FIRST] = {"└", '+'},   [TICK_LEFT - GLYPH_FIRST] = {"┤", '+'},
    [ARROW - GLYPH_FIRST] = {"→", '>'},
};

static const char *const colours[] = {
    [PLAIN] = "0",    [FIRST] = "0;33", [SECOND] = "0;36",      [THIRD] = "0;35", [FOURTH] = "0;34",
    [BAD] = "0;1;31", [FAINT] = "0;2",  [FORBIDDEN] = "0;2;31", [STRONG] = "0;1",
};

void canvas_init(struct canvas *canvas, unsigned width, unsigned height, unsigned style)
{
    *canvas = (struct canvas){.width = width, .height = height, .style = style};
    canvas->cells = cli_alloc((size_t)width * height * sizeof(*canvas->cells));
    for (size_t i = 0; i < (size_t)width * height; i++) {
        canvas->cells[i] = (struct cell){' ', PLAIN};
    }
}

void canvas_done(struct canvas *canvas)
{
    free(canvas->cells);
}

/* -- painting */

void canvas_paint(struct canvas *canvas, unsigned row, unsigned column, unsigned glyph, enum colour colour)
{
    if (row < canvas->height && column < canvas->width) {
        canvas->cells[row * canvas->width + column] = (struct cell){(unsigned char)glyph,
                                                                    (unsigned char)colour};
    }
}

void canvas_paint_text(struct canvas *canvas, unsigned row, unsigned column, const char *text,
                       enum colour colour)
{
    for (; *text != '\0'; text++, column++) {
        canvas_paint(canvas, row, column, *text >= ' ' && *text < 0x7f ? (unsigned)*text : '?', colour);
    }
}

bool canvas_is(const struct canvas *canvas, unsigned row, unsigned column, enum glyph glyph)
{
    return row < canvas->height && column < canvas->width &&
           canvas->cells[row * canvas->width + column].glyph == (unsigned char)glyph;
}

/* -- writing out */

static void write_cell(FILE *out, const struct canvas *canvas, struct cell cell, unsigned *colour)
{
    if ((canvas->style & STAIR_COLOUR) && *colour != cell.colour) {
        fprintf(out, "\033[%sm", colours[cell.colour]);
        *colour = cell.colour;
    }
    if (cell.glyph < GLYPH_FIRST) {
        fputc(cell.glyph, out);
    } else if (canvas->style & STAIR_UNICODE) {
        fputs(glyphs[cell.glyph - GLYPH_FIRST].unicode, out);
    } else {
        fputc(glyphs[cell.glyph - GLYPH_FIRST].plain, out);
    }
}

void canvas_write(FILE *out, const struct canvas *canvas)
{
    for (unsigned row = 0; row < canvas->height; row++) {
        const struct cell *cells = &canvas->cells[row * canvas->width];
        unsigned end = canvas->width, colour = PLAIN;

        while (end > 0 && cells[end - 1].glyph == ' ') {
            end--;
        }
        for (unsigned column = 0; column < end; column++) {
            write_cell(out, canvas, cells[column], &colour);
        }
        fputs(colour != PLAIN ? "\033[0m\n" : "\n", out);
    }
}

void canvas_write_sample(FILE *out, const struct canvas *canvas, enum glyph glyph, enum colour colour,
                         unsigned times)
{
    unsigned now = PLAIN;

    for (unsigned i = 0; i < times; i++) {
        write_cell(out, canvas, (struct cell){(unsigned char)glyph, (unsigned char)colour}, &now);
    }
    fputs(now != PLAIN ? "\033[0m " : " ", out);
}
