import { sleep } from '../../../../shared/clock.ts';
import type { Call, Reply } from '../../../client/client.ts';
import { flag } from '../../arguments.ts';
import { command, group } from '../../command.ts';
import { type English, say, translated } from '../../language.ts';
import type { Report } from '../../report.ts';
import { row } from '../../row.ts';
import { connect } from '../../service.ts';
import { table } from '../../table.ts';

const pollMs = 1000;

type State = Reply<'getSecretRotation'>;

/** `carillon secret …`: the keys that encrypt data at rest. */
export const secretCommands = [
  group('secret', 'keys of CARILLON_SECRET, which encrypt at rest'),
  command(
    'secret rotate',
    'encrypt everything at rest under the first key of CARILLON_SECRET; run again, it goes on',
    {
      example: 'secret rotate --dry-run',
      takes: {
        dryRun: flag('--dry-run', 'change nothing; count the values by column and key'),
        wait: flag('--no-wait', 'request it and return: dispatchers do it'),
      },
      run: rotate,
    },
  ),
  row('secret status', 'the state of the last rotation, and which keys may be removed', {
    operation: 'getSecretRotation',
    show: describe,
  }),
];

async function rotate({ dryRun, wait }: { dryRun?: true; wait?: true }): Promise<Report> {
  const { call } = await connect();
  if (dryRun) return reportOf(await call('getSecretRotation', { query: { count: '1' } }));
  const requested = await call('rotateSecret');
  if (!wait) return reportOf(requested);
  const done = await untilDone(call);
  return { ...reportOf(done), isBad: done.left !== 0 };
}

/** Polls until the rotation is done. Shows its progress on standard error. */
async function untilDone(call: Call): Promise<State> {
  let lastLine = '';
  for (;;) {
    const reply = await call('getSecretRotation');
    const { rotation } = reply;
    if (rotation?.state !== 'running') return reply;
    const { pass, changed, expected } = rotation;
    const line =
      pass === 0
        ? say('waits for a dispatcher')
        : say('pass {pass}: {changed} of {expected} values', { pass, changed, expected });
    if (line !== lastLine) process.stderr.write(`carillon: ${line}\n`);
    lastLine = line;
    await sleep(pollMs);
  }
}

const reportOf = (state: State): Report => ({ document: state, text: describe(state) });

function describe(state: State): string {
  return [countsOf(state), ...sentencesOf(state)].join('\n');
}

/**
 * Returns a table of the numbers of values, with one line per column of the database and one column
 * per key.
 */
function countsOf({ keys, other }: State): string {
  const groups = [...keys.map(({ values }) => values ?? {}), other ?? {}];
  const columns = [...new Set(groups.flatMap((values) => Object.keys(values)))].toSorted();
  const ids = keys.map(({ id, isFirst }) => (isFirst ? say('{id} (first)', { id }) : id));
  const headings = [say('column'), ...ids, say('other')];
  return table(
    headings,
    columns.map((column) => [column, ...groups.map((values) => values[column] ?? 0)]),
  );
}

const problems: Readonly<Record<string, English>> = {
  cannotRead: 'lacks the first key',
  encryptsOtherwise: 'encrypts under another key',
  unknown: 'is of an older version and does not say its keys',
};

function sentencesOf({ keys, left, rotation, mismatches }: State): string[] {
  const unreadable = Object.entries(rotation?.unreadable ?? {}).filter(([, values]) => values > 0);
  const removable = keys.filter(({ mayBeRemoved }) => mayBeRemoved).map(({ id }) => id);
  return [
    ...mismatches.map(({ kind, host, pid, problem }) =>
      say('The {kind} on {host} (pid {pid}) {problem}.', {
        kind,
        host,
        pid,
        problem: translated(problems[problem] ?? problem),
      }),
    ),
    ...unreadable.map(([column, values]) =>
      say('No key of CARILLON_SECRET decrypts {values} of {column}.', { values, column }),
    ),
    ...(rotation?.state === 'running' ? [say('The rotation runs.')] : []),
    ...(left === null
      ? [say('Nothing is counted yet.')]
      : [say('{left} values are not under the first key.', { left })]),
    ...(removable.length > 0
      ? [
          say('Nothing needs {keys}: remove it from CARILLON_SECRET; keep it with older backups.', {
            keys: removable.join(', '),
          }),
        ]
      : []),
  ];
}
