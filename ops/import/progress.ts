import type { Clock } from '../../shared/clock.ts';
import { say } from '../cli/language.ts';
import { ProgressBar } from '../cli/progress-bar.ts';
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
  const startedAtMs = clock.monotonicMs();
  const line = (shown: string, percentage: number) => {
    const records = tally.total('read');
    const elapsedMs = Math.max(clock.monotonicMs() - startedAtMs, 1);
    const perSecond = Math.round((records * 1000) / elapsedMs);
    const counts = say('{records} records, {refused} refused | {perSecond} per second', {
      ...{ records, perSecond },
      refused: tally.total('refused'),
    });
    return `${shown} ${percentage} % | ${counts}`;
  };
  const total = files.reduce((sum, { bytes }) => sum + bytes, 0);
  const bar = new ProgressBar({ stream: process.stderr, marks: ['█', '░'], line });
  bar.show(0, total);
  return { show: (bytes) => bar.show(bytes, total), stop: () => bar.stop() };
}
