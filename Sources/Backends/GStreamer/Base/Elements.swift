package import CGStreamer

/// Elements and the bins that hold them. The caller of each function owns neither.
package enum Elements {
    package typealias Element = UnsafeMutablePointer<GstElement>

    /// The element of that name in a bin, valid while the bin holds it.
    package static func child(_ name: String, of bin: Element) -> Element? {
        guard let found = bin.withMemoryRebound(to: GstBin.self, capacity: 1, { gst_bin_get_by_name($0, name) })
        else { return nil }
        gst_object_unref(found)
        return found
    }

    package static func add(_ child: Element, to bin: Element) {
        bin.withMemoryRebound(to: GstBin.self, capacity: 1) { _ = gst_bin_add($0, child) }
    }

    /// Removes the element, and frees it if this was the last reference.
    package static func remove(_ child: Element, from bin: Element) {
        bin.withMemoryRebound(to: GstBin.self, capacity: 1) { _ = gst_bin_remove($0, child) }
    }

    /// Whether a message is from an element, or from one in it, however deep.
    package static func owns(_ element: Element, _ message: UnsafeMutablePointer<GstMessage>) -> Bool {
        guard let source = message.pointee.src else { return false }
        return element.withMemoryRebound(to: GstObject.self, capacity: 1) {
            gst_object_has_as_ancestor(source, $0) != 0
        }
    }

    /// The length of what it plays, in nanoseconds; nil if unknown.
    package static func duration(of element: Element) -> Int? {
        var value: gint64 = 0
        return gst_element_query_duration(element, GST_FORMAT_TIME, &value) != 0 && value > 0 ? Int(value) : nil
    }

    /// A new bin from a description for gst-launch, with a floating reference; or the reason why it cannot be built, mostly
    /// because an element is not installed.
    package static func bin(_ description: String) -> Result<Element, Missing> {
        var error: UnsafeMutablePointer<GError>?
        // Without the flag, an element that is missing would be left out.
        let made = gst_parse_bin_from_description_full(
            description, 0, nil, GST_PARSE_FLAG_FATAL_ERRORS, &error)
        defer { if let error { g_error_free(error) } }
        guard let made else {
            return .failure(Missing(message: error.map { String(cString: $0.pointee.message) } ?? ""))
        }
        return .success(UnsafeMutableRawPointer(made).assumingMemoryBound(to: GstElement.self))
    }

    /// Gives a bin an entry that leads to the pad `sink` of one of its elements.
    /// - Returns: the entry, which the caller owns; nil if there is no such element.
    package static func entry(to name: String, of bin: Element) -> UnsafeMutablePointer<GstPad>? {
        guard let element = child(name, of: bin), let inner = gst_element_get_static_pad(element, "sink") else {
            return nil
        }
        defer { gst_object_unref(inner) }
        guard let pad = gst_ghost_pad_new("sink", inner) else { return nil }
        gst_object_ref(pad)
        gst_element_add_pad(bin, pad)
        return pad
    }

    /// An element is not installed.
    package struct Missing: Error {
        package let message: String

        package init(message: String) { self.message = message }
    }
}
