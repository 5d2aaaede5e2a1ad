import { Database } from '../../../../shared/db/pool.ts';
import {
  citusVersion,
  countShardServers,
  type PlacedTable,
  placeTables,
  placingStatements,
  readDistribution,
} from '../../../../shared/db/sharding.ts';
import { insertOwnAudit } from '../../../../shared/db/tables/console.ts';
import { pendingChanges } from '../../../../shared/queue/migrate.ts';
import { type English, say, translated, words } from '../../language.ts';
import { CommandFailure, type Report } from '../../report.ts';

/** Warnings before a change that cannot be undone. */
const warnings: readonly English[] = [
  'There is no way back but a dump and a restore: Citus does not undo it for tables with identity columns.',
  'The number of shards (citus.shard_count) is final for the same reason.',
  'Stop all apis and dispatchers first: it copies all rows, in one transaction, while nobody can read or write them.',
];

/**
 * Distributes the tables of a database by `app_id` over the servers of a Citus cluster. Skips
 * tables that are already distributed. With `isPlan`, changes nothing and returns the statements.
 * Throws `CommandFailure` if Citus is missing, if there are no servers for the shards, or if the
 * migrations have not run.
 */
export async function distribute(
  databaseUrl: string,
  { isPlan }: { isPlan: boolean },
): Promise<Report> {
  const db = new Database({
    url: databaseUrl,
    applicationName: 'carillon migrate',
    maxConnections: 1,
    statementTimeoutMs: 0,
  });
  try {
    const pending = await pendingChanges(databaseUrl);
    if (pending.length > 0)
      throw new CommandFailure(
        say('Run `carillon migrate` first: the database is not up to date.'),
      );
    await requireCitus(db);
    const { tables, keys } = await readDistribution(db);
    const planned = placingStatements({ tables, keys });
    if (planned.length === 0)
      return { document: { statements: [] }, text: say('All tables are spread already.') };
    if (!isPlan) {
      const statements = await db.transaction(async (tx) => {
        const placed = await placeTables(tx);
        await insertOwnAudit(tx, distributed(placed.length));
        return placed;
      });
      return {
        document: { statements },
        text: `${statements.join('\n')}\n${say('All tables are spread.')}`,
      };
    }
    const document = { statements: planned, warnings, tables };
    return {
      document,
      text: [...words(...warnings), '', ...tables.map(describe), '', ...planned].join('\n'),
    };
  } finally {
    await db.close();
  }
}

/** Returns the audit entry. */
const distributed = (statements: number) => ({
  by: 'migrate',
  appId: null,
  action: 'service.distribute',
  target: 'service',
  after: { statements },
});

async function requireCitus(db: Database): Promise<void> {
  if ((await citusVersion(db)) === undefined)
    throw new CommandFailure(
      say(
        'The database has no extension citus: install it on all servers, then run CREATE EXTENSION citus.',
      ),
    );
  if ((await countShardServers(db)) === 0)
    throw new CommandFailure(say('No server takes shards: add the workers with citus_add_node.'));
}

const places: Readonly<Record<PlacedTable['placement'], English>> = {
  byApp: 'by app_id',
  everywhere: 'on every server',
  coordinator: 'on the coordinator',
};

function describe({ name, placement, isPlaced, rows, bytes }: PlacedTable): string {
  const done = isPlaced ? ` ${say('(is so already)')}` : '';
  const size = say('about {rows} rows, {megabytes} MB', {
    rows: rows.toLocaleString('en'),
    megabytes: (bytes / 1e6).toFixed(1),
  });
  return `${name}: ${translated(places[placement])}${done}, ${size}`;
}
