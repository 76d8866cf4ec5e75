"""`python -m bench.detection`."""

from bench.detection.run import main

if __name__ == "__main__":
    main()
