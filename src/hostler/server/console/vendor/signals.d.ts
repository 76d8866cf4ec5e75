export interface ReadonlySignal<T> {
  readonly value: T;
  peek(): T;
}
export interface Signal<T> {
  value: T;
  peek(): T;
}
export function signal<T>(value: T): Signal<T>;
export function computed<T>(make: () => T): ReadonlySignal<T>;
export function effect(act: () => void | (() => void)): () => void;
export function batch<T>(act: () => T): T;
export function untracked<T>(act: () => T): T;
