import Testing
import Uploading

@Suite struct AnswerShelfTests {
    @Test func oldestAnswers_areGivenUpForLaterOnes() {
        var shelf = AnswerShelf(limit: 100)
        #expect(shelf.add(1, bytes: 40) == [])
        #expect(shelf.add(2, bytes: 40) == [])
        #expect(shelf.add(3, bytes: 20) == [])
        #expect(shelf.add(4, bytes: 1) == [1])
        #expect(shelf.add(5, bytes: 100) == [2, 3, 4])
        // One that does not fit by itself is not kept.
        #expect(shelf.add(6, bytes: 101) == [5, 6])
        #expect(shelf.add(7, bytes: 100) == [])
    }

    @Test func uploadsThatAreNotListed_needNoRoom() {
        var shelf = AnswerShelf(limit: 100)
        #expect(shelf.add(1, bytes: 100) == [])
        shelf.remove(1)
        shelf.remove(1)
        shelf.remove(9)
        #expect(shelf.add(2, bytes: 100) == [])
        #expect(shelf.add(3, bytes: 1) == [2])
    }
}
