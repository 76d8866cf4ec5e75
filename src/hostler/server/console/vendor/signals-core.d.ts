export type { ReadonlySignal, Signal } from "./signals.js";
