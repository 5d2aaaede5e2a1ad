import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { formatCount, formatTime } from '../../text/format.ts';
import styles from './chart.module.css';

export interface Series {
  label: string;
  /** CSS variable of `tokens.css`, including the leading dashes. */
  color: string;
  values: (number | null)[];
}

const height = 180;
/** Possible distances between ticks of the time axis, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400];

/** Line chart over time. Screen readers read `summary`, because a canvas has no text. */
export function Chart({
  times,
  series,
  summary,
}: {
  times: number[];
  series: Series[];
  summary: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const names = series.map(({ label }) => label).join('\n');
  const data = useRef<uPlot.AlignedData>([[]]);
  data.current = [times.map((ms) => ms / 1000), ...series.map(({ values }) => values)];
  const colors = useRef(series);
  colors.current = series;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another number or name of series needs another plot.
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const created = new uPlot(optionsOf(element, colors.current), data.current, element);
    plot.current = created;
    const observer = new ResizeObserver(() =>
      created.setSize({ width: element.clientWidth, height }),
    );
    observer.observe(element);
    return () => {
      observer.disconnect();
      created.destroy();
      plot.current = undefined;
    };
  }, [names]);
  useEffect(() => plot.current?.setData(data.current));
  return <div ref={box} className={styles.chart} role="img" aria-label={summary} />;
}

function optionsOf(element: HTMLElement, series: Series[]): uPlot.Options {
  const token = (name: string) => getComputedStyle(element).getPropertyValue(name).trim();
  const color = (name: string) => resolved(element, token(name));
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  };
  return {
    width: element.clientWidth,
    height,
    legend: { show: series.length > 1, live: false },
    cursor: { y: false },
    axes: [
      {
        ...axis,
        grid: { show: false },
        // Uses whole seconds, because several ticks within a second would have the same text.
        incrs: steps,
        space: 90,
        values: (_, ticks) =>
          ticks.map((second) => formatTime(new Date(second * 1000).toISOString())),
      },
      { ...axis, size: 64, values: (_, ticks) => ticks.map((tick) => formatCount(tick)) },
    ],
    scales: { y: { range: (_, _min, max) => [0, Math.max(10, max * 1.1)] } },
    series: [
      {},
      ...series.map(({ label, color: name }) => ({
        label,
        stroke: color(name),
        fill: translucent(color(name)),
        width: 1.5,
        points: { show: false },
      })),
    ],
  };
}

/** Returns a light version of a colour in the form `rgb(…)`, for the area below a line. */
const translucent = (rgb: string): string => rgb.replace(/^rgb\((.*)\)$/, 'rgba($1, 0.12)');

/** Returns the colour that `light-dark()` resolves to. A canvas does not support this function. */
function resolved(element: HTMLElement, value: string): string {
  const probe = document.createElement('span');
  probe.style.color = value;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
