#include "json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json *value(const char **at);

static void fail(const char *what, const char *at) {
  fprintf(stderr, "json: %s at: %.40s\n", what, at);
  exit(2);
}

static void skip_space(const char **at) {
  while (isspace((unsigned char)**at)) ++*at;
}

/* Whether the next character is this one, which is then behind us. */
static int take(const char **at, char wanted) {
  skip_space(at);
  if (**at != wanted) return 0;
  ++*at;
  return 1;
}

static void expect(const char **at, char wanted) {
  if (!take(at, wanted)) fail("unexpected character", *at);
}

static char *put_utf8(char *out, unsigned code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3F));
  } else {
    *out++ = (char)(0xE0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  }
  return out;
}

/* Behind the opening quote. */
static char *text(const char **at) {
  char *start = malloc(strlen(*at) > 4096 ? 4096 : strlen(*at) + 1), *out = start;
  while (**at != '"') {
    if (!**at || out - start > 4000) fail("text without an end", *at);
    if (**at != '\\') {
      *out++ = *(*at)++;
      continue;
    }
    char escaped = *++*at;
    ++*at;
    const char *letters = "bfnrt", *codes = "\b\f\n\r\t", *found = strchr(letters, escaped);
    if (escaped == 'u') {
      char digits[5] = {0};
      memcpy(digits, *at, 4);
      *at += 4;
      out = put_utf8(out, (unsigned)strtoul(digits, NULL, 16));
    } else {
      *out++ = found ? codes[found - letters] : escaped;
    }
  }
  ++*at;
  *out = 0;
  return realloc(start, (size_t)(out - start) + 1);
}

static json *members(const char **at, json *parent, char end) {
  json **last = &parent->first;
  if (take(at, end)) return parent;
  do {
    char *key = NULL;
    if (end == '}') {
      expect(at, '"');
      key = text(at);
      expect(at, ':');
    }
    *last = value(at);
    (*last)->key = key;
    last = &(*last)->next;
  } while (take(at, ','));
  expect(at, end);
  return parent;
}

static json *value(const char **at) {
  static const struct {
    const char *word;
    json_kind kind;
  } words[] = {{"null", JSON_NULL}, {"false", JSON_FALSE}, {"true", JSON_TRUE}};
  json *made = calloc(1, sizeof *made);
  if (take(at, '[')) return made->kind = JSON_LIST, members(at, made, ']');
  if (take(at, '{')) return made->kind = JSON_OBJECT, members(at, made, '}');
  if (take(at, '"')) return made->kind = JSON_TEXT, made->text = text(at), made;
  for (int i = 0; i < 3; ++i)
    if (!strncmp(*at, words[i].word, strlen(words[i].word))) {
      *at += strlen(words[i].word);
      made->kind = words[i].kind;
      return made;
    }
  char *end;
  made->kind = JSON_NUMBER;
  made->number = strtod(*at, &end);
  if (end == *at) fail("no value", *at);
  *at = end;
  return made;
}

json *json_parse(const char *text) {
  json *document = value(&text);
  skip_space(&text);
  if (*text) fail("more than one value", text);
  return document;
}

const json *json_get(const json *object, const char *key) {
  const json *member = object->kind == JSON_OBJECT ? object->first : NULL;
  while (member && strcmp(member->key, key)) member = member->next;
  return member;
}

const json *json_need(const json *object, const char *key) {
  const json *member = json_get(object, key);
  if (!member) fail("a key is missing", key);
  return member;
}

int64_t json_integer(const json *object, const char *key) {
  return (int64_t)json_need(object, key)->number;
}

const char *json_text(const json *object, const char *key) {
  const json *member = json_need(object, key);
  if (member->kind != JSON_TEXT) fail("not a text", key);
  return member->text;
}

int json_is(const json *object, const char *key, const char *text) {
  const json *member = json_get(object, key);
  return member && member->kind == JSON_TEXT && !strcmp(member->text, text);
}
