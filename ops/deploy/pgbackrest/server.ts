import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { newestPostgres, Processes, until } from '../processes.ts';

/** Returns the programs that are not installed. */
export function missingPrograms(): string[] {
  const programs = {
    pgbackrest: '/usr/bin/pgbackrest',
    postgresql: join(newestPostgres(), 'postgres'),
  };
  return Object.entries(programs).flatMap(([name, path]) => (existsSync(path) ? [] : [name]));
}

/**
 * PostgreSQL from Debian's package with the files of this folder, and a pgBackRest repository next
 * to it.
 */
export class BackedUpServer {
  readonly #folder: string;
  readonly #processes: Processes;
  readonly #address = `127.${randomInt(16, 255)}.${randomInt(1, 255)}.1`;
  readonly #password = randomBytes(12).toString('hex');

  constructor(folder: string) {
    this.#folder = folder;
    this.#processes = new Processes(folder);
  }

  get databaseUrl(): string {
    return `postgresql://carillon:${this.#password}@${this.#address}:5432/carillon`;
  }

  /** Creates the data, starts the server and creates the stanza. */
  async create(): Promise<void> {
    await this.#processes.makeFolder();
    const initdb = join(newestPostgres(), 'initdb');
    await this.#processes.execute([
      initdb,
      '-D',
      'data',
      '-E',
      'UTF8',
      '--auth-local=trust',
      '--auth-host=scram-sha-256',
    ]);
    await this.#writeFiles();
    await this.start();
    await this.#sql('postgres', `CREATE ROLE carillon LOGIN PASSWORD '${this.#password}'`);
    // Needed only for creating the benchmark's data.
    await this.#sql('postgres', 'GRANT pg_checkpoint TO carillon');
    await this.#sql('postgres', 'CREATE DATABASE carillon OWNER carillon');
    await this.pgbackrest('stanza-create');
    await this.pgbackrest('check');
  }

  /**
   * Starts the server. Resolves when the server accepts writes. After a restore, this is at the end
   * of the recovery.
   */
  async start(): Promise<void> {
    const postgres = [
      join(newestPostgres(), 'postgres'),
      '-D',
      'data',
      '-c',
      `config_file=${join(this.#folder, 'server.conf')}`,
    ];
    await this.#processes.run('postgres', postgres, { variables: this.#variables });
    await until(
      'server that writes',
      async () => (await this.#sql('postgres', 'SELECT pg_is_in_recovery()')) === false,
    );
  }

  stop(): Promise<void> {
    return this.#processes.stop('postgres', 'SIGINT');
  }

  pgbackrest(...args: string[]): Promise<string> {
    return this.#processes.execute(['pgbackrest', '--stanza=carillon', ...args], this.#variables);
  }

  close(): Promise<void> {
    return this.#processes.close();
  }

  get #variables(): Record<string, string> {
    return { PGBACKREST_CONFIG: join(this.#folder, 'pgbackrest.conf') };
  }

  /** Writes the configuration files of this folder with the paths of this machine. */
  async #writeFiles(): Promise<void> {
    const own = await readFile(join(import.meta.dirname, 'pgbackrest.conf'), 'utf8');
    const paths = { 'repo1-path': 'repository', 'pg1-path': 'data', 'pg1-socket-path': '' };
    const placed = Object.entries(paths).reduce(
      (text, [name, path]) =>
        text.replace(new RegExp(`^${name}=.*`, 'm'), `${name}=${join(this.#folder, path)}`),
      own,
    );
    const logs = `log-path=${this.#folder}\nlock-path=${this.#folder}/lock\nspool-path=${this.#folder}/spool`;
    await writeFile(
      join(this.#folder, 'pgbackrest.conf'),
      placed.replace('[global]', `[global]\n${logs}`),
    );
    const settings = await readFile(join(import.meta.dirname, 'postgresql.conf'), 'utf8');
    const place = `listen_addresses = '${this.#address}'\nport = 5432\nunix_socket_directories = '${this.#folder}'\n`;
    const initial = `include '${join(this.#folder, 'data/postgresql.conf')}'
`;
    await writeFile(join(this.#folder, 'server.conf'), `${initial}${settings}${place}`);
  }

  /** Runs a statement as the superuser. Returns the first value. */
  async #sql(database: string, text: string): Promise<unknown> {
    const client = new Client({ host: this.#folder, user: 'postgres', database });
    client.on('error', () => undefined);
    await client.connect();
    try {
      const { rows } = await client.query({ text, rowMode: 'array' });
      return rows[0]?.[0];
    } finally {
      await client.end();
    }
  }
}
