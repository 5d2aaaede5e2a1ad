import { beforeAll, describe, expect, test } from 'vitest';
import { distribute } from '../../../ops/cli/commands/service/distribution.ts';
import { checkSharding } from '../../../ops/cli/doctor/database.ts';
import {
  type Distribution,
  placingStatements,
  readDistribution,
} from '../../../shared/db/sharding.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db, url } = await openTestDatabase({ maxConnections: 1 });
let distribution: Distribution;

beforeAll(async () => {
  distribution = await readDistribution(db);
});
const placed = (placement: string) =>
  distribution.tables.filter((table) => table.placement === placement).map(({ name }) => name);

describe('the tables of an app', () => {
  test('are all tables that name an app in every row', () => {
    expect(placed('byApp')).toEqual(
      expect.arrayContaining(['app', 'installation', 'notification', 'push_batch']),
    );
    expect(placed('everywhere')).toEqual(['channel_node', 'restoration']);
    expect(placed('coordinator')).toEqual(
      expect.arrayContaining(['audit', 'push_freeze', 'rate_limit']),
    );
  });

  test('have app_id in every unique key, and bigint ids', async () => {
    const { rows: keys } = await db.query(
      `SELECT indexrelid::regclass::text AS name FROM pg_index i
        WHERE indisunique AND indrelid = ANY ($1::text[]::regclass[])
          AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = i.indrelid
            AND a.attname = 'app_id' AND a.attnum = ANY (i.indkey))`,
      [placed('byApp')],
    );
    expect(keys).toEqual([]);
    const { rows: ids } = await db.query(
      `SELECT attrelid::regclass::text AS name FROM pg_attribute
        WHERE attidentity <> '' AND atttypid <> 'bigint'::regtype
          AND attrelid = ANY ($1::text[]::regclass[])`,
      [placed('byApp')],
    );
    expect(ids).toEqual([]);
  });

  test('refer to each other by app_id, and otherwise to tables that every server has', () => {
    const byApp = new Set(placed('byApp'));
    const wrong = distribution.keys.filter(
      ({ table, referenced, definition }) =>
        byApp.has(table) &&
        !(byApp.has(referenced) && definition.startsWith('FOREIGN KEY (app_id')) &&
        !placed('everywhere').includes(referenced),
    );
    expect(wrong).toEqual([]);
  });
});

describe('the statements that distribute a database', () => {
  test("distribute every table, and add all foreign keys again except the coordinator's", () => {
    const statements = placingStatements(distribution);
    for (const name of placed('byApp'))
      expect(
        statements.filter((one) => one.includes(`create_distributed_table('${name}', 'app_id'`)),
      ).toHaveLength(1);
    const dropped = statements
      .filter((one) => / DROP CONSTRAINT /.test(one))
      .map((one) => one.split(' ').at(-1));
    const added = statements
      .filter((one) => / ADD CONSTRAINT /.test(one))
      .map((one) => one.split(' ')[5]);
    expect(dropped.filter((name) => !added.includes(name))).toEqual(['push_freeze_app_id_fkey']);
    expect(added.filter((name) => !dropped.includes(name))).toEqual([]);
  });

  test('are empty if all tables are distributed, and contain only a new table', () => {
    const tables = distribution.tables.map((table) => ({ ...table, isPlaced: true }));
    expect(placingStatements({ ...distribution, tables })).toEqual([]);
    const one = tables.map((table) => ({ ...table, isPlaced: table.name !== 'idle_walk' }));
    expect(placingStatements({ ...distribution, tables: one })).toEqual([
      'ALTER TABLE idle_walk DROP CONSTRAINT idle_walk_app_id_fkey',
      "SELECT create_distributed_table('idle_walk', 'app_id', colocate_with => 'app')",
      'ALTER TABLE idle_walk ADD CONSTRAINT idle_walk_app_id_fkey FOREIGN KEY (app_id) REFERENCES app(app_id) ON DELETE CASCADE',
    ]);
  });
});

test('a database without Citus is not distributed or reported', async () => {
  for (const isPlan of [true, false])
    await expect(distribute(url, { isPlan })).rejects.toThrow(/no extension citus/);
  expect(await checkSharding(db)).toEqual([]);
});
