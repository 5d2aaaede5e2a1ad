import { readFile, writeFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

/** Clients that tests drive, for the table in the README (ops/docs/clients-table.ts). */
const table = new URL('../../../docs/clients.json', import.meta.url);
const project = fileURLToPath(new URL('../../..', import.meta.url));

/** Client in the table, and the topics that one test file drives, in the words of the table. */
export interface TableRow {
  /** Language, package and registry. */
  readonly name: string;
  readonly version: string;
  /**
   * Driven topics in the words of the README. A driver program prints at least one check for each
   * topic.
   */
  readonly topics: readonly string[];
}

/** Row of docs/clients.json. */
interface Row extends TableRow {
  readonly test: string;
  readonly date: string;
}

/**
 * Compares the topics that a test file drives with docs/clients.json. With `UPDATE_CLIENTS=1`,
 * writes them with the current day if all earlier tests passed.
 */
export function testTableRow({ name, version, topics }: TableRow): void {
  test("is in the README's table as it was driven", async ({ task }) => {
    const clients: { driven: Row[] } = JSON.parse(await readFile(table, 'utf8'));
    const file = relative(project, task.file.filepath);
    const isSame = (row: Row) => row.name === name && row.test === file;
    if (process.env.UPDATE_CLIENTS !== '1') {
      expect(clients.driven.find(isSame)).toMatchObject({ version, topics });
      return;
    }
    const others = (task.suite ?? task.file).tasks;
    expect(others.filter((one) => one.result?.state === 'fail').map((one) => one.name)).toEqual([]);
    const row = { name, version, topics, test: file, date: new Date().toISOString().slice(0, 10) };
    clients.driven = [...clients.driven.filter((one) => !isSame(one)), row].toSorted((a, b) =>
      `${a.name}${a.test}`.localeCompare(`${b.name}${b.test}`),
    );
    await writeFile(table, `${JSON.stringify(clients, null, 2)}\n`);
  });
}
