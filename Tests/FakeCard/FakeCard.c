/* A PulseAudio card without hardware. It gives an existing sink and source the ports of a telephone or a laptop, and plugs
 * and unplugs ports like a jack.
 *
 *   load-module …/FakeCard name=fake_card sink=card source=card_mic
 *   send-message /fake_card plug PORT      send-message /fake_card unplug PORT
 *
 * The ports are in the table below. Unload the card before its sink and source. */
#include "PulseCore.h"
#include <string.h>

struct port {
    const char *name, *description;
    pa_direction_t direction;
    pa_device_port_type_t type;
    pa_available_t available;
    unsigned priority;
};

static const struct port table[] = {
    {"analog-output-speaker", "Speakers", PA_DIRECTION_OUTPUT, PA_DEVICE_PORT_TYPE_SPEAKER, PA_AVAILABLE_UNKNOWN, 10000},
    {"analog-output-headphones", "Headphones", PA_DIRECTION_OUTPUT, PA_DEVICE_PORT_TYPE_HEADPHONES, PA_AVAILABLE_NO, 9900},
    {"output-earpiece", "Earpiece", PA_DIRECTION_OUTPUT, PA_DEVICE_PORT_TYPE_EARPIECE, PA_AVAILABLE_UNKNOWN, 5000},
    {"analog-input-internal-mic", "Internal Microphone", PA_DIRECTION_INPUT, PA_DEVICE_PORT_TYPE_MIC,
     PA_AVAILABLE_UNKNOWN, 8900},
    {"analog-input-headset-mic", "Headset Microphone", PA_DIRECTION_INPUT, PA_DEVICE_PORT_TYPE_HEADSET, PA_AVAILABLE_NO,
     8800},
};
enum { port_count = sizeof table / sizeof table[0] };

struct card {
    pa_core *core;
    pa_card *card;
    pa_sink *sink;
    pa_source *source;
    pa_device_port *ports[port_count];
    char *path;
};

const char *pa__get_version(void) { return "16.1"; }

static int set_profile(pa_card *card, pa_card_profile *profile) {
    (void) card, (void) profile;
    return 0;
}

static int set_sink_port(pa_sink *sink, pa_device_port *port) {
    (void) sink, (void) port;
    return 0;
}

/* Like hardware that supports every sample rate. */
static void reconfigure_sink(pa_sink *sink, pa_sample_spec *spec, bool passthrough) {
    (void) passthrough;
    sink->sample_spec.rate = spec->rate;
}

static int set_source_port(pa_source *source, pa_device_port *port) {
    (void) source, (void) port;
    return 0;
}

static int receive(const char *path, const char *message, const pa_json_object *parameters, char **answer, void *userdata) {
    struct card *self = userdata;
    (void) path, (void) parameters;
    const char *space = strchr(message, ' ');
    bool plug = strncmp(message, "plug ", 5) == 0, unplug = strncmp(message, "unplug ", 7) == 0;
    if (!space || !(plug || unplug)) return -PA_ERR_NOTIMPLEMENTED;
    pa_device_port *port = pa_hashmap_get(self->card->ports, space + 1);
    if (!port) return -PA_ERR_NOENTITY;
    pa_device_port_set_available(port, plug ? PA_AVAILABLE_YES : PA_AVAILABLE_NO);
    *answer = pa_xstrdup("true");
    return PA_OK;
}

static pa_device_port *make(pa_core *core, const struct port *facts, pa_card_profile *profile) {
    pa_device_port_new_data data;
    pa_device_port_new_data_init(&data);
    pa_device_port_new_data_set_name(&data, facts->name);
    pa_device_port_new_data_set_description(&data, facts->description);
    pa_device_port_new_data_set_direction(&data, facts->direction);
    pa_device_port_new_data_set_type(&data, facts->type);
    pa_device_port_new_data_set_available(&data, facts->available);
    pa_device_port *port = pa_device_port_new(core, &data, 0);
    pa_device_port_new_data_done(&data);
    port->priority = facts->priority;
    pa_hashmap_put(port->profiles, profile->name, profile);
    return port;
}

static pa_card *make_card(struct card *self, pa_module *module, const char *name) {
    pa_card_new_data data;
    pa_card_new_data_init(&data);
    data.driver = __FILE__;
    data.module = module;
    pa_card_new_data_set_name(&data, name);
    pa_proplist_sets(data.proplist, PA_PROP_DEVICE_DESCRIPTION, "Built-in Audio");
    pa_proplist_sets(data.proplist, PA_PROP_DEVICE_FORM_FACTOR, "internal");
    pa_card_profile *on = pa_card_profile_new("output:analog-stereo+input:analog-stereo", "Analog Stereo Duplex", 0);
    on->priority = 6500;
    on->n_sinks = on->n_sources = 1;
    on->max_sink_channels = on->max_source_channels = 2;
    on->available = PA_AVAILABLE_YES;
    pa_hashmap_put(data.profiles, on->name, on);
    for (int i = 0; i < port_count; i++) {
        self->ports[i] = make(self->core, &table[i], on);
        pa_hashmap_put(data.ports, self->ports[i]->name, self->ports[i]);
    }
    pa_card *card = pa_card_new(self->core, &data);
    pa_card_new_data_done(&data);
    return card;
}

/* The table has the best port of each direction first. */
static void give_ports(const struct card *self, pa_direction_t direction, pa_hashmap *ports, pa_device_port **active) {
    for (int i = 0; i < port_count; i++) {
        if (table[i].direction != direction) continue;
        pa_hashmap_put(ports, self->ports[i]->name, pa_object_ref((pa_object *) self->ports[i]));
        if (!*active) *active = self->ports[i];
    }
}

int pa__init(pa_module *module) {
    static const char *const keys[] = {"name", "sink", "source", NULL};
    pa_modargs *arguments = pa_modargs_new(module->argument, keys);
    if (!arguments) return -1;
    struct card *self = module->userdata = pa_xmalloc0(sizeof *self);
    self->core = module->core;
    const char *name = pa_modargs_get_value(arguments, "name", "fake_card");
    const char *sink = pa_modargs_get_value(arguments, "sink", NULL);
    const char *source = pa_modargs_get_value(arguments, "source", NULL);
    self->sink = sink ? pa_namereg_get(self->core, sink, PA_NAMEREG_SINK) : NULL;
    self->source = source ? pa_namereg_get(self->core, source, PA_NAMEREG_SOURCE) : NULL;
    bool complete = (!sink || self->sink) && (!source || self->source);
    if (complete) self->card = make_card(self, module, name);
    if (self->card) {
        self->card->userdata = self;
        self->card->set_profile = set_profile;
        pa_card_choose_initial_profile(self->card);
        pa_card_put(self->card);
        size_t size = strlen(name) + 2;
        self->path = pa_xmalloc(size);
        self->path[0] = '/';
        memcpy(self->path + 1, name, size - 1);
        pa_message_handler_register(self->core, self->path, "plug PORT, unplug PORT", receive, self);
    }
    pa_modargs_free(arguments);
    if (!self->card) {
        pa__done(module);
        return -1;
    }
    if (self->sink) {
        give_ports(self, PA_DIRECTION_OUTPUT, self->sink->ports, &self->sink->active_port);
        self->sink->card = self->card;
        self->sink->set_port = set_sink_port;
        self->sink->reconfigure = reconfigure_sink;
        self->sink->alternate_sample_rate = self->sink->sample_spec.rate == 44100 ? 48000 : 44100;
        pa_idxset_put(self->card->sinks, self->sink, NULL);
        pa_subscription_post(self->core, PA_SUBSCRIPTION_EVENT_SINK | PA_SUBSCRIPTION_EVENT_CHANGE, self->sink->index);
    }
    if (self->source) {
        give_ports(self, PA_DIRECTION_INPUT, self->source->ports, &self->source->active_port);
        self->source->card = self->card;
        self->source->set_port = set_source_port;
        pa_idxset_put(self->card->sources, self->source, NULL);
        pa_subscription_post(
            self->core, PA_SUBSCRIPTION_EVENT_SOURCE | PA_SUBSCRIPTION_EVENT_CHANGE, self->source->index);
    }
    return 0;
}

void pa__done(pa_module *module) {
    struct card *self = module->userdata;
    if (!self) return;
    if (self->path) pa_message_handler_unregister(self->core, self->path);
    if (self->sink && self->sink->card == self->card && self->card) {
        pa_idxset_remove_by_data(self->card->sinks, self->sink, NULL);
        self->sink->card = NULL;
        self->sink->active_port = NULL;
        pa_hashmap_remove_all(self->sink->ports);
    }
    if (self->source && self->source->card == self->card && self->card) {
        pa_idxset_remove_by_data(self->card->sources, self->source, NULL);
        self->source->card = NULL;
        self->source->active_port = NULL;
        pa_hashmap_remove_all(self->source->ports);
    }
    if (self->card) pa_card_free(self->card);
    pa_xfree(self->path);
    pa_xfree(self);
}
