/* A PipeWire card without hardware: a program that exports a device with the two outputs of a laptop, speaker and
 * headphones, and one sink for both. WirePlumber and pipewire-pulse take it for an ALSA card.
 *
 *   FakePipeWireCard NAME       the sink is NAME_output
 *   commands on standard input: plug, unplug; the card ends with its input */
#include <pipewire/impl.h>
#include <pipewire/pipewire.h>
#include <spa/monitor/device.h>
#include <spa/monitor/utils.h>
#include <spa/param/audio/raw.h>
#include <spa/param/profile.h>
#include <spa/param/props.h>
#include <spa/param/route.h>
#include <spa/pod/builder.h>
#include <spa/pod/filter.h>
#include <spa/pod/parser.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { speaker, headphones, route_count };
/* The device's parameters, in the order of their infos. */
enum { enum_profile, profile, enum_route, route, parameter_count };

static struct {
    struct spa_device device;
    struct spa_hook_list listeners;
    struct spa_device_info info;
    struct spa_param_info parameters[parameter_count];
    struct spa_hook events;
    struct pw_main_loop *loop;
    struct pw_core *core;
    const char *name;
    bool plugged;
    int active;
} card;

static struct spa_pod *build_profile(struct spa_pod_builder *builder, uint32_t id) {
    struct spa_pod_frame object, classes;
    int32_t device = 0;
    spa_pod_builder_push_object(builder, &object, SPA_TYPE_OBJECT_ParamProfile, id);
    spa_pod_builder_add(
        builder, SPA_PARAM_PROFILE_index, SPA_POD_Int(0), SPA_PARAM_PROFILE_name,
        SPA_POD_String("output:analog-stereo"), SPA_PARAM_PROFILE_description, SPA_POD_String("Analog Stereo Output"),
        SPA_PARAM_PROFILE_priority, SPA_POD_Int(6500), SPA_PARAM_PROFILE_available,
        SPA_POD_Id(SPA_PARAM_AVAILABILITY_yes), 0);
    spa_pod_builder_prop(builder, SPA_PARAM_PROFILE_classes, 0);
    spa_pod_builder_push_struct(builder, &classes);
    spa_pod_builder_int(builder, 1);
    spa_pod_builder_add_struct(
        builder, SPA_POD_String("Audio/Sink"), SPA_POD_Int(1), SPA_POD_String("card.profile.devices"),
        SPA_POD_Array(sizeof device, SPA_TYPE_Int, 1, &device));
    spa_pod_builder_pop(builder, &classes);
    return spa_pod_builder_pop(builder, &object);
}

static struct spa_pod *build_route(struct spa_pod_builder *builder, uint32_t id, int index) {
    struct spa_pod_frame object, info;
    int32_t device = 0;
    bool jack = index == headphones;
    int availability = !jack          ? SPA_PARAM_AVAILABILITY_unknown
                       : card.plugged ? SPA_PARAM_AVAILABILITY_yes
                                      : SPA_PARAM_AVAILABILITY_no;
    spa_pod_builder_push_object(builder, &object, SPA_TYPE_OBJECT_ParamRoute, id);
    spa_pod_builder_add(
        builder, SPA_PARAM_ROUTE_index, SPA_POD_Int(index), SPA_PARAM_ROUTE_direction, SPA_POD_Id(SPA_DIRECTION_OUTPUT),
        SPA_PARAM_ROUTE_name, SPA_POD_String(jack ? "analog-output-headphones" : "analog-output-speaker"),
        SPA_PARAM_ROUTE_description, SPA_POD_String(jack ? "Headphones" : "Speakers"), SPA_PARAM_ROUTE_priority,
        SPA_POD_Int(jack ? 9900 : 10000), SPA_PARAM_ROUTE_available, SPA_POD_Id(availability), 0);
    spa_pod_builder_prop(builder, SPA_PARAM_ROUTE_info, 0);
    spa_pod_builder_push_struct(builder, &info);
    spa_pod_builder_int(builder, 1);
    spa_pod_builder_add(
        builder, SPA_POD_String("port.type"), SPA_POD_String(jack ? "headphones" : "speaker"), NULL);
    spa_pod_builder_pop(builder, &info);
    spa_pod_builder_add(
        builder, SPA_PARAM_ROUTE_profiles, SPA_POD_Array(sizeof device, SPA_TYPE_Int, 1, &device),
        SPA_PARAM_ROUTE_devices, SPA_POD_Array(sizeof device, SPA_TYPE_Int, 1, &device), 0);
    if (id == SPA_PARAM_Route) {
        float volumes[] = {1, 1};
        uint32_t channels[] = {SPA_AUDIO_CHANNEL_FL, SPA_AUDIO_CHANNEL_FR};
        spa_pod_builder_add(
            builder, SPA_PARAM_ROUTE_device, SPA_POD_Int(0), SPA_PARAM_ROUTE_profile, SPA_POD_Int(0),
            SPA_PARAM_ROUTE_save, SPA_POD_Bool(false), 0);
        spa_pod_builder_prop(builder, SPA_PARAM_ROUTE_props, 0);
        spa_pod_builder_add_object(
            builder, SPA_TYPE_OBJECT_Props, id, SPA_PROP_mute, SPA_POD_Bool(false), SPA_PROP_channelVolumes,
            SPA_POD_Array(sizeof *volumes, SPA_TYPE_Float, 2, volumes), SPA_PROP_channelMap,
            SPA_POD_Array(sizeof *channels, SPA_TYPE_Id, 2, channels));
    }
    return spa_pod_builder_pop(builder, &object);
}

static int enum_params(
    void *object, int sequence, uint32_t id, uint32_t start, uint32_t count, const struct spa_pod *filter) {
    (void)object;
    uint32_t given = 0, total = id == SPA_PARAM_EnumRoute ? route_count : 1;
    if (id != SPA_PARAM_EnumProfile && id != SPA_PARAM_Profile && id != SPA_PARAM_EnumRoute && id != SPA_PARAM_Route)
        return -ENOENT;
    for (uint32_t index = start; given < count && index < total; index++) {
        uint8_t buffer[4096];
        struct spa_pod_builder builder = SPA_POD_BUILDER_INIT(buffer, sizeof buffer);
        struct spa_result_device_params result = {.id = id, .index = index, .next = index + 1};
        struct spa_pod *pod = id == SPA_PARAM_EnumRoute ? build_route(&builder, id, (int)index)
                              : id == SPA_PARAM_Route   ? build_route(&builder, id, card.active)
                                                        : build_profile(&builder, id);
        if (spa_pod_filter(&builder, &result.param, pod, filter) < 0) continue;
        spa_device_emit_result(&card.listeners, sequence, 0, SPA_RESULT_TYPE_DEVICE_PARAMS, &result);
        given++;
    }
    return 0;
}

/* Announces the change of a parameter: its serial flag changes. */
static void tell_changed(bool routes_too) {
    if (routes_too) card.parameters[enum_route].flags ^= SPA_PARAM_INFO_SERIAL;
    card.parameters[route].flags ^= SPA_PARAM_INFO_SERIAL;
    card.info.change_mask = SPA_DEVICE_CHANGE_MASK_PARAMS;
    spa_device_emit_info(&card.listeners, &card.info);
}

static int set_param(void *object, uint32_t id, uint32_t flags, const struct spa_pod *parameter) {
    (void)object, (void)flags;
    int32_t index = 0;
    if (id != SPA_PARAM_Route || !parameter) return 0;
    if (spa_pod_parse_object(
            parameter, SPA_TYPE_OBJECT_ParamRoute, NULL, SPA_PARAM_ROUTE_index, SPA_POD_Int(&index)) < 0)
        return -EINVAL;
    if (index < 0 || index >= route_count) return -EINVAL;
    card.active = index;
    tell_changed(false);
    printf("route %d\n", index);
    fflush(stdout);
    return 0;
}

static int add_listener(
    void *object, struct spa_hook *listener, const struct spa_device_events *events, void *data) {
    (void)object;
    struct spa_hook_list others;
    spa_hook_list_isolate(&card.listeners, &others, listener, events, data);
    card.info.change_mask =
        SPA_DEVICE_CHANGE_MASK_FLAGS | SPA_DEVICE_CHANGE_MASK_PROPS | SPA_DEVICE_CHANGE_MASK_PARAMS;
    spa_device_emit_info(&card.listeners, &card.info);
    spa_hook_list_join(&card.listeners, &others);
    return 0;
}

static int synchronize(void *object, int sequence) {
    (void)object;
    spa_device_emit_result(&card.listeners, sequence, 0, 0, NULL);
    return 0;
}

static const struct spa_device_methods methods = {
    SPA_VERSION_DEVICE_METHODS, .add_listener = add_listener, .sync = synchronize, .enum_params = enum_params,
    .set_param = set_param};

/* The device has its id now, which the sink needs to refer to it. */
static void bound(void *data, uint32_t id) {
    (void)data;
    char device[16], name[256];
    snprintf(device, sizeof device, "%u", id);
    snprintf(name, sizeof name, "%s_output", card.name);
    struct pw_properties *properties = pw_properties_new(
        "factory.name", "support.null-audio-sink", "media.class", "Audio/Sink", "node.name", name, "node.description",
        "Built-in Audio", "audio.position", "FL,FR", "device.id", device, "card.profile.device", "0",
        "monitor.channel-volumes", "true", "priority.session", "1000", NULL);
    pw_core_create_object(card.core, "adapter", PW_TYPE_INTERFACE_Node, PW_VERSION_NODE, &properties->dict, 0);
    pw_properties_free(properties);
}

static const struct pw_proxy_events proxy_events = {PW_VERSION_PROXY_EVENTS, .bound = bound};

static void obey(void *data, int descriptor, uint32_t mask) {
    (void)data, (void)mask;
    char line[64];
    ssize_t length = read(descriptor, line, sizeof line - 1);
    if (length <= 0) {
        pw_main_loop_quit(card.loop);
        return;
    }
    line[length] = 0;
    card.plugged = strncmp(line, "plug", 4) == 0;
    tell_changed(true);
}

int main(int count, char **arguments) {
    if (count != 2) return 64;
    card.name = arguments[1];
    pw_init(NULL, NULL);
    card.loop = pw_main_loop_new(NULL);
    spa_hook_list_init(&card.listeners);
    card.device.iface = SPA_INTERFACE_INIT(SPA_TYPE_INTERFACE_Device, SPA_VERSION_DEVICE, &methods, &card);
    card.parameters[enum_profile] = (struct spa_param_info){.id = SPA_PARAM_EnumProfile, .flags = SPA_PARAM_INFO_READ};
    card.parameters[profile] = (struct spa_param_info){.id = SPA_PARAM_Profile, .flags = SPA_PARAM_INFO_READWRITE};
    card.parameters[enum_route] = (struct spa_param_info){.id = SPA_PARAM_EnumRoute, .flags = SPA_PARAM_INFO_READ};
    card.parameters[route] = (struct spa_param_info){.id = SPA_PARAM_Route, .flags = SPA_PARAM_INFO_READWRITE};
    const struct spa_dict_item items[] = {
        {"device.name", card.name},       {"device.description", "Built-in Audio"},  {"device.api", "alsa"},
        {"media.class", "Audio/Device"}, {"device.form-factor", "internal"},
    };
    const struct spa_dict properties = SPA_DICT_INIT_ARRAY(items);
    card.info = SPA_DEVICE_INFO_INIT();
    card.info.props = &properties;
    card.info.params = card.parameters;
    card.info.n_params = parameter_count;
    struct pw_context *context = pw_context_new(pw_main_loop_get_loop(card.loop), NULL, 0);
    pw_context_load_module(context, "libpipewire-module-client-device", NULL, NULL);
    card.core = pw_context_connect(context, NULL, 0);
    if (!card.core) {
        perror("no PipeWire");
        return 1;
    }
    struct pw_proxy *proxy = pw_core_export(card.core, SPA_TYPE_INTERFACE_Device, &properties, &card.device, 0);
    pw_proxy_add_listener(proxy, &card.events, &proxy_events, NULL);
    pw_loop_add_io(pw_main_loop_get_loop(card.loop), STDIN_FILENO, SPA_IO_IN | SPA_IO_HUP, false, obey, NULL);
    pw_main_loop_run(card.loop);
    return 0;
}
