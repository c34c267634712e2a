import Testing

@testable import Library

@Suite struct ScanReadingsTests {
    private typealias Reading = ScanReadings.Reading

    private func reading(_ id: Int64) -> Reading { Reading(request: id, id: id, path: Array("/music/\(id)".utf8)) }

    @Test func answer_isOfTheFileOfThatTaskOnce() {
        var readings = ScanReadings()
        readings.begin([reading(1), reading(2)], in: 7)
        readings.begin([reading(3)], in: 8)
        #expect(readings.count == 2 && readings.items == [1, 2, 3])
        #expect(readings.answered(3, in: 7) == nil)
        #expect(readings.answered(2, in: 7) == reading(2))
        #expect(readings.answered(2, in: 7) == nil)
        #expect(readings.answered(1, in: 9) == nil)
        #expect(readings.items == [1, 3])
    }

    /// The first of them is the file at which the worker failed.
    @Test func taskEnds_theRestIsInTheOrderOfItsFiles() {
        var readings = ScanReadings()
        readings.begin([reading(1), reading(2), reading(3)], in: 7)
        _ = readings.answered(1, in: 7)
        #expect(readings.end(7) == [reading(2), reading(3)])
        #expect(readings.end(7).isEmpty && readings.count == 0)
    }

    @Test func itemsExchangeTheirPlaces_answersKeepTheirRequests() {
        var readings = ScanReadings()
        readings.begin([reading(1), reading(2)], in: 7)
        readings.begin([reading(3)], in: 8)
        readings.exchange(1, 3)
        #expect(readings.answered(1, in: 7)?.id == 3)
        #expect(readings.answered(2, in: 7)?.id == 2)
        #expect(readings.answered(3, in: 8)?.id == 1)
    }

    /// The other item is not being read.
    @Test func itemExchangesItsPlaceWithOneThatIsNotRead_isReadAsThat() {
        var readings = ScanReadings()
        readings.begin([reading(1)], in: 7)
        readings.exchange(5, 1)
        #expect(readings.items == [5])
    }
}
