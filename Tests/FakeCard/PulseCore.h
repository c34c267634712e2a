/* The part of PulseAudio 16.1's internal interface that a card without hardware needs. Debian has no headers for modules, so
 * the declarations are here. PulseAudio refuses a module of another version (pa__get_version), so these declarations are
 * used only with a server that they describe.
 *
 * Source: src/pulsecore/{module,card,device-port,sink,source,namereg,message-handler}.h of PulseAudio 16.1. The structs
 * are complete up to the last member that is used. Only the server creates them, except the *_new_data. */
#ifndef PULSE_CORE_H
#define PULSE_CORE_H

#include <pulse/pulseaudio.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pa_core pa_core;
typedef struct pa_module pa_module;
typedef struct pa_card pa_card;
typedef struct pa_card_profile pa_card_profile;
typedef struct pa_device_port pa_device_port;
typedef struct pa_sink pa_sink;
typedef struct pa_source pa_source;
typedef struct pa_idxset pa_idxset;
typedef struct pa_hashmap pa_hashmap;
typedef struct pa_modargs pa_modargs;
typedef struct pa_json_object pa_json_object;

typedef enum { PA_AVAILABLE_UNKNOWN, PA_AVAILABLE_NO, PA_AVAILABLE_YES } pa_available_t;
typedef enum { PA_NAMEREG_SINK, PA_NAMEREG_SOURCE } pa_namereg_type_t;

typedef struct {
    int references;
    const char *type_id;
    void (*free)(void *);
    bool (*check_type)(const char *);
} pa_object;

struct pa_module {
    pa_core *core;
    char *name, *argument;
    uint32_t index;
    void *dl;
    int (*init)(pa_module *);
    void (*done)(pa_module *);
    int (*get_n_used)(pa_module *);
    void *userdata;
};

struct pa_card_profile {
    pa_card *card;
    char *name, *description, *input_name, *output_name;
    unsigned priority;
    pa_available_t available;
    unsigned n_sinks, n_sources, max_sink_channels, max_source_channels;
};

struct pa_card {
    uint32_t index;
    pa_core *core;
    char *name;
    pa_proplist *proplist;
    pa_module *module;
    char *driver;
    pa_idxset *sinks, *sources;
    pa_hashmap *profiles;
    pa_card_profile *active_profile;
    pa_hashmap *ports;
    pa_device_port *preferred_input_port, *preferred_output_port;
    bool save_profile : 1, profile_is_sticky : 1;
    int suspend_cause;
    bool linked;
    void *userdata;
    int (*set_profile)(pa_card *, pa_card_profile *);
};

typedef struct {
    char *name;
    pa_proplist *proplist;
    const char *driver;
    pa_module *module;
    pa_hashmap *profiles, *ports;
    pa_device_port *preferred_input_port, *preferred_output_port;
    bool namereg_fail : 1;
} pa_card_new_data;

struct pa_device_port {
    pa_object parent;
    pa_core *core;
    pa_card *card;
    char *name, *description, *preferred_profile;
    pa_device_port_type_t type;
    unsigned priority;
    pa_available_t available;
    char *availability_group;
    pa_proplist *proplist;
    pa_hashmap *profiles;
};

typedef struct {
    char *name, *description;
    pa_available_t available;
    char *availability_group;
    pa_direction_t direction;
    pa_device_port_type_t type;
} pa_device_port_new_data;

/* The common members of sinks and sources. `Self` is the name of the struct. */
#define PULSE_CORE_DEVICE(Self)                                                                                       \
    pa_object parent;                                                                                                 \
    int (*process_msg)(void *, int, void *, int64_t, void *);                                                         \
    uint32_t index;                                                                                                   \
    pa_core *core;                                                                                                    \
    int state;                                                                                                        \
    bool unlink_requested;                                                                                            \
    int flags, suspend_cause;                                                                                         \
    char *name, *driver;                                                                                              \
    pa_proplist *proplist;                                                                                            \
    pa_module *module;                                                                                                \
    pa_card *card;                                                                                                    \
    pa_sample_spec sample_spec;                                                                                       \
    pa_channel_map channel_map;                                                                                       \
    uint32_t default_sample_rate, alternate_sample_rate;                                                              \
    bool avoid_resampling : 1;                                                                                        \
    pa_idxset *streams;                                                                                               \
    unsigned n_corked;                                                                                                \
    void *monitor, *filter;                                                                                           \
    pa_volume_t base_volume;                                                                                          \
    unsigned n_volume_steps;                                                                                          \
    pa_cvolume reference_volume, real_volume, soft_volume;                                                            \
    bool muted : 1, refresh_volume : 1, refresh_muted : 1, save_port : 1, save_volume : 1, save_muted : 1,            \
        port_changing : 1;                                                                                            \
    pa_cvolume saved_volume;                                                                                          \
    bool saved_save_volume : 1;                                                                                       \
    void *asyncmsgq;                                                                                                  \
    struct {                                                                                                          \
        void *memblock;                                                                                               \
        size_t index, length;                                                                                         \
    } silence;                                                                                                        \
    pa_hashmap *ports;                                                                                                \
    pa_device_port *active_port;                                                                                      \
    int64_t port_latency_offset;                                                                                      \
    unsigned priority;                                                                                                \
    bool set_mute_in_progress;                                                                                        \
    void (*set_state_in_main_thread)(void), (*set_state_in_io_thread)(void);                                          \
    void (*get_volume)(void), (*set_volume)(void), (*write_volume)(void), (*get_mute)(void), (*set_mute)(void)

struct pa_sink {
    PULSE_CORE_DEVICE(pa_sink);
    void (*request_rewind)(void), (*update_requested_latency)(void);
    int (*set_port)(pa_sink *, pa_device_port *);
    void (*get_formats)(void), (*set_formats)(void);
    void (*reconfigure)(pa_sink *, pa_sample_spec *, bool passthrough);
};

struct pa_source {
    PULSE_CORE_DEVICE(pa_source);
    void (*update_requested_latency)(void);
    int (*set_port)(pa_source *, pa_device_port *);
};

/* libpulsecore and libpulsecommon, which the server has loaded, export these functions. */
pa_modargs *pa_modargs_new(const char *, const char *const[]);
void pa_modargs_free(pa_modargs *);
const char *pa_modargs_get_value(pa_modargs *, const char *key, const char *fallback);
void *pa_namereg_get(pa_core *, const char *name, pa_namereg_type_t);
int pa_hashmap_put(pa_hashmap *, void *key, void *value);
void *pa_hashmap_get(pa_hashmap *, const void *key);
void pa_hashmap_remove_all(pa_hashmap *);
int pa_idxset_put(pa_idxset *, void *, uint32_t *index);
void *pa_idxset_remove_by_data(pa_idxset *, const void *, uint32_t *index);
pa_object *pa_object_ref(pa_object *);
pa_card_profile *pa_card_profile_new(const char *name, const char *description, size_t extra);
pa_card_new_data *pa_card_new_data_init(pa_card_new_data *);
void pa_card_new_data_set_name(pa_card_new_data *, const char *);
void pa_card_new_data_done(pa_card_new_data *);
pa_card *pa_card_new(pa_core *, pa_card_new_data *);
void pa_card_choose_initial_profile(pa_card *);
void pa_card_put(pa_card *);
void pa_card_free(pa_card *);
pa_device_port_new_data *pa_device_port_new_data_init(pa_device_port_new_data *);
void pa_device_port_new_data_set_name(pa_device_port_new_data *, const char *);
void pa_device_port_new_data_set_description(pa_device_port_new_data *, const char *);
void pa_device_port_new_data_set_available(pa_device_port_new_data *, pa_available_t);
void pa_device_port_new_data_set_direction(pa_device_port_new_data *, pa_direction_t);
void pa_device_port_new_data_set_type(pa_device_port_new_data *, pa_device_port_type_t);
void pa_device_port_new_data_done(pa_device_port_new_data *);
pa_device_port *pa_device_port_new(pa_core *, pa_device_port_new_data *, size_t extra);
void pa_device_port_set_available(pa_device_port *, pa_available_t);
void pa_core_update_default_sink(pa_core *);
void pa_core_update_default_source(pa_core *);
void pa_subscription_post(pa_core *, pa_subscription_event_type_t, uint32_t index);
void pa_message_handler_register(
    pa_core *, const char *path, const char *description,
    int (*)(const char *path, const char *message, const pa_json_object *, char **answer, void *userdata), void *userdata);
void pa_message_handler_unregister(pa_core *, const char *path);

/* The functions that the server looks up in a module. */
int pa__init(pa_module *);
void pa__done(pa_module *);
const char *pa__get_version(void);

#endif
