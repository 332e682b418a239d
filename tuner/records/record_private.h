/* tuner/records/record_private.h: records, workloads and choices as rows of fields: one description for digest, JSON and
 * SQL. */
#ifndef TL_TUNER_RECORDS_RECORD_PRIVATE_H
#define TL_TUNER_RECORDS_RECORD_PRIVATE_H
#include <stddef.h>
#include "tuner/records/record.h"

typedef enum {
    TL_FIELD_TEXT,   /* const char * */
    TL_FIELD_STATUS, /* tl_record_status, written as its word */
    TL_FIELD_REAL,   /* double */
    TL_FIELD_TIMES,  /* tl_record.time_count doubles, written "1.5,2" */
    TL_FIELD_BOOL,
    TL_FIELD_COLD, /* tl_cold: its number, and in JSON its word */
    TL_FIELD_INT,
    TL_FIELD_LONG, /* int64_t */
} tl_field_type;

typedef struct {
    const char *name;
    tl_field_type type;
    size_t offset;
    bool is_label; /* where it is 0 or "" it is in no digest, and may be missing */
} tl_field;
enum { TL_MAX_FIELDS = 48 };

/* A struct that begins with char uid[33]. */
typedef struct {
    const char *kind;  /* "trial": of its JSON line */
    const char *table; /* "trials" */
    int count;
    const tl_field *fields;
    size_t size;
} tl_row_type;
extern const tl_row_type tl_trial_row, tl_workload_row, tl_choice_row, tl_annex_row;
/* Room for a row of any type. */
typedef union {
    tl_record record;
    tl_workload_info workload;
    tl_choice choice;
    tl_annex annex;
} tl_any_row;

/* A field's value on its way in or out: text, number or integer as its type says. */
typedef struct {
    const char *text; /* TEXT, STATUS, TIMES */
    double real;      /* REAL */
    int64_t integer;  /* BOOL, COLD, INT, LONG */
} tl_field_value;
/* `scratch` holds the text of TIMES until its next use. */
void tl_field_get(const tl_field *field, const void *row, tl_text *scratch, tl_field_value *out);
/* False: the value is out of range or no such word. Lists go into the arena; texts are kept as they are. */
bool tl_field_set(const tl_field *field, void *row, const tl_field_value *value, tl_arena *arena);

/* What a label is where nobody says. */
void tl_field_set_default(const tl_field *field, void *row);

void tl_row_digest(const tl_row_type *type, const void *row, char out[33]);
void tl_row_copy(const tl_row_type *type, tl_arena *arena, const void *row, void *out);

void tl_real_print(double value, tl_text *out);     /* the fewest digits that read back exactly */
void tl_json_print(const char *text, tl_text *out); /* quoted and escaped */

#endif
