"""Active checks of one node: each is a child process with a deadline, and each verdict says what it rests on."""

VERSION = "0.1.0"
