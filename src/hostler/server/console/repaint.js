// Paints a canvas now, and again whenever its room or the colours change. Answers what ends that.
/** @param {HTMLElement} canvas @param {() => void} paint */
export function repaint(canvas, paint) {
  paint();
  const watch = new ResizeObserver(paint);
  watch.observe(canvas.parentElement ?? canvas);
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", paint);
  addEventListener("theme", paint);
  return () => {
    watch.disconnect();
    scheme.removeEventListener("change", paint);
    removeEventListener("theme", paint);
  };
}
