import { randomBytes, randomInt } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { z } from 'zod';
import { killProcess, newestPostgres, Processes, until } from '../processes.ts';

/** Programs by Debian package; `postgresql` puts its own outside of PATH. */
const programs = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
  postgresql: join(newestPostgres(), 'postgres'),
};

/** Returns the programs that this machine lacks, and what else keeps a cluster from running here. */
export function reasonsAgainstCluster(): string[] {
  const missing = Object.entries(programs).filter(([, path]) => !existsSync(path));
  return [
    ...(process.platform === 'linux'
      ? []
      : ['only Linux has a loopback network of its own for each machine']),
    ...missing.map(([name]) => `${name} is not installed`),
  ];
}

const files = ['patroni.yml', 'haproxy.cfg'];
const members = ['db1', 'db2'] as const;
type Member = (typeof members)[number];

const patroniReply = z.object({
  members: z.array(z.object({ name: z.enum(members), role: z.string(), state: z.string() })),
});

/** Two PostgreSQL servers under Patroni, their etcd and HAProxy; each machine of the files is an address of loopback. */
export interface Cluster {
  /** Through HAProxy to the primary, and to the standby. */
  databaseUrl: string;
  readUrl: string;
  primary(): Promise<Member>;
  /** Kills Patroni and every process of PostgreSQL on a machine, as the loss of its power does. */
  kill(member: Member): Promise<void>;
  /** Lets the standby take over in good order; the old primary becomes the standby. */
  switchOver(): Promise<void>;
  /** Starts the killed machine again. */
  start(member: Member): Promise<void>;
  /** Resolves when one member leads and the other one is its synchronous standby. */
  untilWhole(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the cluster from the files of this folder, with its data in `folder`, as an ordinary user. */
export async function startCluster(folder: string): Promise<Cluster> {
  const machines = new Machines(folder);
  try {
    await machines.prepare();
    await machines.startEtcd();
    await Promise.all(members.map((member) => machines.startPatroni(member)));
    await machines.startHaproxy();
    await machines.untilWhole();
    const password = await machines.createDatabase();
    const url = (port: number) => `postgresql://carillon:${password}@${machines.proxy}:${port}/carillon`;
    return {
      databaseUrl: url(5000),
      readUrl: url(5001),
      primary: () => machines.primary(),
      kill: (member) => machines.kill(member),
      switchOver: () => machines.switchOver(),
      start: (member) => machines.startPatroni(member),
      untilWhole: () => machines.untilWhole(),
      close: () => machines.close(),
    };
  } catch (error) {
    await machines.close();
    throw error;
  }
}

/** Processes of the cluster. */
class Machines {
  readonly #folder: string;
  /** A network of loopback that nothing else uses, so that every machine has the usual ports. */
  readonly #network = `127.${randomInt(16, 255)}.${randomInt(1, 255)}`;
  readonly #passwords = {
    superuser: randomBytes(12).toString('hex'),
    replication: randomBytes(12).toString('hex'),
  };
  readonly #processes: Processes;

  constructor(folder: string) {
    this.#folder = folder;
    this.#processes = new Processes(folder);
  }

  get proxy(): string {
    return `${this.#network}.9`;
  }

  async prepare(): Promise<void> {
    await this.#processes.makeFolder();
    // Copies: the user of the servers may not enter the project.
    for (const file of files) await copyFile(join(import.meta.dirname, file), join(this.#folder, file));
  }

  async startEtcd(): Promise<void> {
    const [peer, client] = [2380, 2379].map((port) => `http://${this.#addressOf('db1')}:${port}`);
    await this.#processes.run('etcd', [programs.etcd], {
      ETCD_NAME: 'db1',
      ETCD_DATA_DIR: join(this.#folder, 'etcd'),
      ETCD_LISTEN_PEER_URLS: peer,
      ETCD_LISTEN_CLIENT_URLS: client,
      ETCD_INITIAL_ADVERTISE_PEER_URLS: peer,
      ETCD_ADVERTISE_CLIENT_URLS: client,
      ETCD_INITIAL_CLUSTER: `db1=${peer}`,
    });
    await until('etcd', async () => (await fetch(`${client}/health`)).ok);
  }

  async startPatroni(member: Member): Promise<void> {
    const address = this.#addressOf(member);
    await this.#processes.run(member, [programs.patroni, 'patroni.yml'], {
      PATRONI_NAME: member,
      PATRONI_ETCD3_HOSTS: `${this.#addressOf('db1')}:2379`,
      PATRONI_RESTAPI_LISTEN: `${address}:8008`,
      PATRONI_RESTAPI_CONNECT_ADDRESS: `${address}:8008`,
      PATRONI_POSTGRESQL_LISTEN: `${address}:5432`,
      PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${address}:5432`,
      PATRONI_POSTGRESQL_DATA_DIR: this.#dataOf(member),
      PATRONI_POSTGRESQL_BIN_DIR: newestPostgres(),
      PATRONI_POSTGRESQL_PGPASS: join(this.#folder, `pgpass-${member}`),
      PATRONI_SUPERUSER_USERNAME: 'postgres',
      PATRONI_SUPERUSER_PASSWORD: this.#passwords.superuser,
      PATRONI_REPLICATION_USERNAME: 'replicator',
      PATRONI_REPLICATION_PASSWORD: this.#passwords.replication,
    });
  }

  async startHaproxy(): Promise<void> {
    // Without a third machine its place points to nothing.
    const machines = { DB1: this.#addressOf('db1'), DB2: this.#addressOf('db2'), DB3: `${this.#network}.3` };
    await this.#processes.run('haproxy', [programs.haproxy, '-db', '-f', 'haproxy.cfg'], {
      HAPROXY_ADDRESS: this.proxy,
      ...machines,
    });
  }

  /** Creates the role and the database of Carillon. Returns the password. */
  async createDatabase(): Promise<string> {
    const password = randomBytes(12).toString('hex');
    const url = `postgresql://postgres:${this.#passwords.superuser}@${this.proxy}:5000/postgres`;
    await until('the primary behind HAProxy', async () => {
      const client = new Client({ connectionString: url });
      client.on('error', () => undefined);
      await client.connect();
      try {
        await client.query(`CREATE ROLE carillon LOGIN PASSWORD '${password}'`);
        // For the benchmark's seeding only.
        await client.query('GRANT pg_checkpoint TO carillon');
        await client.query('CREATE DATABASE carillon OWNER carillon');
        return true;
      } finally {
        await client.end();
      }
    });
    return password;
  }

  async primary(): Promise<Member> {
    for (const { name, role } of await this.#members()) if (role === 'leader') return name;
    throw new Error('no member leads');
  }

  async untilWhole(): Promise<void> {
    await until('a primary with a synchronous standby', async () => {
      const found = await this.#members();
      const roles = found.filter(({ state }) => state === 'running').map(({ role }) => role);
      return roles.includes('leader') && roles.includes('sync_standby');
    });
  }

  async switchOver(): Promise<void> {
    const leader = await this.primary();
    const url = `http://${this.#addressOf(leader)}:8008/switchover`;
    const reply = await fetch(url, { method: 'POST', body: JSON.stringify({ leader }) });
    if (!reply.ok) throw new Error(`Patroni refuses to switch over: ${await reply.text()}`);
  }

  async kill(member: Member): Promise<void> {
    // First Patroni: it would start the server again.
    this.#processes.kill(member);
    const pids = await this.#serverPids(member);
    for (const pid of pids) killProcess(pid);
  }

  async close(): Promise<void> {
    for (const member of members) await this.kill(member);
    await this.#processes.close();
  }

  /** Asks any member that answers. */
  async #members(): Promise<z.infer<typeof patroniReply>['members']> {
    const asked = members.map(async (member) => {
      const reply = await fetch(`http://${this.#addressOf(member)}:8008/cluster`);
      return patroniReply.parse(await reply.json()).members;
    });
    return Promise.any(asked);
  }

  /** Returns the server of a member and its processes; none when it does not run. */
  async #serverPids(member: Member): Promise<number[]> {
    const file = await readFile(join(this.#dataOf(member), 'postmaster.pid'), 'utf8').catch(() => '');
    const pid = Number(file.split('\n')[0]);
    if (!(pid > 1)) return [];
    const below = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => undefined);
    return below === undefined ? [] : [pid, ...below.trim().split(' ').filter(Boolean).map(Number)];
  }

  #addressOf(member: Member): string {
    return `${this.#network}.${members.indexOf(member) + 1}`;
  }

  #dataOf(member: Member): string {
    return join(this.#folder, member);
  }
}
