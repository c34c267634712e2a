// The least that a picture of a film takes with GStreamer: a paused pipeline, a seek to a key frame, a PNG.
//   picture FILE OUTPUT SECONDS WIDTH HEIGHT
#include <gst/app/gstappsink.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>

int main(int count, char **words) {
    if (count != 6) return 64;
    gst_init(NULL, NULL);
    char *uri = g_filename_to_uri(words[1], NULL, NULL);
    char *text = g_strdup_printf(
        "uridecodebin uri=%s caps=video/x-raw(ANY) expose-all-streams=false ! videoconvertscale"
        " ! video/x-raw,width=%s,height=%s ! videoconvert ! pngenc ! appsink name=sink sync=false",
        uri, words[4], words[5]);
    GstElement *pipeline = gst_parse_launch(text, NULL);
    gst_element_set_state(pipeline, GST_STATE_PAUSED);
    if (gst_element_get_state(pipeline, NULL, NULL, 10 * GST_SECOND) != GST_STATE_CHANGE_SUCCESS) return 1;
    gst_element_seek_simple(
        pipeline, GST_FORMAT_TIME, GST_SEEK_FLAG_FLUSH | GST_SEEK_FLAG_KEY_UNIT | GST_SEEK_FLAG_SNAP_NEAREST,
        (gint64)(atof(words[3]) * GST_SECOND));
    gst_element_get_state(pipeline, NULL, NULL, 10 * GST_SECOND);
    GstSample *sample = gst_app_sink_pull_preroll((GstAppSink *)gst_bin_get_by_name((GstBin *)pipeline, "sink"));
    GstMapInfo map;
    if (!sample || !gst_buffer_map(gst_sample_get_buffer(sample), &map, GST_MAP_READ)) return 1;
    FILE *file = fopen(words[2], "wb");
    if (!file || fwrite(map.data, 1, map.size, file) != map.size || fclose(file) != 0) return 1;
    return 0;
}
