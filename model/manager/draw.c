/* draw.c - boxes, bars and marks. Lines of a box are made first, then boxes stand side by side. */
#include "model/manager/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/base/mem.h"
#include "model/manager/table.h"

#define MAX_MARKS 9 /* ①…⑨; more lines than that make no picture */
#define MAX_BOXES 24 /* two screens */
#define BAR 16
#define MIN_WIDTH 30
#define MAX_WIDTH 44

static const char *const marks[MAX_MARKS] = {"①", "②", "③", "④", "⑤", "⑥", "⑦", "⑧", "⑨"};

/* --- counts of replicas per host and service --- */

static int count_on(const struct model *model, int host, int service)
{
    int n = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        n += model->instances[i].host == host && model->instances[i].service == service;
    return n;
}

static int count_all(const struct model *model, int service)
{
    int n = 0;
    for (size_t i = 0; i < model->n_instances; i++)
        n += model->instances[i].service == service;
    return n;
}

double draw_crossing(const struct model *model, const char *a, const char *b)
{
    int sa = model_service(model, a), sb = model_service(model, b);
    int da = sa < 0 ? 0 : count_all(model, sa), db = sb < 0 ? 0 : count_all(model, sb);
    double local = 0;
    if (da == 0 || db == 0)
        return 0;
    for (size_t h = 0; h < model->n_hosts; h++) {
        double xa = (double)count_on(model, (int)h, sa) / da;
        double xb = (double)count_on(model, (int)h, sb) / db;
        local += xa < xb ? xa : xb;
    }
    return local < 1 ? 1 - local : 0;
}

/* --- the marked edges --- */

struct drawing {
    const struct model *model, *before;
    const struct draw_style *style;
    struct draw_edge marked[MAX_MARKS];
    size_t n_marked;
    int width; /* inside a box */
};

static void choose_marks(struct drawing *d, const struct draw_edge *edges, size_t n)
{
    for (size_t i = 0; i < n && d->n_marked < MAX_MARKS; i++) {
        double share = edges[i].share * draw_crossing(d->model, edges[i].a, edges[i].b);
        if (share >= 0.0005) { /* 0.0% would be printed */
            d->marked[d->n_marked] = edges[i];
            d->marked[d->n_marked++].share = share;
        }
    }
}

/* --- the lines of a box --- */

struct line {
    struct buf text;
    size_t width;
};

struct box {
    struct line *lines;
    size_t n_lines;
};

static void colour(const struct drawing *d, const char *code, struct buf *out)
{
    if (d->style->colour)
        buf_puts(out, code);
}

static struct line *line_new(struct box *box)
{
    return ARRAY_PUSH(box->lines, box->n_lines);
}

/* Adds text, cut to what is left of the box, an ellipsis in place of the rest. */
static void line_puts(const struct drawing *d, struct line *line, const char *text)
{
    size_t left = (size_t)d->width > line->width ? (size_t)d->width - line->width : 0;
    if (text_width(text) <= left) {
        buf_puts(&line->text, text);
        line->width += text_width(text);
        return;
    }
    if (left == 0)
        return;
    AUTO_FREE char *cut = mem_strdup(text);
    while (text_width(cut) > left - 1) {
        size_t n = strlen(cut);
        do
            n--;
        while (n > 0 && ((unsigned char)cut[n] & 0xc0) == 0x80); /* whole code points */
        cut[n] = '\0';
    }
    buf_printf(&line->text, "%s…", cut);
    line->width += text_width(cut) + 1;
}

static void put_bar(const struct drawing *d, struct box *box, const char *name, int64_t used,
                    int64_t cap)
{
    struct line *line = line_new(box);
    double share = cap > 0 ? (double)used / (double)cap : 0;
    int full = share >= 1 ? BAR : (int)(share * BAR + 0.5);
    char text[32];
    snprintf(text, sizeof text, "%-4s", name);
    line_puts(d, line, text);
    colour(d, share > 0.85 ? "\033[31m" : share > 0.6 ? "\033[33m" : "\033[32m", &line->text);
    for (int i = 0; i < BAR; i++)
        line_puts(d, line, i < full ? "█" : "░");
    colour(d, "\033[0m", &line->text);
    snprintf(text, sizeof text, " %3.0f%%", 100 * share);
    line_puts(d, line, text);
}

static void put_service(const struct drawing *d, struct box *box, int host, int service, int n)
{
    const char *name = d->model->services[service].name;
    int old_host = d->before ? model_host(d->before, d->model->hosts[host].name) : -1;
    int old_service = d->before ? model_service(d->before, name) : -1;
    bool came = d->before && (old_host < 0 || old_service < 0 ||
                              count_on(d->before, old_host, old_service) < n);
    struct line *line = line_new(box);
    colour(d, came ? "\033[1;32m" : "", &line->text);
    line_puts(d, line, came ? "+ " : "  ");
    line_puts(d, line, name);
    if (n > 1) {
        char times[24];
        snprintf(times, sizeof times, " ×%d", n);
        line_puts(d, line, times);
    }
    colour(d, came ? "\033[0m" : "", &line->text);
    for (size_t i = 0; i < d->n_marked; i++)
        if (strcmp(d->marked[i].a, name) == 0 || strcmp(d->marked[i].b, name) == 0) {
            colour(d, "\033[1;35m", &line->text);
            line_puts(d, line, " ");
            line_puts(d, line, marks[i]);
            colour(d, "\033[0m", &line->text);
        }
}

static void box_make(const struct drawing *d, int host, struct box *box)
{
    const struct host *h = &d->model->hosts[host];
    int64_t cpu = h->cpu_used_millis, mem = h->mem_used_bytes;
    for (size_t i = 0; i < d->model->n_instances; i++)
        if (d->model->instances[i].host == host) {
            cpu += d->model->instances[i].cpu_used_millis;
            mem += d->model->instances[i].mem_used_bytes;
        }
    put_bar(d, box, "cpu", cpu, h->cpu_cap_millis);
    put_bar(d, box, "mem", mem, h->mem_cap_bytes);
    size_t bars = box->n_lines;
    for (size_t s = 0; s < d->model->n_services; s++) {
        int n = count_on(d->model, host, (int)s);
        if (n)
            put_service(d, box, host, (int)s, n);
    }
    if (box->n_lines == bars) {
        struct line *line = line_new(box);
        colour(d, "\033[2m", &line->text);
        line_puts(d, line, "  (empty)");
        colour(d, "\033[0m", &line->text);
    }
}

static void box_wipe(struct box *box)
{
    for (size_t i = 0; i < box->n_lines; i++)
        buf_wipe(&box->lines[i].text);
    free(box->lines);
}

/* --- boxes side by side --- */

static void repeat(struct buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        buf_puts(out, text);
}

static void put_top(const struct drawing *d, int host, struct buf *out)
{
    struct line title = {0};
    AUTO_FREE char *zone = d->model->hosts[host].zone
                               ? mem_printf(" (%s)", d->model->hosts[host].zone)
                               : mem_strdup("");
    line_puts(d, &title, d->model->hosts[host].name);
    line_puts(d, &title, zone);
    buf_puts(out, "┌ ");
    colour(d, "\033[1m", out);
    buf_puts(out, title.text.data);
    colour(d, "\033[0m", out);
    buf_puts(out, " ");
    repeat(out, "─", d->width - (int)title.width);
    buf_puts(out, "┐");
    buf_wipe(&title.text);
}

/* One row of boxes: hosts first … first + n - 1. */
static void put_boxes(const struct drawing *d, int first, int n, struct buf *out)
{
    struct box *boxes = mem_array((size_t)n, sizeof *boxes);
    size_t height = 0;
    for (int i = 0; i < n; i++) {
        box_make(d, first + i, &boxes[i]);
        height = boxes[i].n_lines > height ? boxes[i].n_lines : height;
        buf_puts(out, i ? " " : "");
        put_top(d, first + i, out);
    }
    for (size_t y = 0; y < height; y++) {
        buf_puts(out, "\n");
        for (int i = 0; i < n; i++) {
            const struct line *line = y < boxes[i].n_lines ? &boxes[i].lines[y] : NULL;
            size_t width = line ? line->width : 0;
            buf_printf(out, "%s│ %s%*s │", i ? " " : "", line ? line->text.data : "",
                       d->width - (int)width, "");
        }
    }
    buf_puts(out, "\n");
    for (int i = 0; i < n; i++) {
        buf_puts(out, i ? " └─" : "└─");
        repeat(out, "─", d->width);
        buf_puts(out, "─┘");
        box_wipe(&boxes[i]);
    }
    buf_puts(out, "\n");
    free(boxes);
}

static int box_width(const struct drawing *d)
{
    int width = MIN_WIDTH - 4;
    for (size_t s = 0; s < d->model->n_services; s++) {
        int needed = (int)text_width(d->model->services[s].name) + 2;
        for (size_t i = 0; i < d->n_marked; i++)
            if (strcmp(d->marked[i].a, d->model->services[s].name) == 0 ||
                strcmp(d->marked[i].b, d->model->services[s].name) == 0)
                needed += 2;
        width = needed > width ? needed : width;
    }
    return width > MAX_WIDTH - 4 ? MAX_WIDTH - 4 : width;
}

void draw_placement(const struct model *model, const struct draw_edge *edges, size_t n_edges,
                    const struct model *before, const struct draw_style *style, struct buf *out)
{
    struct drawing d = {.model = model, .before = before, .style = style};
    choose_marks(&d, edges, n_edges);
    d.width = box_width(&d);
    int per_row = style->columns / (d.width + 5);
    per_row = per_row < 1 ? 1 : per_row;
    int shown = model->n_hosts < MAX_BOXES ? (int)model->n_hosts : MAX_BOXES;
    for (int h = 0; h < shown; h += per_row)
        put_boxes(&d, h, shown - h < per_row ? shown - h : per_row, out);
    if ((size_t)shown < model->n_hosts)
        buf_printf(out, "… and %zu more hosts\n", model->n_hosts - (size_t)shown);
    for (size_t i = 0; i < d.n_marked; i++) {
        buf_puts(out, i ? "  " : "crossing: ");
        colour(&d, "\033[1;35m", out);
        buf_puts(out, marks[i]);
        colour(&d, "\033[0m", out);
        buf_printf(out, " %s ↔ %s %.1f%%", d.marked[i].a, d.marked[i].b, 100 * d.marked[i].share);
        if (i % 3 == 2 && i + 1 < d.n_marked)
            buf_puts(out, "\n        ");
    }
    buf_puts(out, d.n_marked ? "\n" : "no traffic crosses hosts\n");
}
