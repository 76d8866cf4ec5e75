"""A program in the place of `hdparm`, for drives of `drive_bench`: words of hdparm 9.65, and lies.

Of a drive without a file of facts beside the program it says what the real one says of a SAS drive.
"""

import sys

PROGRAM = (
    rf"#!{sys.executable} -IS"
    r"""
import json, os, pathlib, sys
folder = pathlib.Path(__file__).parent
verb, device = sys.argv[-2], sys.argv[-1]
place = folder / (device.rsplit("/", 1)[1] + ".json")
if not place.exists():
    print("SG_IO: bad/missing sense data, sb[]:  70 00 05 00 00 00 00 0a 00 00", file=sys.stderr)
    sys.exit(5)
drive = json.loads(place.read_text())
with (folder / "said").open("a") as said:
    said.write(" ".join(sys.argv[1:]) + "\n")
lie = drive["lie"]
print("\n" + device + ":")
STATES = ["SD0 Sanitize Idle", "SD1 Sanitize Frozen", "SD2 Sanitize operation In Process",
          "SD3 Sanitize Operation Failed"]
def say(held, word):
    print(("\t\t" if held else "\tnot\t") + word)
if lie == "refuses" and sys.argv[1].startswith("--yes"):
    print("SANITIZE device error reason: Sanitize Command Unsuccessful", file=sys.stderr)
    sys.exit(5)
if verb == "-I":
    print("\nATA device, with non-removable media\n\tModel Number:       TWIN SSD 960GB        ")
    print("\tSerial Number:      " + ("SOMEBODY-ELSE" if lie == "other" else drive["sn"]) + "   ")
    print("\tFirmware Revision:  1.0     ")
    print("Commands/features:\n\tEnabled\tSupported:\n\t   *\tSMART feature set\n\t    \tSecurity Mode feature set")
    for word in drive["offers"]:
        print("\t   *\t" + word)
    for word in drive["disabled"]:
        print("\t    \t" + word)
    print("Security: \n\tMaster password revision code = 65534\n\t\tsupported")
    for word in ("enabled", "locked", "frozen"):
        say(drive[word], word)
    print("\tnot\texpired: security count\n\t\tsupported: enhanced erase")
    print("\t2min for SECURITY ERASE UNIT. 2min for ENHANCED SECURITY ERASE UNIT.")
    print("Logical Unit WWN Device Identifier: 5002538e000000000\nChecksum: correct")
elif verb == "--sanitize-status":
    if drive["state"] == 2 and lie != "never_ends":
        drive["polls"] += 1
        if drive["polls"] > 1:
            drive["state"], drive["ended"] = (3, False) if lie == "fails" else (0, True)
        place.write_text(json.dumps(drive))
    print("Issuing SANITIZE_STATUS command\nSanitize status:\n    State:    " + STATES[drive["state"]])
    if drive["state"] == 2:
        print("    Progress: 0x6b85 (42%)")
    if drive["ended"]:
        print("    Last Sanitize Operation Completed Without Error")
elif sys.argv[1] == "--yes-i-know-what-i-am-doing" and drive["state"] != 1:
    drive["state"], drive["polls"] = 2, 0
    place.write_text(json.dumps(drive))
    if lie not in ("fails", "keeps"):
        fd = os.open(drive["path"], os.O_RDWR)
        os.pwrite(fd, bytes(os.lseek(fd, 0, os.SEEK_END)), 0)
        os.fsync(fd)
    print("Issuing SANITIZE command\nOperation started in background")
    print("You may use `--sanitize-status` to check progress")
else:
    sys.exit(1)
"""
)
