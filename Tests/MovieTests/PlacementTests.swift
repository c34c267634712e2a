import PluginAPI
import Testing

@testable import VideoBackend

/// Where pictures of all shapes belong in windows of all shapes.
@Suite struct PlacementTests {
    private static let sides = [1, 2, 3, 90, 320, 641, 1_080]
    private static let sizes = sides.flatMap { width in sides.map { PictureSize(width: width, height: $0) } }

    @Test(arguments: MovieScaling.allCases) func everyPicture_isInTheMiddleOfEveryWindow(scaling: MovieScaling) {
        for picture in Self.sizes {
            for window in Self.sizes {
                let place = Placement(of: picture, in: window, scaling)
                #expect(abs(2 * place.x + place.width - window.width) <= 1, "\(picture) in \(window)")
                #expect(abs(2 * place.y + place.height - window.height) <= 1, "\(picture) in \(window)")
            }
        }
    }

    @Test func fit_isTheLargestWholePicture_andFillTheSmallestThatCovers() {
        for picture in Self.sizes {
            for window in Self.sizes {
                // The second model: the factors of both sides as numbers.
                let factors = [
                    Double(window.width) / Double(picture.width), Double(window.height) / Double(picture.height),
                ]
                for (scaling, factor) in [(MovieScaling.aspectFit, factors.min()), (.aspectFill, factors.max())] {
                    let place = Placement(of: picture, in: window, scaling)
                    let width = min(max(Double(picture.width) * (factor ?? 1), 1), 16_384)
                    let height = min(max(Double(picture.height) * (factor ?? 1), 1), 16_384)
                    #expect(abs(Double(place.width) - width) <= 0.51, "\(scaling) \(picture) in \(window)")
                    #expect(abs(Double(place.height) - height) <= 0.51, "\(scaling) \(picture) in \(window)")
                }
            }
        }
    }

    @Test func none_hasTheSizeOfThePicture_andFillThatOfTheWindow() {
        for picture in Self.sizes {
            for window in Self.sizes {
                let natural = Placement(of: picture, in: window, .none)
                #expect((natural.width, natural.height) == (picture.width, picture.height))
                let stretched = Placement(of: picture, in: window, .fill)
                #expect((stretched.width, stretched.height) == (window.width, window.height))
            }
        }
    }

    @Test func newWindow_hasTheSizeOfThePicture_unlessTheScreenIsSmaller() {
        let screen = PictureSize(width: 640, height: 480)
        for picture in Self.sizes {
            let window = Placement.window(for: picture, on: screen)
            #expect(window.width <= screen.width && window.height <= screen.height)
            if picture.width <= screen.width, picture.height <= screen.height { #expect(window == picture) }
        }
    }

    @Test func stepsBetweenChapters_goToTheirBeginnings() {
        let chapters = [1.0, 10, 20].map { MediaChapter(start: $0, title: "") }
        let table: [(Double, Int, Double?)] = [
            // Before the first one.
            (0, 1, 1), (0.5, -1, 0), (1, 1, 10), (2, -1, 0), (5, -1, 1), (9.99, 1, 20), (15, 2, nil), (15, 1, 20),
            (11, -1, 1), (13.5, -1, 10), (13.5, -2, 1), (25, 1, nil), (25, -1, 20), (25, -9, 0), (25, .max, nil),
            (25, .min, 0), (12, 0, nil),
        ]
        for (position, steps, expected) in table {
            #expect(chapters.time(from: position, by: steps) == expected, "\(position) by \(steps)")
        }
        #expect([MediaChapter]().time(from: 3, by: -1) == nil && [MediaChapter]().index(at: 3) == nil)
        #expect([0, 1, 9.97, 30].map { chapters.index(at: $0) } == [nil, 0, 1, 2])
    }

    @Test func keys_meanWhatTheManualSays() {
        #expect(WindowKeys.command(for: 0x20) == .playOrPause)
        #expect(WindowKeys.command(for: 0xff1b) == .leaveFullscreen)
        #expect(WindowKeys.command(for: UInt32(UInt8(ascii: "q"))) == .exit)
        #expect(WindowKeys.command(for: 0xff51) == .seek(-5))
        #expect(WindowKeys.command(for: UInt32(UInt8(ascii: "z"))) == nil)
    }
}
