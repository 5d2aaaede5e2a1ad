import { say, section, sentences, words } from '../cli/language.ts';
import type { Report } from '../cli/report.ts';
import { table } from '../cli/table.ts';
import type { FoundFiles } from './files.ts';
import type { Tally } from './tally.ts';

export interface Outcome {
  appId: string;
  isDry: boolean;
  found: FoundFiles;
  tally: Tally;
  seconds: number;
  /** File with all refusals. */
  refusedTo: string | undefined;
  validityDays: number;
  /** Reason of an early end. */
  failure?: string | undefined;
}

/** Creates the report of an import: a document and a text. Refused records are a bad outcome. */
export function reportOf(outcome: Outcome): Report {
  const { tally, failure } = outcome;
  const isBad = tally.total('refused') > 0 || failure !== undefined;
  return { document: documentOf(outcome), text: textOf(outcome), isBad };
}

const unlisted = (tally: Tally): number => tally.total('refused') - tally.refusals.length;

function documentOf({ appId, isDry, found, tally, seconds, failure }: Outcome): object {
  return {
    appId,
    dryRun: isDry,
    classes: Object.fromEntries(tally.classes),
    idleInstallations: tally.idleInstallations,
    refusals: tally.refusals,
    refusalsNotListed: unlisted(tally),
    skippedFiles: found.skipped,
    seconds,
    ...(failure === undefined ? {} : { error: failure }),
  };
}

function textOf(outcome: Outcome): string {
  const { tally, isDry, found, seconds } = outcome;
  const rows = [...tally.classes].map(([name, counts]) => [
    name,
    counts.read,
    counts.imported,
    counts.alreadyThere,
    counts.refused,
  ]);
  const headings = words(
    'class',
    'read',
    isDry ? 'would be imported' : 'imported',
    'already there',
    'refused',
  );
  return [
    table(headings, rows),
    sentences(
      say(isDry ? 'Checked; nothing was written.' : 'Done.'),
      say('{seconds} s.', { seconds: seconds.toFixed(1) }),
    ),
    ...notes(outcome),
    ...section(
      'Refused:',
      tally.refusals.map(
        ({ file, line, objectId, error }) =>
          `${file}:${line}${objectId === undefined ? '' : ` (${objectId})`}: ${error}`,
      ),
    ),
    ...section(
      'Files left out:',
      found.skipped.map(({ path, reason }) => `${path} ${reason}`),
    ),
  ].join('\n');
}

function notes({ tally, refusedTo, validityDays, failure }: Outcome): string[] {
  const newer = tally.total('newerInFile');
  const more = unlisted(tally);
  const all =
    refusedTo === undefined
      ? say('give --refused <file> for all of them')
      : say('all are in {file}', { file: refusedTo });
  return [
    ...(failure === undefined ? [] : [say('Not finished: {failure}', { failure })]),
    ...(newer > 0
      ? [
          say(
            '{n} of those that were there already were changed later in the file; they were left as they are.',
            { n: newer },
          ),
        ]
      : []),
    ...(tally.idleInstallations > 0
      ? [
          say(
            '{n} installations were last seen more than {days} days ago: they count as seen at the import, and are deleted {days} days after it unless they call.',
            { n: tally.idleInstallations, days: validityDays },
          ),
        ]
      : []),
    ...(more > 0 ? [say('{n} more refusals are not listed: {all}.', { n: more, all })] : []),
  ];
}
