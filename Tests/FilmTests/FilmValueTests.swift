import Testing

@testable import FilmBackend

/// Tests the values that films are judged by, without a film.
@Suite struct FilmValueTests {
    @Test func commentsThatNameAPlace_areFoundInAnyCase() {
        for comment in ["LOCATION=+48.1+011.5/", "location-eng=x", "Geo=1", "GEOTAG=2", "geo\u{301}=3"] {
            #expect(PlaceTags.isPlace(comment: comment), "\(comment)")
        }
        for comment in ["", "LOCATIO=1", "MY LOCATION=1", "ge=1", "title=geo"] {
            #expect(!PlaceTags.isPlace(comment: comment), "\(comment)")
        }
    }

    @Test func contrast_isTheMeanDistanceFromTheMean() {
        for (width, height) in [(48, 48), (640, 360), (1, 1), (7_680, 4_320)] {
            #expect(Brightness(width: width, height: height) { _, _ in 77 }.contrast == 0)
        }
        #expect(Brightness(width: 96, height: 96) { x, _ in x < 48 ? 0 : 200 }.contrast == 100)
        #expect(Brightness(width: 48, height: 48) { x, y in (x + y) % 2 == 0 ? 255 : 0 }.contrast == 127.5)
    }

    @Test func contrast_looksAtPixelsInsideThePictureAlone() {
        for (width, height) in [(3, 5), (47, 49), (1_000, 2)] {
            var isInside = true
            _ =
                Brightness(width: width, height: height) { x, y in
                    isInside = isInside && (0..<width).contains(x) && (0..<height).contains(y)
                    return 0
                }.contrast
            #expect(isInside)
        }
    }
}
