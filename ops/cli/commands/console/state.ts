import { z } from 'zod';
import { displayName } from '../../../../shared/domain/labels.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { type Filters, type PageOptions, pageReport, queryOf } from './pages.ts';

/** Adds commands that show the state of the service: the overview, its description, and the apps with their sizes. */
export function addStateCommands({ program, act }: Shell): void {
  program
    .command('overview')
    .description('show what is being sent, what needs the operator, and the use of today')
    .option('--app <appId>', 'only of this application')
    .action(act(showOverview));
  program
    .command('meta')
    .description('describe the service: version, connectors with their credentials, options')
    .action(act(showMeta));
  program
    .command('move-in-state')
    .description(
      'show how far the move of an application is: steps, devices by day, gateways, the last import',
    )
    .option('--app <appId>', 'the application; not needed when there is only one')
    .action(act(showMoveIn));
  program
    .command('apps')
    .description('list the applications with their devices and pushes, newest first')
    .option('--q <text>', 'an id, or a part of the name')
    .option('--limit <n>', 'largest number of results, at most 200')
    .option('--cursor <next>', '`next` of the page before')
    .action(act(listApps));
}

const gateway = z.looseObject({ appId: z.string(), connector: z.string(), profile: z.string() });

const overview = z.looseObject({
  running: z.array(
    z.looseObject({ objectId: z.string(), appId: z.string(), state: z.string(), devices: z.number() }),
  ),
  scheduled: z.number(),
  today: z.looseObject({
    day: z.string(),
    recipients: z.number(),
    cap: z.number().nullable(),
    calls: z.number(),
  }),
  outcomes24h: z.record(z.string(), z.number()),
  breakersOpen: z.array(gateway.extend({ state: z.string() })),
  profilesExpiring: z.array(gateway.extend({ expiresAt: z.string().nullable() })),
  findings: z.array(gateway.extend({ problems: z.array(z.string()) })),
});

async function showOverview({ app }: { app?: string }): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/overview?${queryOf({ app })}`);
  const { running, scheduled, today, outcomes24h, ...attention } = overview.parse(reply);
  const rows = running.map((one) => [one.objectId, one.appId, one.state, one.devices]);
  const cap = today.cap === null ? '' : ` of ${today.cap}`;
  const outcomes = Object.entries(outcomes24h).map(([name, count]) => `${name} ${count}`);
  const text = [
    rows.length > 0 ? table(['push', 'app', 'state', 'devices'], rows) : 'Nothing is being sent.',
    `scheduled      ${scheduled}`,
    `today (UTC)    ${today.recipients}${cap} recipients, ${today.calls} calls`,
    `last 24 hours  ${outcomes.join(', ') || '-'}`,
    ...attentionOf(attention),
  ];
  return { document: reply, text: text.join('\n') };
}

type Attention = Pick<z.infer<typeof overview>, 'breakersOpen' | 'profilesExpiring' | 'findings'>;

/** Describes what needs the operator, a line each. */
function attentionOf({ breakersOpen, profilesExpiring, findings }: Attention): string[] {
  const nameOf = ({ appId, connector, profile }: z.infer<typeof gateway>) =>
    `${displayName(connector)} ${profile} of ${appId}`;
  const lines = [
    ...breakersOpen.map((one) => `breaker ${one.state}: ${nameOf(one)}`),
    ...profilesExpiring.map((one) => `expires ${one.expiresAt}: ${nameOf(one)}`),
    ...findings.map((one) => `problem: ${nameOf(one)}: ${one.problems.join(' ')}`),
  ];
  return lines.length > 0 ? lines : ['Gateways answer, credentials are valid.'];
}

const meta = z.looseObject({
  version: z.string(),
  publicUrl: z.string(),
  connectors: z.array(z.looseObject({ id: z.string(), wire: z.array(z.string()), credentials: z.unknown() })),
});

async function showMeta(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/meta');
  const { version, publicUrl, connectors } = meta.parse(reply);
  const rows = connectors.map(({ id, wire, credentials }) => [
    id,
    displayName(id),
    wire.join(' '),
    credentials === null ? '-' : 'yes',
  ]);
  const headings = ['connector', 'gateway', 'vendor in installations', 'takes credentials'];
  return { document: reply, text: `Carillon ${version} at ${publicUrl}\n\n${table(headings, rows)}` };
}

const moveIn = z.looseObject({
  devices: z.object({ imported: z.number(), seen: z.number(), registered: z.number() }),
  users: z.number(),
  days: z.array(z.object({ day: z.string(), moved: z.number(), registered: z.number() })),
  steps: z.array(z.looseObject({ state: z.enum(['done', 'todo', 'check']), en: z.string() })),
});

const marks = { done: 'x', todo: ' ', check: '?' } as const;

async function showMoveIn({ app }: { app?: string }): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, app);
  const reply = await service.admin('GET', `/apps/${part(appId)}/move-in`);
  const { devices, users, days, steps } = moveIn.parse(reply);
  const text = [
    `${devices.imported} devices were imported, ${devices.seen} of them have called since; ${devices.registered} registered here; ${users} users.`,
    ...(days.length === 0
      ? []
      : [
          '',
          table(
            ['called last (UTC)', 'moved', 'new'],
            days.map(({ day, moved, registered }) => [day, moved, registered]),
          ),
        ]),
    '',
    'Steps ([x] done, [ ] to do, [?] to be checked by you):',
    ...steps.map(({ state, en }) => `[${marks[state]}] ${en}`),
  ];
  return { document: reply, text: text.join('\n') };
}

const apps = z.object({
  results: z.array(
    z.looseObject({
      appId: z.string(),
      name: z.string(),
      plan: z.string(),
      devices: z.number(),
      pushes7d: z.number(),
      createdAt: z.string(),
    }),
  ),
  next: z.string().nullable(),
});

async function listApps(filters: PageOptions & Filters): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/apps?${queryOf({ ...filters, view: 'list' })}`);
  const { results, next } = apps.parse(reply);
  const rows = results.map((one) => [
    ...[one.appId, one.name, one.plan, one.devices, one.pushes7d],
    one.createdAt,
  ]);
  return pageReport(reply, {
    headings: ['app id', 'name', 'plan', 'devices', 'pushes in 7 days', 'created'],
    rows,
    next,
  });
}
