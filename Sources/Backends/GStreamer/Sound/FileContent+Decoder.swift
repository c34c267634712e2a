import FileFormats

// Which of GStreamer's elements read a file.

extension FileContent {
    /// The elements for the format of the first bytes; nil if GStreamer must find them.
    ///
    /// Fixed elements start sooner than those that decodebin finds, above all for MP3, and the decoder with the least
    /// memory is used.
    var decoder: String? {
        if let plain { return plain.decoder }
        func has(_ text: String, at place: Int) -> Bool { head.dropFirst(place).starts(with: text.utf8) }
        if has("RIFF", at: 0), has("WAVEfmt ", at: 8), head.count > 21 {
            // PCM, floating point, extensible; other codecs in a WAV need a decoder of their own.
            return [[1, 0], [3, 0], [0xfe, 0xff]].contains(Array(head[20...21])) ? "wavparse" : nil
        }
        if has("FORM", at: 0), has("AIFF", at: 8) || has("AIFC", at: 8) { return "aiffparse" }
        if has("fLaC", at: 0) { return "flacparse ! flacdec" }
        if has("OggS", at: 0) {
            if has("\u{1}vorbis", at: 28) { return "oggdemux ! vorbisdec" }
            if has("OpusHead", at: 28) { return "oggdemux ! opusdec" }
            return nil
        }
        switch codec {
        case .aac: return "qtdemux ! aacparse ! " + (Runtime.find(["faad", "avdec_aac"]) ?? "avdec_aac")
        case .alac: return "qtdemux ! avdec_alac"
        case nil: break
        }
        return frames == nil ? nil : (skip > 0 ? "" : "id3demux ! ") + "mpegaudioparse ! mpg123audiodec"
    }
}

extension PlainFile {
    /// The elements that decode it.
    fileprivate var decoder: String {
        switch format.coding {
        case .samples(_, _, isLittleEndian: false): "aiffparse"
        case .samples: "wavparse"
        case .aLaw: "wavparse ! alawdec"
        case .muLaw: "wavparse ! mulawdec"
        case .packets: "avdemux_aiff ! avdec_adpcm_ima_qt"
        }
    }
}
