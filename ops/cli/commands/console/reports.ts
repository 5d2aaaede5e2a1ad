import { Option } from 'commander';
import { z } from 'zod';
import { connectorIds, displayName } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { pushStates } from '../../../../shared/domain/pushes/record.ts';
import { wholeNumber } from '../../input.ts';
import { type Report, type Shell, table } from '../../report.ts';
import { chooseAppId, connect } from '../../service.ts';
import { addServiceReports } from './service.ts';

/** Options of a list in pages. */
export interface PageOptions {
  limit?: string;
  cursor?: string;
}
export type Filters = Record<string, string | undefined>;

const app = ['--app <appId>', 'the application; not needed when there is only one'] as const;
const limit = ['--limit <n>', 'largest number of results, at most 200'] as const;
const cursor = ['--cursor <next>', '`next` of the page before'] as const;

/** Adds commands that show what the console shows: pushes, failures, devices, a search, queues and the audit. */
export function addReportCommands(shell: Shell): void {
  addPushReports(shell);
  const { program, act } = shell;
  program
    .command('devices [id]')
    .description('list the devices of an application, or show one')
    .option(...app)
    .option('--q <id>', 'an objectId, installationId, device token or registration id')
    .option('--where <json>', 'condition')
    .option('--pushes', 'what became of the newest pushes at this device')
    .option(...limit)
    .option(...cursor)
    .action(act(showDevices));
  program
    .command('search <text>')
    .description('find applications, pushes, devices and users by an id, a token or a name')
    .option('--app <appId>', 'only in this application')
    .action(act(search));
  program.command('queues').description('list the queues with their jobs').action(act(showQueues));
  addServiceReports(shell);
  program
    .command('audit')
    .description('list what was changed by the admin API, newest first')
    .option('--app <appId>', 'only changes of this application')
    .option('--actor <name>', 'name of a token; admin for CARILLON_ADMIN_TOKEN')
    .option('--action <action>', 'such as profile.put, or profile')
    .option('--target <id>', 'what was changed')
    .option('--from <time>', 'changed at this time or later, such as 2027-01-31T00:00:00Z')
    .option('--to <time>', 'changed before this time')
    .option(...limit)
    .option(...cursor)
    .action(act(showAudit));
}

function addPushReports({ program, act }: Shell): void {
  program
    .command('pushes')
    .description('list the pushes of an application, newest first')
    .option(...app)
    .addOption(new Option('--status <state>', 'state of the push').choices([...pushStates]))
    .option('--source <service>', '`from-service` of the record')
    .option('--text <text>', 'part of the content, or an id')
    .option(...limit)
    .option(...cursor)
    .action(act(listPushes));
  program
    .command('failures <objectId>')
    .description('count the failures of a push by cause, with remedies, or list them')
    .option(...app)
    .option('--list', 'list the devices')
    .addOption(new Option('--connector <id>', 'only of this connector').choices([...connectorIds]))
    .addOption(new Option('--outcome <outcome>', 'only with this outcome').choices([...outcomes]))
    .option('--reason <reason>', 'only with this reason')
    .option(...limit)
    .option(...cursor)
    .action(act(showFailures));
  program
    .command('message-ids <objectId>')
    .description('list the ids that gateways gave to the messages of a push, for questions to their support')
    .option(...app)
    .option(...limit)
    .option(...cursor)
    .action(act(listMessages));
}

/** Returns a query string of the options that are given. */
export function queryOf({ limit: most, ...filters }: PageOptions & Filters): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filters)) if (value !== undefined) query.set(name, value);
  if (most !== undefined) query.set('limit', String(wholeNumber('--limit', most, 1)));
  return query.toString();
}

const pushes = z.looseObject({
  results: z.array(
    z.looseObject({ objectId: z.string(), state: z.string(), devices: z.number(), createdAt: z.string() }),
  ),
  next: z.string().nullable(),
});

async function listPushes({ app: asked, ...filters }: PageOptions & Filters): Promise<Report> {
  const service = await connect();
  const appId = encodeURIComponent(await chooseAppId(service, asked));
  const reply = await service.admin('GET', `/apps/${appId}/notifications?${queryOf(filters)}`);
  const { results, next } = pushes.parse(reply);
  const rows = results.map((one) => [one.objectId, one.state, one.devices, one.createdAt]);
  return pageReport(reply, { headings: ['push', 'state', 'devices', 'accepted'], rows, next });
}

const cause = { connector: z.string(), outcome: z.string(), reason: z.string() };
const groups = z.object({
  results: z.array(z.looseObject({ ...cause, n: z.number(), remedy: z.looseObject({ en: z.string() }) })),
});
const failures = z.looseObject({
  results: z.array(z.looseObject({ ...cause, objectId: z.string().nullable() })),
  next: z.string().nullable(),
});

async function showFailures(
  objectId: string,
  { app: asked, list, ...filters }: PageOptions & Filters & { list?: boolean },
): Promise<Report> {
  const service = await connect();
  const appId = encodeURIComponent(await chooseAppId(service, asked));
  const path = `/apps/${appId}/notifications/${encodeURIComponent(objectId)}/failures`;
  if (list) {
    const reply = await service.admin('GET', `${path}?${queryOf(filters)}`);
    const { results, next } = failures.parse(reply);
    const rows = results.map((one) => [
      one.objectId ?? '-',
      displayName(one.connector),
      one.outcome,
      one.reason,
    ]);
    return pageReport(reply, { headings: ['device', 'gateway', 'outcome', 'reason'], rows, next });
  }
  const reply = await service.admin('GET', `${path}/summary`);
  const lines = groups
    .parse(reply)
    .results.map(
      (one) =>
        `${one.n} × ${displayName(one.connector)}, ${one.outcome}: ${one.reason}\n    ${one.remedy.en}`,
    );
  return { document: reply, text: lines.length > 0 ? lines.join('\n') : 'Every device was reached.' };
}

const messages = z.looseObject({
  results: z.array(
    z.looseObject({ connector: z.string(), messageId: z.string(), devices: z.number(), at: z.string() }),
  ),
  next: z.string().nullable(),
});

async function listMessages(
  objectId: string,
  { app: asked, ...page }: PageOptions & Filters,
): Promise<Report> {
  const service = await connect();
  const appId = encodeURIComponent(await chooseAppId(service, asked));
  const path = `/apps/${appId}/notifications/${encodeURIComponent(objectId)}/messages`;
  const reply = await service.admin('GET', `${path}?${queryOf(page)}`);
  const { results, next } = messages.parse(reply);
  const rows = results.map((one) => [displayName(one.connector), one.messageId, one.devices, one.at]);
  return pageReport(reply, { headings: ['gateway', 'message id', 'devices', 'time'], rows, next });
}

const devices = z.looseObject({
  results: z.array(z.looseObject({ objectId: z.string(), deviceType: z.string(), updatedAt: z.string() })),
  next: z.string().nullable(),
});

async function showDevices(
  id: string | undefined,
  { app: asked, pushes: hasPushes, ...filters }: PageOptions & Omit<Filters, 'pushes'> & { pushes?: boolean },
): Promise<Report> {
  const service = await connect();
  const path = `/apps/${encodeURIComponent(await chooseAppId(service, asked))}/installations`;
  if (id !== undefined) {
    const reply = await service.admin(
      'GET',
      `${path}/${encodeURIComponent(id)}${hasPushes ? '/pushes' : ''}`,
    );
    return { document: reply, text: JSON.stringify(reply, null, 2) };
  }
  const reply = await service.admin('GET', `${path}?${queryOf(filters)}`);
  const { results, next } = devices.parse(reply);
  const rows = results.map((one) => [one.objectId, one.deviceType, one.updatedAt]);
  return pageReport(reply, { headings: ['device', 'type', 'saved'], rows, next });
}

const hits = z.object({
  results: z.array(z.object({ kind: z.string(), appId: z.string(), id: z.string(), title: z.string() })),
});

async function search(q: string, { app: asked }: { app?: string }): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/search?${queryOf({ q, app: asked })}`);
  const rows = hits.parse(reply).results.map((one) => [one.kind, one.appId, one.id, one.title]);
  return pageReport(reply, { headings: ['what', 'app', 'id', 'title'], rows, next: null });
}

const queues = z.object({
  results: z.array(
    z.object({
      queue: z.string(),
      ready: z.number(),
      waiting: z.number(),
      active: z.number(),
      oldestSeconds: z.number(),
    }),
  ),
});

async function showQueues(): Promise<Report> {
  const reply = await (await connect()).admin('GET', '/queues');
  const rows = queues
    .parse(reply)
    .results.map((one) => [one.queue, one.ready, one.waiting, one.active, Math.round(one.oldestSeconds)]);
  const headings = ['queue', 'ready', 'waiting', 'active', 'oldest (s)'];
  return pageReport(reply, { headings, rows, next: null });
}

const audit = z.looseObject({
  results: z.array(
    z.looseObject({
      at: z.string(),
      actor: z.looseObject({ name: z.string() }),
      action: z.string(),
      appId: z.string().nullable(),
      target: z.string(),
    }),
  ),
  next: z.string().nullable(),
});

async function showAudit(filters: PageOptions & Filters): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/audit?${queryOf(filters)}`);
  const { results, next } = audit.parse(reply);
  const rows = results.map((one) => [one.at, one.actor.name, one.action, one.appId ?? '-', one.target]);
  return pageReport(reply, { headings: ['at', 'who', 'action', 'app', 'target'], rows, next });
}

interface Listed {
  headings: string[];
  rows: (string | number)[][];
  next: string | null;
}

/** Returns a page of a list as a table, with the cursor of the next page. */
export function pageReport(document: unknown, { headings, rows, next }: Listed): Report {
  const text = rows.length > 0 ? table(headings, rows) : 'Nothing was found.';
  return { document, text: next === null ? text : `${text}\n\nMore: --cursor ${next}` };
}
