"""Active checks: small real tests of the machine that end in a verdict."""
