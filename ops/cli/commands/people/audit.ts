import { once } from 'node:events';
import { flag, page, text, time, type Values } from '../../arguments.ts';
import { command } from '../../command.ts';
import type { Report } from '../../report.ts';
import { type Columns, type Item, listed } from '../../row.ts';
import { connect } from '../../service.ts';

const filters = {
  app: text('--app <appId>', 'only changes of this application'),
  actor: text('--actor <name>', 'name of a token; admin for CARILLON_ADMIN_TOKEN'),
  action: text('--action <action>', 'such as profile.put, or profile'),
  target: text('--target <id>', 'what was changed'),
  from: time('--from <time>', 'changed at this time or later, such as 2027-01-31T00:00Z'),
  to: time('--to <time>', 'changed before this time'),
  ...page(),
};
type Filters = Values<typeof filters>;

/** `carillon audit`: what callers of the admin API changed. */
export const auditCommand = command('audit', 'list what was changed by the admin API, newest first', {
  example: 'audit --action profile --from 2027-01-31T00:00Z',
  takes: {
    ...filters,
    lines: flag('--lines', 'export all of it instead of one page: a JSON object per line'),
  },
  run: ({ lines, ...query }) => (lines ? writeLines(query) : showPage(query)),
});

const columns: Columns<Item<'listAudit'>> = {
  at: 'at',
  who: ({ actor }) => actor.name,
  action: 'action',
  target: 'target',
  app: 'appId',
};

async function showPage(query: Filters): Promise<Report> {
  const reply = await (await connect()).call('listAudit', { query });
  return { document: reply, text: listed(reply.results, columns, { next: reply.next }) };
}

/** Entries of a page of an export, the most that the list gives. */
const exportPage = 200;

/** Writes all entries to standard output, however many, as fast as its reader takes them. */
async function writeLines(query: Filters): Promise<undefined> {
  const service = await connect();
  for (let { cursor } = query; ; ) {
    const { results, next } = await service.call('listAudit', {
      query: { ...query, limit: exportPage, cursor },
    });
    const lines = results.map((one) => `${JSON.stringify(one)}\n`).join('');
    if (!process.stdout.write(lines)) await once(process.stdout, 'drain');
    if (next === null) return undefined;
    cursor = next;
  }
}
