import { Presets, SingleBar } from 'cli-progress';
import type { Clock } from '../../shared/clock.ts';
import type { ExportFile } from './files.ts';
import type { Tally } from './tally.ts';

export interface Progress {
  /** Takes the bytes read so far, of all files together. */
  show(bytes: number): void;
  stop(): void;
}

export interface ProgressOptions {
  files: ExportFile[];
  tally: Tally;
  isShown: boolean;
  clock: Clock;
}

/** Shows a bar on standard error if that is a terminal. It counts bytes, because the number of records is unknown. */
export function showProgress({ files, tally, isShown, clock }: ProgressOptions): Progress {
  if (!isShown) return { show: () => undefined, stop: () => undefined };
  const bar = new SingleBar(
    {
      format: '{bar} {percentage} % | {records} records, {refused} refused | {perSecond} per second',
      stream: process.stderr,
      hideCursor: true,
      clearOnComplete: false,
    },
    Presets.shades_classic,
  );
  const startedAtMs = clock.monotonicMs();
  const state = () => {
    const records = tally.total('read');
    const elapsedMs = Math.max(clock.monotonicMs() - startedAtMs, 1);
    return { records, refused: tally.total('refused'), perSecond: Math.round((records * 1000) / elapsedMs) };
  };
  bar.start(
    files.reduce((sum, { bytes }) => sum + bytes, 0),
    0,
    state(),
  );
  return { show: (bytes) => bar.update(bytes, state()), stop: () => bar.stop() };
}
