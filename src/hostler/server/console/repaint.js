// Paints a canvas now, and again whenever its room or the colours change. Answers what ends that.
/** @param {HTMLElement} canvas @param {() => void} paint */
export function repaint(canvas, paint) {
  const room = canvas.parentElement ?? canvas;
  const size = () => `${room.clientWidth} ${room.clientHeight}`;
  paint();
  let painted = size();
  // An observer calls once for the size at which it begins: that one is painted already.
  const watch = new ResizeObserver(() => {
    if (size() === painted) return;
    painted = size();
    paint();
  });
  watch.observe(room);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", paint);
  addEventListener("theme", paint);
  return () => {
    watch.disconnect();
    scheme.removeEventListener("change", paint);
    removeEventListener("theme", paint);
  };
}
