import Capture

CaptureProgram.main()
