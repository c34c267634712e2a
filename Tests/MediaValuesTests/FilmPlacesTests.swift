import MediaValues
import Testing

@Suite struct FilmPlacesTests {
    private let film = "file:///film.mkv"

    /// Where a film of an hour that was left there begins the next time.
    @Test(
        arguments: [
            (1_800, 1_800), (30, 30), (29.9, nil), (3_540, 3_540), (3_541, nil), (-1, nil), (.nan, nil),
            (.infinity, nil),
        ] as [(Double, Double?)])
    func placeIsKept_exceptNearTheEnds(_ seconds: Double, _ place: Double?) {
        var places = FilmPlaces()
        places.leave(film, at: 600, of: 3_600)
        places.leave(film, at: seconds, of: 3_600)
        #expect(places.place(of: film) == place)
    }

    @Test(arguments: [nil, 599.9, 0, .nan] as [Double?]) func shortFilmOrLiveStream_hasNoPlace(_ length: Double?) {
        var places = FilmPlaces()
        places.leave(film, at: 60, of: length)
        #expect(places.place(of: film) == nil && places.bytes.isEmpty)
    }

    @Test func filmSeenToItsEnd_beginsAtItsBeginning() {
        var places = FilmPlaces()
        places.leave(film, at: 700, of: 3_600)
        places.finish(film)
        #expect(places == FilmPlaces())
    }

    @Test func file_givesTheSamePlaces() {
        var places = FilmPlaces()
        places.leave(film, at: 700.25, of: 3_600)
        places.leave("https://example.org/a b", at: 99, of: 700)
        places.leave("bad\nline", at: 99, of: 700)
        #expect(FilmPlaces(bytes: places.bytes) == places)
        #expect(places.place(of: "https://example.org/a b") == 99)
        // What is damaged is left out, and the rest is read.
        let damaged = Array("x y\n\n1e99 file:///a\n-5 file:///b\n700.25\n".utf8) + places.bytes + [0xff, 0xfe]
        #expect(FilmPlaces(bytes: damaged) == places)
    }

    @Test func manyFilms_forgetTheOldest() {
        var places = FilmPlaces()
        for number in 0..<600 { places.leave("file:///\(number)", at: 60, of: 700) }
        #expect(places.place(of: "file:///99") == nil && places.place(of: "file:///100") == 60)
        #expect(FilmPlaces(bytes: places.bytes) == places)
    }
}
