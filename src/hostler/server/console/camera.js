// Serials read by a phone's camera, where its browser reads bar codes (BarcodeDetector); elsewhere there is no button.
import { html, useEffect, useRef, useState } from "./ui.js";

/** @typedef {import("./types.js").Row} Row */

const LOOK_MS = 250;

/** @param {{ found: (serial: string) => void }} props */
export function Camera({ found }) {
  const [open, turn] = useState(false);
  const [problem, say] = useState("");
  const picture = useRef(/** @type {Row} */ (null));
  useEffect(() => {
    if (!open) return undefined;
    const end = new AbortController();
    watch(picture.current, end.signal).then((serial) => {
      if (end.signal.aborted) return;
      turn(false);
      found(serial);
    }, (error) => {
      if (end.signal.aborted) return;
      turn(false);
      say(`The camera cannot be used: ${error.message}. Type the serial.`);
    });
    return () => end.abort();
  }, [open]);
  if (!("BarcodeDetector" in window)) return null;
  return html`<button type="button" aria-expanded=${open} onClick=${() => { say(""); turn(!open); }}>Camera</button>
    ${open && html`<video class="seen" ref=${picture} aria-label="What the camera sees" muted playsinline></video>`}
    ${problem && html`<p class="bad" role="status">${problem}</p>`}`;
}

// The first bar code that the camera shows. The camera is let go however it ends.
/** @param {HTMLVideoElement} picture @param {AbortSignal} ended @returns {Promise<string>} */
async function watch(picture, ended) {
  const stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment" } });
  try {
    picture.srcObject = stream;
    await picture.play();
    const detector = new /** @type {Row} */ (window).BarcodeDetector();
    while (!ended.aborted) {
      const [code] = await detector.detect(picture);
      const serial = (code?.rawValue ?? "").trim().slice(0, 200);
      if (serial) return serial;
      await new Promise((done) => setTimeout(done, LOOK_MS));
    }
    return "";
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}
