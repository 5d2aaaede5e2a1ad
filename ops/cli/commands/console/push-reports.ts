import { Option } from 'commander';
import { z } from 'zod';
import { connectorIds, displayName } from '../../../../shared/domain/labels.ts';
import { outcomes } from '../../../../shared/domain/outcome.ts';
import { pushStates } from '../../../../shared/domain/pushes/record.ts';
import { language, ownText, reasonIn } from '../../language.ts';
import type { Report, Shell } from '../../report.ts';
import { chooseAppId, connect, part } from '../../service.ts';
import { app, cursor, type Filters, limit, type PageOptions, pageReport, queryOf } from './pages.ts';

/** Adds commands that show pushes, their failures and their message ids. */
export function addPushReports({ program, act }: Shell): void {
  program
    .command('pushes')
    .description('list the pushes of an application, newest first')
    .option(...app)
    .addOption(new Option('--status <state>', 'state of the push').choices([...pushStates]))
    .option('--source <service>', '`from-service` of the record')
    .option('--recurring <id>', 'only those of this recurring push')
    .option('--text <text>', 'part of the content, or an id')
    .option('--from <time>', 'accepted at this time or later, such as 2027-01-31T00:00Z')
    .option('--to <time>', 'accepted before this time')
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

const pushes = z.looseObject({
  results: z.array(
    z.looseObject({
      ...{ objectId: z.string(), state: z.string(), devices: z.number(), createdAt: z.string() },
      quietWaits: z.number().default(0),
    }),
  ),
  next: z.string().nullable(),
});

async function listPushes({ app: asked, ...filters }: PageOptions & Filters): Promise<Report> {
  const service = await connect();
  const appId = part(await chooseAppId(service, asked));
  const reply = await service.admin('GET', `/apps/${appId}/notifications?${queryOf(filters)}`);
  const { results, next } = pushes.parse(reply);
  // Few apps have quiet hours: the others need no column of zeros.
  const hasWaits = results.some(({ quietWaits }) => quietWaits > 0);
  const rows = results.map(({ objectId, state, devices, quietWaits, createdAt }) => [
    ...[objectId, state, devices, createdAt],
    ...(hasWaits ? [quietWaits] : []),
  ]);
  const headings = ['push', 'state', 'devices', 'accepted', ...(hasWaits ? ['waited in quiet hours'] : [])];
  return pageReport(reply, { headings, rows, next });
}

const cause = {
  ...{ connector: z.string(), outcome: z.string(), reason: z.string() },
  meaning: z.looseObject({ code: z.string(), zh: z.string() }),
};
const groups = z.object({
  results: z.array(
    z.looseObject({ ...cause, n: z.number(), remedy: z.looseObject({ en: z.string(), zh: z.string() }) }),
  ),
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
  const appId = part(await chooseAppId(service, asked));
  const path = `/apps/${appId}/notifications/${part(objectId)}/failures`;
  if (list) {
    const reply = await service.admin('GET', `${path}?${queryOf(filters)}`);
    const { results, next } = failures.parse(reply);
    const rows = results.map((one) => [
      one.objectId ?? '-',
      displayName(one.connector),
      one.outcome,
      reasonIn(one.reason, one.meaning),
    ]);
    return pageReport(reply, { headings: ['device', 'gateway', 'outcome', 'reason'], rows, next });
  }
  const reply = await service.admin('GET', `${path}/summary`);
  const lines = groups
    .parse(reply)
    .results.map(
      (one) =>
        `${one.n} × ${displayName(one.connector)}, ${one.outcome}: ${reasonIn(one.reason, one.meaning)}\n    ${one.remedy[language()]}`,
    );
  return { document: reply, text: lines.length > 0 ? lines.join('\n') : ownText('noFailure') };
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
  const appId = part(await chooseAppId(service, asked));
  const path = `/apps/${appId}/notifications/${part(objectId)}/messages`;
  const reply = await service.admin('GET', `${path}?${queryOf(page)}`);
  const { results, next } = messages.parse(reply);
  const rows = results.map((one) => [displayName(one.connector), one.messageId, one.devices, one.at]);
  return pageReport(reply, { headings: ['gateway', 'message id', 'devices', 'time'], rows, next });
}
