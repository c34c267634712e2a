import CGStreamer
import CStreaming
import EventLoop
import Foundation
import TestSupport
import Testing

@testable import GStreamerBackend

/// Tests what runs on GStreamer's threads: pads of small pipelines without sound.
@Suite struct StreamingTests {
    /// A pipeline, the messages of its bus, and pads of its elements.
    private final class Flow {
        let loop = EventLoop()
        let pipeline: Pipeline
        private(set) var posted: [String] = []
        private(set) var hasEnded = false
        private(set) var hasFailed = false
        private(set) var holds: [gulong] = []

        init(_ description: String) throws {
            pipeline = try Pipeline(description, on: loop)
            pipeline.onMessage = { [unowned self] message in
                switch message.pointee.type {
                case GST_MESSAGE_EOS: hasEnded = true
                case GST_MESSAGE_ERROR: hasFailed = true
                case GST_MESSAGE_APPLICATION:
                    if let name = gst_message_get_structure(message).flatMap({ gst_structure_get_name($0) }) {
                        posted.append(String(cString: name))
                    }
                    if shim_held_pad(message) != 0 { holds.append(shim_held_pad(message)) }
                default: break
                }
            }
        }

        /// Valid as long as the pipeline.
        func pad(_ name: String, of element: String) throws -> UnsafeMutablePointer<GstPad> {
            let child = try #require(pipeline.child(element))
            let pad = try #require(gst_element_get_static_pad(child, name))
            gst_object_unref(pad)
            return pad
        }

        func run(until condition: () -> Bool) -> Bool {
            pipeline.setState(GST_STATE_PLAYING)
            return loop.iterate(timeout: 10, until: condition)
        }
    }

    /// Memory that GStreamer's threads write to.
    private final class Tally {
        let raw = UnsafeMutablePointer<shim_tally>.allocate(capacity: 1)
        init(limit: Int, in flow: Flow) {
            raw.initialize(to: shim_tally(bytes: 0, limit: limit, pipeline: flow.pipeline.element))
        }
        deinit { raw.deallocate() }
        var bytes: Int { shim_tally_bytes(raw) }
    }

    /// 10,000 frames of two bytes.
    private static let sound =
        "audiotestsrc num-buffers=10 samplesperbuffer=1000 ! audio/x-raw,format=S16LE,rate=44100,channels=1"
        + " ! identity name=first ! identity name=last ! fakesink sync=false"

    @Test func bytesAfterTheLimit_areDroppedAndReportedOnce() throws {
        let flow = try Flow(Self.sound)
        let (limited, all) = (Tally(limit: 12_345, in: flow), Tally(limit: .max, in: flow))
        shim_count_bytes(try flow.pad("src", of: "first"), limited.raw)
        shim_count_bytes(try flow.pad("src", of: "last"), all.raw)
        #expect(flow.run { flow.hasEnded })
        flow.pipeline.close()
        #expect(limited.bytes == 12_345 && all.bytes == 12_345)
        #expect(flow.posted == ["limit-reached"])
    }

    @Test(arguments: [(0, 10_000), (1_105, 5_000), (999, 1), (0, 0), (9_999, 10_000), (20_000, 10_000)])
    func padding_isRemovedToTheFrame(skip: Int, length: Int) throws {
        let flow = try Flow(Self.sound)
        let tally = Tally(limit: .max, in: flow)
        shim_trim_pad(try flow.pad("sink", of: "first"), guint64(skip), guint64(length), 44_100)
        shim_count_bytes(try flow.pad("src", of: "last"), tally.raw)
        #expect(flow.run { flow.hasEnded })
        flow.pipeline.close()
        #expect(tally.bytes == 2 * max(0, min(length, 10_000 - skip)))
    }

    @Test func paddingOfAnotherRate_isLeft() throws {
        let flow = try Flow(Self.sound)
        let tally = Tally(limit: .max, in: flow)
        shim_trim_pad(try flow.pad("sink", of: "first"), 1_000, 1_000, 48_000)
        shim_count_bytes(try flow.pad("src", of: "last"), tally.raw)
        #expect(flow.run { flow.hasEnded })
        flow.pipeline.close()
        #expect(tally.bytes == 20_000)
    }

    @Test func heldPad_reportsItselfAndLetsNothingThrough() throws {
        let flow = try Flow(Self.sound)
        let tally = Tally(limit: .max, in: flow)
        let pad = try flow.pad("src", of: "first")
        let hold = shim_hold_pad(pad, flow.pipeline.element)
        shim_count_bytes(try flow.pad("src", of: "last"), tally.raw)
        #expect(flow.run { !flow.holds.isEmpty })
        #expect(flow.holds == [hold] && tally.bytes == 0 && !flow.hasEnded)
        gst_pad_remove_probe(pad, hold)
        #expect(flow.run { flow.hasEnded })
        flow.pipeline.close()
        #expect(tally.bytes == 20_000)
    }

    @Test(arguments: [false, true]) func endOfASource_isReportedOnlyWhileAnotherOneFollows(isArmed: Bool) throws {
        let flow = try Flow(Self.sound)
        let flag = UnsafeMutablePointer<shim_succession>.allocate(capacity: 1)
        defer { flag.deallocate() }
        flag.initialize(to: shim_succession(armed: 0, pipeline: flow.pipeline.element))
        shim_watch_end(try flow.pad("sink", of: "last"), flag)
        shim_succession_arm(flag, isArmed ? 1 : 0)
        #expect(flow.run { flow.hasEnded || !flow.posted.isEmpty })
        flow.pipeline.close()
        #expect(flow.posted == (isArmed ? ["source-ended"] : []) && flow.hasEnded == !isArmed)
    }

    @Test func dataOfAServerWithoutAnySound_failsAtTheLimit() throws {
        let text =
            "fakesrc num-buffers=20 sizetype=fixed sizemax=1000 ! identity name=source"
            + " ! identity drop-probability=DROP name=sound ! fakesink sync=false"
        for (drop, fails) in [("1", true), ("0", false)] {
            let flow = try Flow(text.replacing("DROP", with: drop))
            shim_limit_supply(try flow.pad("src", of: "source"), try flow.pad("src", of: "sound"), 5_000)
            #expect(flow.run { flow.hasEnded || flow.hasFailed })
            flow.pipeline.close()
            #expect(flow.hasFailed == fails)
        }
    }

    @Test func readerOfAFile_seesAnotherBeginningAndNoLargePieces() throws {
        let folder = try PrivateFolder()
        let path = try folder.file("bytes", String(decoding: (0..<100).map { UInt8($0) }, as: UTF8.self))
        let flow = try Flow("filesrc name=source location=\(path) ! fakesink")
        let pad = try flow.pad("src", of: "source")
        let header: [UInt8] = [200, 201, 202]
        shim_limit_view(pad, 10, header, UInt(header.count), 50)
        flow.pipeline.setState(GST_STATE_READY)
        #expect(gst_pad_activate_mode(pad, GST_PAD_MODE_PULL, 1) != 0)
        func read(_ place: UInt64, _ count: UInt32) -> [UInt8]? {
            var buffer: UnsafeMutablePointer<GstBuffer>?
            guard gst_pad_get_range(pad, guint64(place), count, &buffer) == GST_FLOW_OK, let buffer else { return nil }
            defer { gst_buffer_unref(buffer) }
            var bytes = [UInt8](repeating: 0, count: Int(gst_buffer_get_size(buffer)))
            gst_buffer_extract(buffer, 0, &bytes, UInt(bytes.count))
            return bytes
        }
        #expect(read(0, 5) == [200, 201, 202, 10, 11])
        #expect(read(2, 3) == [202, 10, 11])
        #expect(read(3, 50) == (10..<60).map { UInt8($0) })
        #expect(read(90, 10) == [97, 98, 99])
        #expect(read(0, 51) == nil)
        gst_pad_activate_mode(pad, GST_PAD_MODE_PULL, 0)
        flow.pipeline.close()
    }
}
