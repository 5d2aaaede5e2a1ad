import type { Command } from 'commander';
import { z } from 'zod';
import type { Report, Shell } from '../../report.ts';
import { chooseAppId, connect, devicePart, part } from '../../service.ts';
import { addAuditCommand } from './audit.ts';
import { app, cursor, type Filters, limit, type PageOptions, pageReport, queryOf } from './pages.ts';
import { addPushReports } from './push-reports.ts';
import { addServiceReports } from './service.ts';

/** Adds commands that show what the console shows: pushes, failures, devices, a search, queues and the audit. */
export function addReportCommands(shell: Shell): void {
  addPushReports(shell);
  const { program, act } = shell;
  const list = program
    .command('devices [id]')
    .description('list the devices of an application, or show one')
    .option(...app)
    .option('--q <id>', 'an objectId, installationId, device token or registration id')
    .option('--where <json>', 'condition')
    .option('--pushes', 'what became of the newest pushes at this device')
    .option(...limit)
    .option(...cursor)
    .action(act(showDevices));
  list
    .command('delete-invalid <push>')
    .description('delete the devices whose tokens a push found invalid and kept; devices saved since stay')
    .option(...app)
    .action(
      act((push: string, _options: object, command: Command) =>
        deleteInvalid(push, command.optsWithGlobals()),
      ),
    );
  program
    .command('search <text>')
    .description('find applications, pushes, devices and users by an id, a token or a name')
    .option('--app <appId>', 'only in this application')
    .action(act(search));
  program.command('queues').description('list the queues with their jobs').action(act(showQueues));
  addServiceReports(shell);
  addAuditCommand(shell);
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
  const appId = await chooseAppId(service, asked);
  const path = `/apps/${part(appId)}/installations`;
  if (id !== undefined) {
    const device = await devicePart(service, appId, id);
    const reply = await service.admin('GET', `${path}/${device}${hasPushes ? '/pushes' : ''}`);
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

const deletion = z.object({ deleted: z.number() });

async function deleteInvalid(push: string, { app: asked }: { app?: string }): Promise<Report> {
  const service = await connect();
  const appId = await chooseAppId(service, asked);
  const path = `/apps/${encodeURIComponent(appId)}/notifications/${encodeURIComponent(push)}/delete-invalid`;
  const document = deletion.parse(await service.admin('POST', path, {}));
  return { document, text: `${document.deleted} devices are deleted.` };
}

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
