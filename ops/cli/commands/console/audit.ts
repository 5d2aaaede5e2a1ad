import { once } from 'node:events';
import { z } from 'zod';
import type { Report, Shell } from '../../report.ts';
import { connect } from '../../service.ts';
import { cursor, type Filters, limit, type PageOptions, pageReport, queryOf } from './pages.ts';

type AuditFilters = PageOptions & Filters;

/** Adds `carillon audit`: what callers of the admin API changed. */
export function addAuditCommand({ program, act }: Shell): void {
  program
    .command('audit')
    .description('list what was changed by the admin API, newest first')
    .option('--app <appId>', 'only changes of this application')
    .option('--actor <name>', 'name of a token; admin for CARILLON_ADMIN_TOKEN')
    .option('--action <action>', 'such as profile.put, or profile')
    .option('--target <id>', 'what was changed')
    .option('--from <time>', 'changed at this time or later, such as 2027-01-31T00:00Z')
    .option('--to <time>', 'changed before this time')
    .option('--lines', 'export all of it instead of one page: a JSON object per line')
    .option(...limit)
    .option(...cursor)
    .action(
      act(({ lines: isExport, ...filters }: Omit<AuditFilters, 'lines'> & { lines?: boolean }) =>
        isExport ? writeLines(filters) : showPage(filters),
      ),
    );
}

const entry = z.looseObject({
  at: z.string(),
  actor: z.looseObject({ name: z.string() }),
  action: z.string(),
  appId: z.string().nullable(),
  target: z.string(),
});

const page = z.looseObject({ results: z.array(entry), next: z.string().nullable() });

async function showPage(filters: AuditFilters): Promise<Report> {
  const reply = await (await connect()).admin('GET', `/audit?${queryOf(filters)}`);
  const { results, next } = page.parse(reply);
  const rows = results.map((one) => [one.at, one.actor.name, one.action, one.appId ?? '-', one.target]);
  return pageReport(reply, { headings: ['at', 'who', 'action', 'app', 'target'], rows, next });
}

/** Entries of a page of an export, the most that the list gives. */
const exportPage = '200';

/** Writes all entries to standard output, however many, as fast as its reader takes them. */
async function writeLines(filters: AuditFilters): Promise<undefined> {
  const service = await connect();
  for (let from = filters.cursor; ; ) {
    const query = queryOf({ ...filters, limit: exportPage, cursor: from });
    const { results, next } = page.parse(await service.admin('GET', `/audit?${query}`));
    const text = results.map((one) => `${JSON.stringify(one)}\n`).join('');
    if (!process.stdout.write(text)) await once(process.stdout, 'drain');
    if (next === null) return undefined;
    from = next;
  }
}
