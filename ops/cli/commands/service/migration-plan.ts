import {
  type PlannedMigration,
  type PlannedStatement,
  planMigrations,
} from '../../../../shared/db/schema/plan.ts';
import { pendingQueues } from '../../../../shared/queue/migrate.ts';
import { type English, say, translated } from '../../language.ts';
import type { Report } from '../../report.ts';

const maxLetters = 90;

/** Returns the migrations that `carillon migrate` would run, and their effects. */
export async function reportPlan(databaseUrl: string): Promise<Report> {
  const migrations = await planMigrations(databaseUrl);
  const queues = await pendingQueues(databaseUrl);
  const lines = [...migrations.flatMap(describe), ...queues];
  return {
    document: { migrations, queues },
    text: lines.length > 0 ? lines.join('\n') : say('The database is up to date.'),
  };
}

function describe({ name, isConcurrent, statements }: PlannedMigration): string[] {
  const mode = say(isConcurrent ? 'outside of a transaction' : 'in one transaction');
  return [
    `${name} (${mode})`,
    ...statements.flatMap((one) => [`  ${shorten(one.statement)}`, `    ${effectText(one)}`]),
  ];
}

const shorten = (text: string) =>
  text.length > maxLetters ? `${text.slice(0, maxLetters)}…` : text;

const works = {
  catalogue: 'changes the catalogue only, in milliseconds',
  scan: 'reads the whole table',
  rows: 'writes rows of the table',
  rewrite: 'writes the whole table again, with its indexes',
} as const satisfies Readonly<Record<PlannedStatement['cost'], English>>;

/** Effect of a lock on callers while it is held. */
const effects: Readonly<Record<PlannedStatement['lock'], English>> = {
  none: 'nobody waits',
  'ROW EXCLUSIVE': 'nobody waits, apart from writers of the same rows',
  'SHARE UPDATE EXCLUSIVE': 'nobody waits',
  SHARE: 'writers wait',
  'SHARE ROW EXCLUSIVE': 'writers wait',
  'ACCESS EXCLUSIVE': 'readers and writers wait',
};

function effectText({ table, lock, cost, rows, bytes }: PlannedStatement): string {
  if (table === undefined)
    return say('no lock on a table with data: {work}', { work: translated(works.catalogue) });
  const size =
    rows === undefined || bytes === undefined
      ? ''
      : ` ${say('(about {rows} rows, {size})', { rows: count(rows), size: bytesText(bytes) })}`;
  const work = `${translated(works[cost])}; ${translated(effects[lock])}`;
  return say('{lock} on {table}: {work}', { lock, table: `${table}${size}`, work });
}

const count = (rows: number) => Math.round(rows).toLocaleString('en');

function bytesText(bytes: number): string {
  return bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}
