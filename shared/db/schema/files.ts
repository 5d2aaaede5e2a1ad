import { readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { effectOf } from './effects.ts';
import { splitStatements, upPart } from './statements.ts';

/** Folder of the migrations of this version. */
export const migrationFolder = fileURLToPath(new URL('../migrations', import.meta.url));

/** Table of the migrations that a database has. */
export const migrationTable = 'carillon_migration';

/** A migration of this version. */
export interface MigrationFile {
  name: string;
  /** Text of the part that is run. */
  up: string;
  statements: string[];
  /** Whether it runs outside of a transaction, since PostgreSQL requires that of CONCURRENTLY. */
  isConcurrent: boolean;
}

/** Returns the names of the migrations in a folder, in their order. */
export function migrationNames(folder = migrationFolder): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.sql'))
    .map((name) => basename(name, '.sql'))
    .sort();
}

/** Reads a migration. */
export async function readMigration(name: string, folder = migrationFolder): Promise<MigrationFile> {
  const up = upPart(await readFile(join(folder, `${name}.sql`), 'utf8'));
  const statements = splitStatements(up);
  return { name, up, statements, isConcurrent: statements.some((one) => effectOf(one).isConcurrent) };
}
