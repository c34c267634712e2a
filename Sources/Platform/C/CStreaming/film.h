// What the files of this folder know of a film.
#pragma once
#include "CStreaming.h"

shim_film *shim_film_ref(shim_film *film);
// The list of the subtitles that are the same stream as those of this pad; -1: none.
gint shim_film_list_like(shim_film *film, GstPad *pad);
// Numbers of requests for earlier subtitles: only the newest one counts.
gint shim_film_next_request(shim_film *film);
gboolean shim_film_is_newest(shim_film *film, gint number);
// An element that posts messages about it, with a reference.
GstElement *shim_film_teller(shim_film *film);
// Adds the text in a buffer that passes the pad. TRUE: it was not known.
gboolean shim_words_take(shim_words *words, gint list, GstPad *pad, GstBuffer *buffer);
