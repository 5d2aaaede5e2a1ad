import { z } from 'zod';
import { sleep } from '../../../../shared/clock.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { connect, type ServiceClient } from '../../service.ts';

const path = '/secret/rotation';
const pollMs = 1000;

const byColumn = z.record(z.string(), z.number());
const stateReply = z.looseObject({
  keys: z.array(
    z.looseObject({
      id: z.string(),
      isFirst: z.boolean(),
      values: byColumn.nullable(),
      mayBeRemoved: z.boolean(),
    }),
  ),
  other: byColumn.nullable(),
  left: z.number().nullable(),
  rotation: z
    .looseObject({
      state: z.string(),
      pass: z.number(),
      expected: z.number(),
      changed: z.number(),
      unreadable: byColumn,
    })
    .nullable(),
  mismatches: z.array(z.object({ kind: z.string(), host: z.string(), pid: z.number(), problem: z.string() })),
});
type State = z.infer<typeof stateReply>;

/** Adds `carillon secret …`: the keys that encrypt at rest. */
export function addSecretCommands({ program, act }: Shell): void {
  const secret = program.command('secret').description('keys of CARILLON_SECRET, which encrypt at rest');
  secret
    .command('rotate')
    .description('encrypt everything at rest under the first key of CARILLON_SECRET; run again, it goes on')
    .option('--dry-run', 'change nothing; count the values by column and key')
    .option('--no-wait', 'request it and return: dispatchers do it')
    .action(act(rotate));
  secret
    .command('status')
    .description('the state of the last rotation, and which keys may be removed')
    .action(act(status));
}

async function rotate({ dryRun, wait }: { dryRun?: boolean; wait: boolean }): Promise<Report> {
  const service = await connect();
  if (dryRun === true) return reportOf(await service.admin('GET', `${path}?count=1`), 'no');
  const requested = await service.admin('POST', path);
  if (!wait) return reportOf(requested, 'no');
  return reportOf(await untilDone(service), 'whenLeft');
}

async function status(): Promise<Report> {
  return reportOf(await (await connect()).admin('GET', path), 'no');
}

/** Polls until the rotation is done, and shows its progress on standard error. */
async function untilDone(service: ServiceClient): Promise<unknown> {
  let shown = '';
  for (;;) {
    const reply = await service.admin('GET', path);
    const { rotation } = stateReply.parse(reply);
    if (rotation?.state !== 'running') return reply;
    const { pass, changed, expected } = rotation;
    const line = pass === 0 ? 'waits for a dispatcher' : `pass ${pass}: ${changed} of ${expected} values`;
    if (line !== shown) process.stderr.write(`carillon: ${line}\n`);
    shown = line;
    await sleep(pollMs);
  }
}

function reportOf(document: unknown, bad: 'no' | 'whenLeft'): Report {
  const state = stateReply.parse(document);
  const isBad = bad === 'whenLeft' && state.left !== 0;
  return { document, text: [countsOf(state), ...sentencesOf(state)].join('\n'), isBad };
}

/** Returns the numbers of values, one line for each column and one column for each key. */
function countsOf({ keys, other }: State): string {
  const groups = [...keys.map(({ values }) => values ?? {}), other ?? {}];
  const columns = [...new Set(groups.flatMap((values) => Object.keys(values)))].toSorted();
  const headings = ['column', ...keys.map(({ id, isFirst }) => (isFirst ? `${id} (first)` : id)), 'other'];
  return table(
    headings,
    columns.map((column) => [column, ...groups.map((values) => values[column] ?? 0)]),
  );
}

const problems: Record<string, string> = {
  cannotRead: 'lacks the first key',
  encryptsOtherwise: 'encrypts under another key',
  unknown: 'is of an older version and does not say its keys',
};

function sentencesOf({ keys, left, rotation, mismatches }: State): string[] {
  const unreadable = Object.entries(rotation?.unreadable ?? {}).filter(([, values]) => values > 0);
  const removable = keys.filter(({ mayBeRemoved }) => mayBeRemoved).map(({ id }) => id);
  return [
    ...mismatches.map(
      ({ kind, host, pid, problem }) =>
        `The ${kind} on ${host} (pid ${pid}) ${problems[problem] ?? problem}.`,
    ),
    ...unreadable.map(([column, values]) => `No key of CARILLON_SECRET decrypts ${values} of ${column}.`),
    ...(rotation?.state === 'running' ? ['The rotation runs.'] : []),
    ...(left === null ? ['Nothing is counted yet.'] : [`${left} values are not under the first key.`]),
    ...(removable.length > 0
      ? [`Nothing needs ${removable.join(', ')}: remove it from CARILLON_SECRET; keep it with older backups.`]
      : []),
  ];
}
