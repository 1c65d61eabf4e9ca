/**
 * Places of the processes in the picture of a stamp: hosts side by side, as many as the width takes, and in each the layers from clients to
 * lock services. Pure.
 */
import type { ProcessRow } from "../../model.ts";

export interface Box {
  readonly process: ProcessRow;
  readonly x: number;
  readonly y: number;
}

export interface Frame {
  /** Empty if the stamp has no hosts. */
  readonly host: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Line {
  readonly key: string;
  readonly from: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
  /** Work that goes along it in a second; null if not known, or one end is down. */
  readonly perSecond: number | null;
  /** True if one end is not ready. */
  readonly isCut: boolean;
  /** True if the process at the end of the line is waited for by the other one. */
  readonly isWait: boolean;
}

export interface Layout {
  readonly boxes: readonly Box[];
  readonly frames: readonly Frame[];
  readonly lines: readonly Line[];
  /** Middle of the mark that stands for all clients. */
  readonly clients: readonly [x: number, y: number];
  readonly height: number;
}

export const boxWidth = 164;
export const boxHeight = 50;
const gap = 12;
const layerGap = 44;
const pad = 12;
const labelHeight = 24;
const clientsHeight = 30;
/** With more lines between two layers each process of the lower one has a single line, from the middle of the upper one. */
const linesMax = 240;

const layers: readonly (readonly string[])[] = [
  ["front-end"],
  ["partition-manager", "partition-server"],
  ["stream-manager", "extent-node"],
  ["lock-service"],
];

const layerOf = ({ role }: ProcessRow): number => {
  const found = layers.findIndex((roles) => roles.includes(role));
  return found < 0 ? layers.length - 1 : found;
};

/** `width`: of the picture, in pixels. */
export function layoutOf(processes: readonly ProcessRow[], width: number): Layout {
  const hosts = [...new Set(processes.map(({ host }) => host))];
  const least = boxWidth + 2 * pad;
  const perRow = Math.max(1, Math.min(hosts.length, Math.floor((width + gap) / (least + gap))));
  const frameWidth = (width - (perRow - 1) * gap) / perRow;
  const columns = Math.max(1, Math.floor((frameWidth - 2 * pad + gap) / (boxWidth + gap)));
  const boxes: Box[] = [];
  const frames: Frame[] = [];
  let y = clientsHeight + layerGap / 2;
  for (let first = 0; first < hosts.length; first += perRow) {
    const row = hosts.slice(first, first + perRow);
    const top = y;
    y += pad + (hosts.length > 1 || hosts[0] !== "" ? labelHeight : 0);
    let isFirst = true;
    for (let layer = 0; layer < layers.length; layer++) {
      const byHost = row.map((host) => ofLayer(processes, layer, host));
      const rows = Math.max(...byHost.map((own) => Math.ceil(own.length / columns)));
      if (rows === 0) continue;
      if (!isFirst) y += layerGap;
      isFirst = false;
      for (const [at, own] of byHost.entries()) boxes.push(...placed(own, at * (frameWidth + gap), y, frameWidth, columns));
      y += rows * boxHeight + (rows - 1) * gap;
    }
    y += pad;
    for (const [at, host] of row.entries()) frames.push({ host, x: at * (frameWidth + gap), y: top, width: frameWidth, height: y - top });
    y += gap;
  }
  const clients = [width / 2, clientsHeight / 2] as const;
  return { boxes, frames, clients, lines: linesOf(boxes, [width / 2, clientsHeight]), height: y };
}

const ofLayer = (processes: readonly ProcessRow[], layer: number, host: string): ProcessRow[] => {
  const own = processes.filter((each) => each.host === host && layerOf(each) === layer);
  const roles = layers[layer] ?? [];
  return own.toSorted((one, other) => roles.indexOf(one.role) - roles.indexOf(other.role));
};

function placed(processes: readonly ProcessRow[], left: number, top: number, width: number, columns: number): Box[] {
  return processes.map((process, index) => {
    const row = Math.floor(index / columns);
    const inRow = Math.min(columns, processes.length - row * columns);
    const start = left + (width - inRow * boxWidth - (inRow - 1) * gap) / 2;
    return { process, x: start + (index % columns) * (boxWidth + gap), y: top + row * (boxHeight + gap) };
  });
}

/** Roles that send work, each with the role that gets it. */
const flows = [
  ["front-end", "partition-server"],
  ["partition-server", "extent-node"],
] as const;

const bottomOf = ({ x, y }: Box): readonly [number, number] => [x + boxWidth / 2, y + boxHeight];
const topOf = ({ x, y }: Box): readonly [number, number] => [x + boxWidth / 2, y];

function linesOf(boxes: readonly Box[], clients: readonly [number, number]): Line[] {
  const ofRole = (role: string): Box[] => boxes.filter(({ process }) => process.role === role);
  const lines: Line[] = ofRole("front-end").map((box) => ({
    key: `clients ${box.process.name}`,
    from: clients,
    to: topOf(box),
    perSecond: box.process.workPerSecond,
    isCut: !box.process.ready,
    isWait: false,
  }));
  for (const [upper, lower] of flows) {
    const [above, below] = [ofRole(upper), ofRole(lower)];
    const ready = above.filter(({ process }) => process.ready).length;
    if (above.length === 0) continue;
    const isMany = above.length * below.length > linesMax;
    for (const to of below) {
      for (const from of isMany ? [above[Math.floor(above.length / 2)] as Box] : above) {
        const isCut = !to.process.ready || (!isMany && !from.process.ready);
        const share = isMany ? 1 : Math.max(ready, 1);
        const work = to.process.workPerSecond;
        const perSecond = isCut || work === null ? null : work / share;
        lines.push({
          key: `${from.process.name} ${to.process.name}`,
          from: bottomOf(from),
          to: topOf(to),
          perSecond,
          isCut,
          isWait: false,
        });
      }
    }
  }
  return [...lines, ...waitsOf(boxes)];
}

/** Lines from processes that wait to those that they wait for: named in their words, or the ones of a role that is. */
function waitsOf(boxes: readonly Box[]): Line[] {
  return boxes.flatMap((box) => {
    const words = box.process.waitingFor.join(" ").replaceAll(" ", "-");
    if (words === "") return [];
    const others = boxes.filter((each) => each !== box);
    const named = others.filter(({ process }) => words.includes(process.name));
    const meant =
      named.length > 0 ? named : others.filter(({ process }) => process.role !== box.process.role && words.includes(process.role));
    return meant.slice(0, 8).map((to) => ({
      key: `wait ${box.process.name} ${to.process.name}`,
      from: bottomOf(box),
      to: topOf(to),
      perSecond: null,
      isCut: false,
      isWait: true,
    }));
  });
}
