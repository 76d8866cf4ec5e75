// Shapes that the console's modules have in common. What the API answers is checked by the server: here it is a Row.

export type Row = any;

export interface JournalRecord {
  seq: number;
  at: string;
  name: string;
  text: string;
  cause: string;
  subjects: string[];
  event: Row;
}

export interface Found {
  items: Row[] | null;
  problem: string;
  cut?: boolean;
  last?: Row;
}

export interface Column {
  key: string;
  title: string;
  of(row: Row): string | number;
  show?(row: Row): unknown;
  number?: boolean;
  acts?: boolean;
  // The API's field, as `--columns` takes it, where that is not the key.
  field?: string;
}

export interface FleetMap {
  phases: string[];
  ids: string[];
  phase: number[];
  severity: number[];
  flags: number[];
  rack: string[];
  colour: string;
  words: string[];
  word: number[];
  by: string;
  groups: string[];
  group: number[];
}

// What a colour of the grid means. `word` is the API's, `title` what is read.
export interface Mark {
  word: string;
  title: string;
  tone: "good" | "fair" | "bad" | "none" | "unknown" | "c0" | "c1" | "c2" | "c3" | "c4" | "c5" | "c6" | "c7" | "q0" | "q1" | "q2" | "q3" | "q4";
}

export interface LaneSpan {
  lane: string;
  what: string;
  on: string;
  state: string;
  text: string;
  since: string;
  until: string | null;
}

export interface AttachedFile {
  digest: string;
  name: string;
  media_type: string;
  size: number;
  at: string;
  person: string;
}

export interface VerbArgument {
  name: string;
  kind: "text" | "moment" | "number" | "integer" | "boolean" | "choice";
  help: string;
  required: boolean;
  choices: string[];
}

// A verb that the caller may ask for, as GET /v1/verbs has it.
export interface VerbView {
  verb: string;
  help: string;
  on_node: boolean;
  on_rack: boolean;
  heading: string;
  command: string;
  route: string;
  args: VerbArgument[];
}

// The values of a verb's arguments, each with its JSON type.
export type Fields = Record<string, string | number | boolean>;

// An act that the dialog is open for.
export interface AskedAct {
  verb: VerbView;
  target: string;
  targets: string[];
  nodes: string[];
  named: string;
  given: Fields;
  reason: string;
}

export interface ActAnswer {
  granted: boolean;
  text: string;
  detail: Record<string, string>;
}

export interface DocumentProblem {
  file: string;
  line: number;
  what: string;
  instead: string;
}

// A value that several nodes share: in which way, and how many of them.
export interface Shared {
  way: string;
  value: string;
  nodes: number;
}

// A piece of the fleet's grid, in CSS pixels from its corner.
export interface Box {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

export interface Label {
  text: string;
  x: number;
  y: number;
}

// Where the cells of the fleet's grid lie, in CSS pixels: `x` and `y` by place, `order` as they are read.
export interface GridShape {
  order: number[];
  x: Int32Array;
  y: Int32Array;
  at(x: number, y: number): number;
  labels: Label[];
  size: number;
  pitch: number;
  height: number;
  columns: number;
}
