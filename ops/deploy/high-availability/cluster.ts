import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { z } from 'zod';
import { killProcess, newestPostgres, Processes, until } from '../processes.ts';
import { type ClusterNetwork, type Machine, machines } from './network.ts';

/** Paths of the programs by Debian package. The programs of `postgresql` are outside PATH. */
const programs = {
  etcd: '/usr/bin/etcd',
  patroni: '/usr/bin/patroni',
  haproxy: '/usr/sbin/haproxy',
  postgresql: join(newestPostgres(), 'postgres'),
};

/** Returns the missing programs and all other reasons why a cluster cannot run on this machine. */
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
export type Member = (typeof members)[number];

const patroniReply = z.object({
  members: z.array(z.object({ name: z.enum(members), role: z.string(), state: z.string() })),
});

/** Two PostgreSQL servers under Patroni, with etcd and HAProxy, on the machines of a network. */
export interface Cluster {
  /** Connects through HAProxy to the primary. `readUrl` connects to the standby. */
  databaseUrl: string;
  readUrl: string;
  primary(): Promise<Member>;
  /** True if a machine considers itself the primary. */
  isPrimary(member: Member): Promise<boolean>;
  /** Kills Patroni and all PostgreSQL processes on a machine, like a power failure. */
  kill(member: Member): Promise<void>;
  /** Performs a planned switchover. The old primary becomes the standby. */
  switchOver(): Promise<void>;
  /** Starts a killed machine again. */
  start(member: Member): Promise<void>;
  /** Resolves when one member leads and the other member is its synchronous standby. */
  untilReplicated(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts the cluster as an unprivileged user, with the files of this folder. The data is stored in
 * `folder`.
 */
export async function startCluster(folder: string, network: ClusterNetwork): Promise<Cluster> {
  const servers = new Servers(folder, network);
  try {
    await servers.prepare();
    await servers.startEtcd();
    await Promise.all(members.map((member) => servers.start(member)));
    await servers.startHaproxy();
    await servers.untilReplicated();
    await servers.createDatabase();
    return servers;
  } catch (error) {
    await servers.close();
    throw error;
  }
}

/** Processes of the cluster. */
class Servers implements Cluster {
  databaseUrl = '';
  readUrl = '';
  readonly #folder: string;
  readonly #network: ClusterNetwork;
  readonly #passwords = {
    superuser: randomBytes(12).toString('hex'),
    replication: randomBytes(12).toString('hex'),
  };
  readonly #processes: Processes;

  constructor(folder: string, network: ClusterNetwork) {
    this.#folder = folder;
    this.#network = network;
    this.#processes = new Processes(folder);
  }

  async prepare(): Promise<void> {
    await this.#processes.makeFolder();
    // Copies the files, because the servers' user may not be able to enter the project folder.
    for (const file of files)
      await copyFile(join(import.meta.dirname, file), join(this.#folder, file));
  }

  async startEtcd(): Promise<void> {
    const urlOf = (machine: Machine, port: number) =>
      `http://${this.#network.addressOf(machine)}:${port}`;
    const { etcdOn } = this.#network;
    const peers = etcdOn.map((machine) => `${machine}=${urlOf(machine, 2380)}`).join(',');
    for (const machine of etcdOn) {
      const [peer, client] = [urlOf(machine, 2380), urlOf(machine, 2379)];
      const variables = {
        ETCD_NAME: machine,
        ETCD_DATA_DIR: join(this.#folder, `etcd-${machine}-data`),
        ETCD_LISTEN_PEER_URLS: peer,
        ETCD_LISTEN_CLIENT_URLS: client,
        ETCD_INITIAL_ADVERTISE_PEER_URLS: peer,
        ETCD_ADVERTISE_CLIENT_URLS: client,
        ETCD_INITIAL_CLUSTER: peers,
      };
      await this.#run(machine, `etcd-${machine}`, { command: [programs.etcd], variables });
    }
    for (const machine of etcdOn)
      await until(
        `etcd on ${machine}`,
        async () => (await fetch(`${urlOf(machine, 2379)}/health`)).ok,
      );
  }

  /** Starts a program on a machine. */
  async #run(
    machine: Machine,
    name: string,
    { command, variables }: { command: string[]; variables: Record<string, string> },
  ): Promise<void> {
    const namespace = this.#network.namespaceOf(machine);
    await this.#processes.run(name, command, {
      variables,
      ...(namespace === undefined ? {} : { namespace }),
    });
  }

  async start(member: Member): Promise<void> {
    const address = this.#network.addressOf(member);
    const variables = {
      PATRONI_NAME: member,
      PATRONI_ETCD3_HOSTS: this.#network.etcdOn
        .map((machine) => `${this.#network.addressOf(machine)}:2379`)
        .join(','),
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
    };
    await this.#run(member, member, { command: [programs.patroni, 'patroni.yml'], variables });
  }

  async startHaproxy(): Promise<void> {
    // The third machine has no PostgreSQL, so HAProxy never connects to it.
    const addresses = machines.map((machine) => [
      machine.toUpperCase(),
      this.#network.addressOf(machine),
    ]);
    const variables = { HAPROXY_ADDRESS: this.#network.proxy, ...Object.fromEntries(addresses) };
    await this.#processes.run('haproxy', [programs.haproxy, '-db', '-f', 'haproxy.cfg'], {
      variables,
    });
  }

  /** Creates Carillon's role and database. */
  async createDatabase(): Promise<void> {
    const password = randomBytes(12).toString('hex');
    const url = `postgresql://postgres:${this.#passwords.superuser}@${this.#network.proxy}:5000/postgres`;
    await until('the primary behind HAProxy', async () => {
      const client = new Client({ connectionString: url });
      client.on('error', () => undefined);
      await client.connect();
      try {
        await client.query(`CREATE ROLE carillon LOGIN PASSWORD '${password}'`);
        // Needed only for creating the benchmark's data.
        await client.query('GRANT pg_checkpoint TO carillon');
        await client.query('CREATE DATABASE carillon OWNER carillon');
        return true;
      } finally {
        await client.end();
      }
    });
    const urlOf = (port: number) =>
      `postgresql://carillon:${password}@${this.#network.proxy}:${port}/carillon`;
    this.databaseUrl = urlOf(5000);
    this.readUrl = urlOf(5001);
  }

  async primary(): Promise<Member> {
    for (const { name, role } of await this.#members()) if (role === 'leader') return name;
    throw new Error('no member leads');
  }

  /** Queries the machine itself, as HAProxy does. */
  async isPrimary(member: Member): Promise<boolean> {
    const url = `http://${this.#network.addressOf(member)}:8008/primary`;
    return (await fetch(url, { method: 'OPTIONS' })).ok;
  }

  async untilReplicated(): Promise<void> {
    await until('a primary with a synchronous standby', async () => {
      const found = await this.#members();
      const roles = found.filter(({ state }) => state === 'running').map(({ role }) => role);
      return roles.includes('leader') && roles.includes('sync_standby');
    });
  }

  async switchOver(): Promise<void> {
    // A machine that rejoined may lose its standby once more, so the switchover is retried.
    await until('switch', async () => {
      const leader = await this.primary();
      const url = `http://${this.#network.addressOf(leader)}:8008/switchover`;
      const reply = await fetch(url, { method: 'POST', body: JSON.stringify({ leader }) });
      if (!reply.ok) throw new Error(`Patroni refuses to switch over: ${await reply.text()}`);
      return true;
    });
  }

  async kill(member: Member): Promise<void> {
    // Patroni is killed first, because it would restart the server.
    this.#processes.kill(member);
    const pids = await this.#serverPids(member);
    for (const pid of pids) killProcess(pid);
  }

  async close(): Promise<void> {
    for (const member of members) await this.kill(member);
    await this.#processes.close();
  }

  /** Queries all members. Uses the first reply. */
  async #members(): Promise<z.infer<typeof patroniReply>['members']> {
    const replies = members.map(async (member) => {
      const reply = await fetch(`http://${this.#network.addressOf(member)}:8008/cluster`);
      return patroniReply.parse(await reply.json()).members;
    });
    return Promise.any(replies);
  }

  /**
   * Returns the process ids of a member's server. Returns an empty list if the server does not run.
   */
  async #serverPids(member: Member): Promise<number[]> {
    const file = await readFile(join(this.#dataOf(member), 'postmaster.pid'), 'utf8').catch(
      () => '',
    );
    const pid = Number(file.split('\n')[0]);
    if (!(pid > 1)) return [];
    const below = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(
      () => undefined,
    );
    return below === undefined ? [] : [pid, ...below.trim().split(' ').filter(Boolean).map(Number)];
  }

  #dataOf(member: Member): string {
    return join(this.#folder, member);
  }
}
