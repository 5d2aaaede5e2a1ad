import { readFile, writeFile } from 'node:fs/promises';
import { expect, test } from 'vitest';

/** Clients that tests drove, as the README's table shows them (ops/docs/clients.ts). */
const path = new URL('../../../docs/clients.json', import.meta.url);

interface DrivenEntry {
  readonly name: string;
  readonly version: string;
  readonly topics: readonly string[];
}

/**
 * Compares a client with its row in the table; with `UPDATE_CLIENTS=1` writes the row, with the day,
 * if each test of the block before passed.
 */
export function testTableRow({ name, version, topics }: DrivenEntry): void {
  test("is in the README's table as it was driven", async ({ task }) => {
    const table = JSON.parse(await readFile(path, 'utf8'));
    const rows: (DrivenEntry & { date: string })[] = table.driven;
    if (process.env.UPDATE_CLIENTS === '1') {
      const others = task.suite?.tasks.filter((one) => one !== task) ?? [];
      expect(others.filter((one) => one.result?.state === 'fail').map((one) => one.name)).toEqual([]);
      const row = { name, version, topics, date: new Date().toISOString().slice(0, 10) };
      table.driven = [...rows.filter((one) => one.name !== name), row].toSorted((a, b) =>
        a.name.localeCompare(b.name),
      );
      await writeFile(path, `${JSON.stringify(table, null, 2)}\n`);
      return;
    }
    expect(rows.find((one) => one.name === name)).toMatchObject({ version, topics });
  });
}
