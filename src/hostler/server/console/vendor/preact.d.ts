export interface VNode {
  readonly type: unknown;
}
export function h(type: unknown, props: unknown, ...children: unknown[]): VNode;
export function render(tree: VNode, into: Element): void;
