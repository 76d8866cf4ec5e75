"""A fleet that is not there, behind real sockets: emulated BMCs over HTTP, real agents on emulated machines."""
