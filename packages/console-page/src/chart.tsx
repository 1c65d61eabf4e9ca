/** A chart of the last minutes: uPlot inside, whose size and colours follow the page. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import UPlot from "uplot";
import "uplot/dist/uPlot.min.css";

/** Figures of one moment. */
interface Moment {
  readonly atMs: number;
}

export interface Line<T extends Moment> {
  readonly label: string;
  readonly of: (point: T) => number | null;
  /** Name of a colour of the style sheet. */
  readonly colour: string;
}

interface ChartProps<T extends Moment> {
  readonly title: string;
  readonly points: readonly T[];
  /** Time from the left edge to the newest figure, in milliseconds. */
  readonly spanMs: number;
  readonly lines: readonly Line<T>[];
  readonly text: (value: number | null) => string;
  /** Distances of the lines of the grid, in the order of size; absent: those of decimal numbers. */
  readonly steps?: readonly number[];
}

const height = 150;
/** A chart shows this time at least, also where less is known. */
const leastSeconds = 60;

const colourOf = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

const dataOf = <T extends Moment>(points: readonly T[], lines: readonly Line<T>[]): UPlot.AlignedData => [
  points.map(({ atMs }) => atMs / 1_000),
  ...lines.map(({ of }) => points.map(of)),
];

function optionsOf<T extends Moment>({ lines, text, steps }: ChartProps<T>, width: number, spanMs: () => number): UPlot.Options {
  const axis = { stroke: colourOf("faint"), grid: { stroke: colourOf("line"), width: 1 }, ticks: { show: false }, font: "11px system-ui" };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false } },
    padding: [8, 8, 0, 0],
    scales: {
      x: { range: (_chart, first, last) => [last - Math.min(spanMs() / 1_000, Math.max(last - first, leastSeconds)), last] },
      y: { range: (_chart, _low, high) => [0, high > 0 ? high * 1.15 : 1] },
    },
    axes: [
      {
        ...axis,
        size: 28,
        space: 90,
        values: [
          [60, "{HH}:{mm}", null, null, null, null, null, null, 1],
          [1, "{HH}:{mm}:{ss}", null, null, null, null, null, null, 1],
        ],
      },
      {
        ...axis,
        size: 72,
        ...(steps === undefined ? {} : { incrs: [...steps] }),
        values: (_chart, values) => values.map((value) => text(value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, colour }) => ({
        label,
        stroke: colourOf(colour),
        fill: `${colourOf(colour)}18`,
        width: 1.75,
        points: { show: false },
      })),
    ],
  };
}

export function Chart<T extends Moment>(props: ChartProps<T>): JSX.Element {
  const { title, points, spanMs, lines, text } = props;
  const holder = useRef<HTMLDivElement>(null);
  const chart = useRef<UPlot | undefined>(undefined);
  const data = useRef<UPlot.AlignedData>([[]]);
  const span = useRef(spanMs);
  span.current = spanMs;
  data.current = dataOf(points, lines);
  useEffect(() => {
    const parent = holder.current;
    if (parent === null) return;
    const draw = (): void => {
      chart.current?.destroy();
      chart.current = new UPlot(
        optionsOf(props, parent.clientWidth, () => span.current),
        data.current,
        parent,
      );
    };
    draw();
    const sized = new ResizeObserver(() => chart.current?.setSize({ width: parent.clientWidth, height }));
    sized.observe(parent);
    const themed = new MutationObserver(draw);
    themed.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    return () => {
      sized.disconnect();
      themed.disconnect();
      chart.current?.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(data.current));
  const last = points.at(-1);
  const now = lines.map(({ label, of }) => `${label} ${text(last === undefined ? null : of(last))}`).join(", ");
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map(({ label, of, colour }) => (
          <span key={label}>
            <i class={`key ${colour}`} /> {label} <b>{text(last === undefined ? null : of(last))}</b>
          </span>
        ))}
      </figcaption>
      <div ref={holder} class="plot" role="img" aria-label={`${title}: ${now}`} />
    </figure>
  );
}
