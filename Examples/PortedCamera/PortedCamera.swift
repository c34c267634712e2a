// A camera app of iOS, ported: what it used of AVFoundation stays, and only the import is another one. It takes a photo, records a
// film of a second, and counts the pictures meanwhile.
//
//   example-ported-camera FOLDER
import AVNames
import Foundation

/// The model of the app: as on iOS, all of it is used on a queue of its own.
final class Camera: NSObject, @unchecked Sendable {
    private let session = AVCaptureSession()
    private let sessionQueue = DispatchQueue(label: "session")
    private let photoOutput = AVCapturePhotoOutput()
    private let movieOutput = AVCaptureMovieFileOutput()
    private let dataOutput = AVCaptureVideoDataOutput()
    private let folder: URL
    private var pictures = 0

    init(_ folder: URL) { self.folder = folder }

    func start() {
        sessionQueue.async { [self] in
            configure()
            session.startRunning()
            guard session.isRunning else { exit(1) }
            photoOutput.capturePhoto(with: AVCapturePhotoSettings(), delegate: self)
        }
    }

    private func configure() {
        session.beginConfiguration()
        defer { session.commitConfiguration() }
        session.sessionPreset = .vga640x480
        guard let camera = AVCaptureDevice.default(.builtInWideAngleCamera, for: .video, position: .front),
            let input = try? AVCaptureDeviceInput(device: camera), session.canAddInput(input)
        else {
            print("there is no camera")
            exit(1)
        }
        session.addInput(input)
        if let microphone = AVCaptureDevice.default(for: .audio),
            let input = try? AVCaptureDeviceInput(device: microphone), session.canAddInput(input)
        {
            session.addInput(input)
        }
        dataOutput.setSampleBufferDelegate(self, queue: sessionQueue)
        for output in [photoOutput, movieOutput, dataOutput] where session.canAddOutput(output) {
            session.addOutput(output)
        }
        do {
            try camera.lockForConfiguration()
            camera.videoZoomFactor = 1
            camera.unlockForConfiguration()
        } catch {
            print("the camera cannot be set: \(error)")
        }
    }
}

extension Camera: AVCapturePhotoCaptureDelegate {
    func photoOutput(
        _ output: AVCapturePhotoOutput, didFinishProcessingPhoto photo: AVCapturePhoto, error: (any Error)?
    ) {
        guard error == nil, let data = photo.fileDataRepresentation() else {
            print("no photo: \(error.map { "\($0)" } ?? "")")
            exit(1)
        }
        try? data.write(to: folder.appendingPathComponent("photo.jpg"))
        print("photo of \(data.count > 1_000 ? "some" : "few") kB")
        movieOutput.maxRecordedDuration = CMTime(seconds: 1)
        movieOutput.startRecording(to: folder.appendingPathComponent("film.mp4"), recordingDelegate: self)
    }
}

extension Camera: AVCaptureFileOutputRecordingDelegate {
    func fileOutput(
        _ output: AVCaptureFileOutput, didFinishRecordingTo outputFileURL: URL, from connections: [AVCaptureConnection],
        error: (any Error)?
    ) {
        sessionQueue.async { [self] in
            print("film \(outputFileURL.lastPathComponent), \(error == nil ? "complete" : "cut")")
            print("pictures: \(pictures > 10 ? "many" : "few")")
            session.stopRunning()
            exit(error == nil ? 0 : 1)
        }
    }
}

extension Camera: AVCaptureVideoDataOutputSampleBufferDelegate {
    func captureOutput(
        _ output: AVCaptureOutput, didOutput sampleBuffer: CMSampleBuffer, from connection: AVCaptureConnection
    ) { pictures += 1 }
}

@main
struct PortedCamera {
    static func main() {
        guard CommandLine.arguments.count == 2 else {
            print("usage: example-ported-camera FOLDER")
            exit(64)
        }
        let camera = Camera(URL(fileURLWithPath: CommandLine.arguments[1]))
        camera.start()
        withExtendedLifetime(camera) { RunLoop.main.run() }
    }
}
