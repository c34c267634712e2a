// What runs on GStreamer's own threads, where no Swift code may run: pad probes, clocks, and work that waits for a disk.
// All functions here are called on the thread of the loop, and return at once.
#pragma once
#include "../../CGStreamer/shim.h"

// MARK: Blocking a pad, and the end of a source (hold.c)

// Blocks a pad at its next buffer, and posts an application message on the bus of the pipeline for each item that arrives
// at the blocked pad. It blocks only at a buffer, because the elements before the pad have negotiated their format by then.
// Returns the number of the probe.
gulong shim_hold_pad(GstPad *pad, GstElement *pipeline);
// The number of the probe that a message is from, or 0.
gulong shim_held_pad(GstMessage *message);

typedef struct {
    gint armed;
    GstElement *pipeline;
} shim_succession;
// Posts "source-ended" on the bus when a source has ended. While another source follows (`armed`), it drops the end, so that
// the elements after the pad do not get it. `succession` must live as long as the pad.
void shim_watch_end(GstPad *pad, shim_succession *succession);
void shim_succession_arm(shim_succession *succession, gint armed);

// MARK: What a reader sees of a file (view.c), and what a parser gets from a server (supply.c)

// Skips the first `skip` bytes of the file that is read through a source pad, or replaces them by `header`, and refuses
// reads above `limit` bytes, because parsers read any size that a header claims into memory.
void shim_limit_view(GstPad *pad, guint64 skip, const void *header, gsize header_size, guint limit);
// Limits the bytes from a server between two buffers of sound, because parsers keep all of them in memory.
void shim_limit_supply(GstPad *source, GstPad *sound, gint64 limit);

// MARK: Frames and bytes (trim.c, tally.c)

// Removes the padding of an encoder before and after the sound: `skip` frames, and everything after the next `length`
// frames. For the elements after the pad, the sound begins at 0; seeks and lengths are converted.
void shim_trim_pad(GstPad *pad, guint64 skip, guint64 length, gint rate);

typedef struct {
    gint64 bytes;
    gint64 limit;
    GstElement *pipeline;
} shim_tally;
// Counts the bytes through a pad, and drops those after `limit`; then it posts "limit-reached". So lengths are exact, even if
// the loop is late. `tally` must live as long as the pad.
void shim_count_bytes(GstPad *pad, shim_tally *tally);
gint64 shim_tally_bytes(shim_tally *tally);
void shim_tally_limit(shim_tally *tally, gint64 limit);

// MARK: Subtitles (words.c)

typedef struct shim_words shim_words;
shim_words *shim_words_new(void);
void shim_words_free(gpointer words);
// A new list of subtitles, by its number.
gint shim_words_add_list(shim_words *words);
// A text of a list; times in nanoseconds of the film. Texts that are already in it are ignored.
// TRUE: it was not there.
gboolean shim_words_add(shim_words *words, gint list, guint64 start, guint64 end, const char *markup);
// The list that is drawn from the next picture on; -1: none.
void shim_words_show(shim_words *words, gint list);
// Draws with the textoverlay whose entry this is.
void shim_words_draw(shim_words *words, GstPad *entry);
// Makes a list of the texts that a pad gives, and drops them.
gint shim_words_collect(shim_words *words, GstPad *pad);

// MARK: The streams of a film (film.c)

typedef enum { SHIM_TRACK_AUDIO, SHIM_TRACK_VIDEO, SHIM_TRACK_SUBTITLE, SHIM_TRACK_OTHER } shim_track_kind;
typedef struct shim_film shim_film;
// Links one output with sound, and the first one with pictures, that a source of films gets to these elements, which are in
// the same bin. `heard`: which of those with sound; the first one if there is no such. Posts "film-tracks" when all are known.
shim_film *shim_film_new(GstElement *source, GstElement *sound, GstElement *pictures, gint heard);
void shim_film_free(shim_film *film);
// Borrowed.
shim_words *shim_film_words(shim_film *film);
guint shim_film_count(shim_film *film);
// Whether the name of the type of all its data, such as "image/png", begins so. False before its streams are known.
gboolean shim_film_has_type(shim_film *film, const char *beginning);
typedef struct {
    shim_track_kind kind;
    // Of its subtitles, or -1.
    gint list;
    gboolean is_heard;
    // NULL if unknown.
    char *language, *title, *codec;
} shim_track;
// The caller clears it.
shim_track shim_film_track(shim_film *film, guint place);
void shim_track_clear(shim_track *track);
gboolean shim_tracks_known(GstMessage *message);
// Reads, on a thread of its own, the subtitles in a Matroska file that begin in the time before that one, in nanoseconds, and adds
// them to the lists of the film. Ends one that was requested before. Posts a message if there are new ones.
void shim_film_read_earlier(shim_film *film, const char *path, guint64 time, guint64 reach);
// The same with a film of the web, of which it reads at most so many bytes.
void shim_film_fetch_earlier(shim_film *film, const char *uri, guint64 time, guint64 reach, gint64 bytes);
gboolean shim_words_came(GstMessage *message);
// What a message about a missing plugin is about.
shim_track_kind shim_lacking_kind(GstMessage *message);

// MARK: Pictures (pictures.c)

typedef struct {
    gint width, height;
    // The width of a pixel divided by its height.
    gint numerator, denominator;
    // Pictures per second as a fraction; 0: unknown, or it varies.
    gint rate, rate_divisor;
} shim_size;
// Posts the size of the pictures through a pad on the bus, each time it changes, before the first of them.
void shim_watch_size(GstPad *pad, GstElement *pipeline);
// The size in such a message; false for all others.
gboolean shim_picture_size(GstMessage *message, shim_size *size);

// Nanoseconds of the film. After an exact seek, `start` may be later than the picture begins; `usual` is the length of one
// by the rate of the film.
typedef struct {
    guint64 start, end, usual;
} shim_picture_times;
typedef struct shim_last_picture shim_last_picture;
// Keeps the times of the last picture that passed a pad; all 0 before the first.
shim_last_picture *shim_watch_last_picture(GstPad *pad);
void shim_last_picture_free(gpointer last);
shim_picture_times shim_last_picture_times(shim_last_picture *last);

// MARK: Pictures for another pipeline (relay.c)

typedef struct shim_relay shim_relay;
shim_relay *shim_relay_new(void);
void shim_relay_free(gpointer relay);
// From now on it takes the pictures (YUY2, of an even width) that a sink with signals for hand-offs gets, as those of a new film.
void shim_relay_take_from(shim_relay *relay, GstElement *sink);
// The size of the pictures that it gives, of an even width: others are put in the middle, with black around, or cut off. The last
// picture is forgotten. 0: it gives none.
void shim_relay_set_size(shim_relay *relay, gint width, gint height);
// An appsrc that never waits gets the pictures, and at once the last one; NULL: none does.
void shim_relay_give_to(shim_relay *relay, GstElement *receiver);
// Gives the last picture again if none was given for so many microseconds.
void shim_relay_repeat(shim_relay *relay, gint64 silence);
// A pipeline whose changes of state may have to wait for a server: they are done on another thread. `end` is its last element. The
// caller owns the pipeline, which stops after shim_far_free.
typedef struct shim_far shim_far;
shim_far *shim_far_new(GstElement *pipeline, GstElement *end);
void shim_far_play(shim_far *far);
void shim_far_free(gpointer far);
// The buffers that have come to its end.
guint shim_far_count(shim_far *far);

// MARK: Live streams (live.c)

// What passes from an encoder into one of its users: a connection to a server, or a file. The encoder never waits for it: when
// its queue is longer than `limit` nanoseconds, pictures are dropped up to the next key frame. The first picture is a key
// frame, and the times of what passes begin at 0 with it.
typedef struct shim_gate shim_gate;
// When the element that sends has been given `needed` buffers (0: when the first picture has passed), an application message
// is posted on the bus of the pipeline. `id` is not 0.
shim_gate *shim_gate_new(GstElement *pipeline, guint id, guint64 limit, guint needed);
void shim_gate_free(gpointer gate);
// The pad where pictures, or sound, come in, and the queue after it.
void shim_gate_add(shim_gate *gate, GstPad *entry, GstElement *queue, gboolean is_sound);
// The pad of the element that sends.
void shim_gate_watch(shim_gate *gate, GstPad *sink);
typedef struct {
    // Pictures.
    guint64 passed, dropped;
    // Buffers and bytes that came to the element that sends.
    guint64 arrived, bytes;
    // Nanoseconds in the longer queue.
    guint64 queued;
} shim_gate_facts;
shim_gate_facts shim_gate_read(shim_gate *gate);
// The id of the gate that a message is from, or 0.
guint shim_taken_gate(GstMessage *message);
// The bin, borrowed, in which a sink has got the end of the stream; NULL for other messages. Its `message-forward` is set.
GstElement *shim_ended_bin(GstMessage *message);
// Posts an application message on the bus of the pipeline when the end passes a pad.
void shim_tell_end(GstPad *pad, GstElement *pipeline);
gboolean shim_stream_ended(GstMessage *message);
// Before an encoder: a key frame each `interval` nanoseconds.
void shim_beat_keys(GstPad *pad, guint64 interval);
// For an output before an encoder: the picture with that time stamp, and that running time, becomes a key frame. Not for the
// first picture, which is one anyway (shim_key_unit_request in live.c).
void shim_ask_for_key(GstPad *pad, guint64 stamp, guint64 time, guint count);
// Counts the buffers through a pad; `count` must live as long as the pad.
void shim_count_buffers(GstPad *pad, guint64 *count);
guint64 shim_counted_buffers(guint64 *count);
// Counts the buffers that did not come, of a source that numbers them (their offsets); `lost` must live as long as the pad.
void shim_count_lost(GstPad *pad, guint64 *lost);

// MARK: A live stream that is watched (pull.c)

// What was received, encoded, until it is shown. A pipeline receives it; another one shows it.
typedef struct shim_pull shim_pull;
shim_pull *shim_pull_new(void);
void shim_pull_free(gpointer pull);
// From now on it takes what the connection of that number, not 0, receives: through `parser`, a parsebin, or through one for
// each stream of `session`, a source of RTSP. One of them is NULL. The pipeline that they are in is not started yet.
void shim_pull_receive(shim_pull *pull, guint connection, GstElement *parser, GstElement *session);
// Nothing of that connection is taken any more.
void shim_pull_disconnect(shim_pull *pull);
// Nothing more comes: what shows it gets the end after the last picture.
void shim_pull_finish(shim_pull *pull);
typedef struct {
    // All streams are known, and each has begun.
    gboolean is_ready;
    // How many streams there are: sound, pictures.
    guint streams;
    guint64 arrived;
    // The newest and the first that arrived, in nanoseconds of the stream.
    guint64 newest, first;
    // Microseconds since the last one and the first one arrived.
    guint64 silence, time;
    // Pictures that were left out, and how often something came too late since it is shown.
    guint64 skipped;
    guint late;
    // How often it was this machine that was too slow.
    guint slow;
} shim_pull_facts;
shim_pull_facts shim_pull_read(shim_pull *pull);
// Gives the empty bin `bin`, in the state NULL, an output for the sound and one for the pictures, as far as there are any, which
// the caller links to the two queues in the same pipeline. It begins with what is older than the newest by `delay` nanoseconds.
gboolean shim_pull_show(shim_pull *pull, GstElement *bin, GstElement *sound, GstElement *pictures, guint64 delay);
// The pipeline that shows it from now on.
void shim_pull_set_screen(shim_pull *pull, GstElement *pipeline);
// That pipeline goes, or shows it no more.
void shim_pull_leave(shim_pull *pull, GstElement *pipeline);
// Leaves out what is older than `delay` nanoseconds. False: nothing is.
gboolean shim_pull_skip(shim_pull *pull, guint64 delay);
// From what is shown next on.
void shim_pull_set_rate(shim_pull *pull, gdouble rate);

// MARK: The end of a screen (xlib.c)

// From now on the end of an X11 server, or of a window, does not end the process. The plugin of ximagesink must be loaded.
// A connection outlives its server only after it has had an error, such as that of a window that does not exist.
void shim_outlive_screen(void);
// How many errors there were since: a screen that is read beyond its edge gives one for each picture.
guint shim_screen_errors(void);

// MARK: Files that survive a crash of the machine (disk.c)

typedef struct shim_disk shim_disk;
// Takes ownership of the descriptor.
shim_disk *shim_disk_new(int descriptor);
void shim_disk_free(gpointer disk);
// Writes to the disk what the file has (fdatasync). Only one runs at a time; further requests cause one more after it.
void shim_disk_sync(shim_disk *disk, GstElement *element);

// MARK: The clock of pulsesink (clock.c)

// Installs a clock that does not believe libpulse after a start. Must be called before the first use of the sink. Does
// nothing for a sink without a clock.
void shim_doubt_clock(GstElement *element);
// Whether the clock no longer asks libpulse: then it does not know which part of the stream is heard.
gboolean shim_clock_is_lost(GstElement *element);
// The sink has no stream. The next one begins at 0.
void shim_renew_clock(GstElement *element);

// MARK: When the sound of a microphone was there (moments.c)

// An element of GstAudioBaseSrc that is not the clock's master gives its sound the running times at which it was there, instead
// of those at which it was read. The first tenth of a second, which tells that, is left out. Before its first use.
void shim_time_moments(GstElement *source);

// The same without an element, for tests.
typedef struct shim_moments shim_moments;
typedef struct {
    gboolean is_known;  // FALSE: leave the buffer out
    guint64 start;  // running time in nanoseconds of what is not skipped
    guint64 skip;  // samples at its beginning that are left out
    gboolean follows_gap;
} shim_placed;
shim_moments *shim_moments_new(gint rate);
void shim_moments_free(gpointer moments);
// `number`: that of the first sample, since the beginning; `waiting`: samples that have come after these; `now`: a running time.
shim_placed shim_moments_place(shim_moments *moments, guint64 number, guint64 samples, guint64 waiting, guint64 now);

// MARK: A film that is recorded (take.c)

// Which pictures and which samples of a camera and a microphone are in a film, and their times in it: with pauses, and with a
// limit that is exact to the picture. Posts "take-full" when the limit is reached, "take-over" when it was closed and all of
// it has passed. Times are running times in nanoseconds.
typedef struct shim_take shim_take;
// Pictures per second as a fraction, and samples per second; 0: no sound.
shim_take *shim_take_new(GstElement *pipeline, gint numerator, gint denominator, gint rate);
void shim_take_free(gpointer take);
// Tells it what arrives at a pad before the tee.
gulong shim_take_watch(shim_take *take, GstPad *pad, gboolean has_sound);
// Lets through an output of a tee what is in the film.
gulong shim_take_gate(shim_take *take, GstPad *pad, gboolean has_sound);
// The pictures are encoded, for others as well: `entry` is the output of an element before the encoder, and what is watched and
// let through is behind it. The first picture of each part of the film becomes a key frame. Before the take begins. NULL, for
// tests: shim_take_enters is called.
gulong shim_take_encoded(shim_take *take, GstPad *entry);
// Begins as soon as pictures, and sound, arrive. `limit`: the most pictures; 0: any number.
void shim_take_begin(shim_take *take, guint64 limit);
// Leaves out what comes from the next picture on; and goes on with the next picture.
void shim_take_pause(shim_take *take);
void shim_take_resume(shim_take *take);
// Ends it with the next picture.
void shim_take_close(shim_take *take);
// How many are in the film.
guint64 shim_take_pictures(shim_take *take);
guint64 shim_take_samples(shim_take *take);
// What the pads tell it, for tests.
void shim_take_saw_picture(shim_take *take, guint64 time);
// Of a picture before the encoder; true: it must become a key frame.
gboolean shim_take_enters(shim_take *take, guint64 time);
void shim_take_saw_sound(shim_take *take, guint64 end);
gboolean shim_take_picture(shim_take *take, guint64 time, guint64 *place);
gboolean shim_take_sound(
    shim_take *take, guint64 time, guint64 frames, guint64 *skip, guint64 *count, guint64 *place);

// The running time of a buffer at a pad; GST_CLOCK_TIME_NONE if it has none.
guint64 shim_running_time(GstPad *pad, GstBuffer *buffer);

// Posts "film-written" when the end has passed the pad of a sink: everything before it is written.
void shim_watch_written(GstPad *pad, GstElement *pipeline);
// Posts the name of a bin when its first buffer has passed a pad.
void shim_watch_first(GstPad *pad, GstElement *bin, GstElement *pipeline);
// What is linked behind `pad` later does not make its source agree on a format again.
void shim_keep_format(GstPad *pad);
// The name in such a message; NULL for all others.
const char *shim_first_buffer(GstMessage *message);

// MARK: Photos, one directly after the other (burst.c)

// Keeps the next `count` pictures that pass a pad, and then posts "burst-full".
typedef struct shim_burst shim_burst;
shim_burst *shim_burst_new(GstPad *pad, GstElement *pipeline, guint count);
void shim_burst_free(gpointer burst);
// How many it has.
guint shim_burst_count(shim_burst *burst);
// Owned by the caller; NULL: there is none at that place.
GstSample *shim_burst_sample(shim_burst *burst, guint place);
// It keeps no more.
void shim_burst_end(shim_burst *burst);

// MARK: Pictures for another program (frames.c)

// Writes the pictures that pass a pad to a FIFO, on a thread of its own. Nobody waits for a reader: one that is slow loses whole
// pictures, which are counted.
typedef struct shim_frames shim_frames;
typedef struct {
    const char *path;
    // The bytes of one row, the rows, and the bytes from one row to the next, of each plane; 0 bytes: there is no such plane.
    gint bytes[3], rows[3], stride[3];
    gint width, height;
    // Pictures per second as a fraction.
    gint numerator, denominator;
    // Before each picture: shim_frame_header.
    gboolean has_header;
} shim_frames_format;
typedef struct {
    guint32 header_size, picture_size;
    // It rises by one with each picture of the camera, so a step of more than one tells what is missing.
    guint64 number;
    // When it came from the camera: CLOCK_MONOTONIC in nanoseconds.
    guint64 time;
    guint32 width, height;
} shim_frame_header;
// `end`: the pad that they pass, in a bin of `pipeline`.
shim_frames *shim_frames_new(const shim_frames_format *format, GstPad *end, GstElement *pipeline);
// Writes nothing more; returns at once.
void shim_frames_end(shim_frames *frames);
void shim_frames_free(gpointer frames);
typedef struct {
    guint64 written;
    // Pictures that a reader which is there did not get.
    guint64 lost;
    gboolean is_read;
} shim_frames_facts;
shim_frames_facts shim_frames_read(shim_frames *frames);
