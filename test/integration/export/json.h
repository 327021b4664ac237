/* A reader of JSON documents, as small as reading a stitching plan needs. */
#ifndef JSON_H
#define JSON_H

#include <stdint.h>

typedef enum { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT, JSON_LIST, JSON_OBJECT } json_kind;

/* Members of lists and objects are chained by `next`; those of objects have a key. */
typedef struct json {
  json_kind kind;
  double number;
  char *text, *key;
  struct json *first, *next;
} json;

/* The document; ends the program with a message if it is none. Nothing is freed. */
json *json_parse(const char *text);

const json *json_get(const json *object, const char *key); /* NULL if it is not there */
const json *json_need(const json *object, const char *key);
int64_t json_integer(const json *object, const char *key);
const char *json_text(const json *object, const char *key);
int json_is(const json *object, const char *key, const char *text);

#endif
