import { z } from 'zod';
import { wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { pushRecord } from './result.ts';

interface AppOption {
  app?: string;
}

/** State of a push after each verb. */
const results = {
  pause: 'is paused',
  resume: 'goes on',
  cancel: 'is cancelled',
  approve: 'is approved',
} as const;
type Verb = keyof typeof results;

const plainVerbs = [
  ['pause', 'pause a push'],
  ['cancel', 'cancel a push; the remaining recipients do not get it'],
  [
    'approve',
    'approve a push to many devices; one that the application sent needs an owner or two operators',
  ],
] as const;

const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;

/** Adds `carillon pause|resume|pace|cancel|approve` for unfinished pushes, and `carillon schedule` for scheduled ones. */
export function addControlCommands({ program, act }: Shell): void {
  for (const [verb, description] of plainVerbs)
    program
      .command(`${verb} <objectId>`)
      .description(description)
      .option(...app)
      .action(act((objectId: string, options: AppOption) => control(verb, objectId, options)));
  program
    .command('resume <objectId>')
    .description('resume a paused push')
    .option(...app)
    .option('--flow-control <per second>', 'limit of recipients per second from now on, at least 1000')
    .action(
      act((objectId: string, options: AppOption & { flowControl?: string }) =>
        control('resume', objectId, options),
      ),
    );
  program
    .command('pace <objectId> <perSecond>')
    .description('change the recipients per second of an unfinished push, at least 1000; `none` for no limit')
    .option(...app)
    .action(act(pace));
  program
    .command('resend <objectId>')
    .description('send a finished push again to those who failed or expired')
    .option(...app)
    .action(act(resend));
  addScheduleCommands({ program, act });
}

function addScheduleCommands({ program, act }: Pick<Shell, 'program' | 'act'>): void {
  const schedule = program.command('schedule').description('scheduled pushes');
  schedule
    .command('list')
    .description('list the scheduled pushes, the next one first')
    .option(...app)
    .action(act(listSchedule));
  schedule
    .command('cancel <id>')
    .description('cancel the push with this number in the list')
    .option(...app)
    .action(act(cancelSchedule));
}

/** Calls a verb of a push. */
async function ask(
  verb: string,
  objectId: string,
  { app: asked }: AppOption,
  body: object = {},
): Promise<unknown> {
  const service = await connect();
  const appId = await chooseAppId(service, asked);
  const path = `/apps/${part(appId)}/notifications/${part(objectId)}/${verb}`;
  return service.admin('POST', path, body);
}

const controlled = z.looseObject({
  objectId: z.string(),
  approval: z.looseObject({ missing: z.number() }).nullish(),
});

async function control(
  verb: Verb,
  objectId: string,
  { flowControl, ...options }: AppOption & { flowControl?: string },
): Promise<Report> {
  const body =
    flowControl === undefined ? {} : { flow_control: wholeNumber('--flow-control', flowControl, 1) };
  const reply = await ask(verb, objectId, options, body);
  const { objectId: id, approval } = controlled.parse(reply);
  const result =
    approval?.missing === 1
      ? 'has its first approval; an owner or an operator of another name gives the second'
      : results[verb];
  return { document: reply, text: `Push ${id} ${result}.` };
}

async function pace(objectId: string, perSecond: string, options: AppOption): Promise<Report> {
  const flow_control = perSecond === 'none' ? null : wholeNumber('<perSecond>', perSecond, 1);
  const reply = await ask('pace', objectId, options, { flow_control });
  const text = flow_control === null ? 'has no limit' : `goes at ${Math.max(1000, flow_control)} a second`;
  return { document: reply, text: `Push ${pushRecord.parse(reply).objectId} ${text}.` };
}

async function resend(objectId: string, options: AppOption): Promise<Report> {
  const reply = await ask('resend', objectId, options, { outcomes: ['failed', 'expired'] });
  const accepted = z.looseObject({ objectId: z.string() }).parse(reply);
  return { document: accepted, text: `Push ${accepted.objectId} is accepted.` };
}

const waiting = z.looseObject({
  results: z.array(z.looseObject({ id: z.number(), objectId: z.string(), 'push-time': z.string() })),
  next: z.string().nullable(),
});
type Waiting = z.infer<typeof waiting>['results'];

/** Lists all pushes of an app that wait for their time, page by page. */
async function listSchedule({ app: asked }: AppOption): Promise<Report> {
  const service = await connect();
  const path = `/apps/${part(await chooseAppId(service, asked))}/scheduled?limit=200`;
  const results: Waiting = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const page = waiting.parse(await service.admin('GET', cursor === '' ? path : `${path}&cursor=${cursor}`));
    results.push(...page.results);
    cursor = page.next;
  }
  const rows = results.map((one) => [one.id, one['push-time'], one.objectId]);
  return {
    document: { results },
    text: rows.length > 0 ? table(['id', 'sent at', 'push'], rows) : 'No push waits for its time.',
  };
}

async function cancelSchedule(id: string, { app: asked }: AppOption): Promise<Report> {
  const service = await connect();
  const path = `/apps/${part(await chooseAppId(service, asked))}/scheduled/${part(id)}`;
  const reply = await service.admin('DELETE', path);
  return { document: reply, text: `Scheduled push ${id} is cancelled.` };
}
