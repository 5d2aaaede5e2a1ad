import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/**
 * Machines of the cluster. The first two run PostgreSQL under Patroni. Each of the three may run
 * etcd.
 */
export const machines = ['db1', 'db2', 'db3'] as const;
export type Machine = (typeof machines)[number];

/** Addresses of the machines of a cluster. */
export interface ClusterNetwork {
  /** Address of HAProxy and of this process. */
  proxy: string;
  addressOf(machine: Machine): string;
  /**
   * Machines that run etcd. A single etcd is enough if all machines run on one host and fail
   * together. It also avoids delayed elections on a busy host.
   */
  etcdOn: readonly Machine[];
  /**
   * Returns the network namespace in which the programs of a machine run. Undefined is the
   * namespace of this process.
   */
  namespaceOf(machine: Machine): string | undefined;
  close(): Promise<void>;
}

/**
 * Returns a loopback network that nothing else uses. Every machine gets its own address, so all
 * machines can use the default ports.
 */
export function loopbackNetwork(): ClusterNetwork {
  const prefix = `127.${randomInt(16, 255)}.${randomInt(1, 255)}`;
  return {
    proxy: `${prefix}.9`,
    addressOf: (machine) => `${prefix}.${machines.indexOf(machine) + 1}`,
    etcdOn: ['db1'],
    namespaceOf: () => undefined,
    close: async () => undefined,
  };
}

/** Hardware address that no machine uses. */
const unusedAddress = '02:00:00:00:00:fe';

/**
 * Network whose machines are network namespaces connected by a bridge. A machine can be cut off
 * from the others.
 */
export class PartitionableNetwork implements ClusterNetwork {
  readonly etcdOn = machines;
  readonly #id = `ch${randomBytes(2).toString('hex')}`;
  readonly #prefix = `10.${randomInt(16, 255)}.${randomInt(1, 255)}`;

  private constructor() {
    // Private: `open` creates the network together with its namespaces.
  }

  /** Creates the namespaces. Needs root. Throws the error of `ip`. */
  static async open(): Promise<PartitionableNetwork> {
    const network = new PartitionableNetwork();
    try {
      await network.#create();
    } catch (error) {
      await network.close();
      throw error;
    }
    return network;
  }

  get proxy(): string {
    return `${this.#prefix}.9`;
  }

  addressOf(machine: Machine): string {
    return `${this.#prefix}.${machines.indexOf(machine) + 1}`;
  }

  namespaceOf(machine: Machine): string {
    return `${this.#id}-${machine}`;
  }

  /**
   * Drops all packets between a machine and the other machines. This process and HAProxy still
   * reach it.
   */
  async cutOff(machine: Machine): Promise<void> {
    for (const [from, to] of directionsOf(machine))
      await ip(
        `-n ${this.namespaceOf(from)} neigh replace ${this.addressOf(to)} lladdr ${unusedAddress} dev eth0 nud permanent`,
      );
  }

  /** Undoes `cutOff`. */
  async rejoin(machine: Machine): Promise<void> {
    for (const [from, to] of directionsOf(machine))
      await ip(`-n ${this.namespaceOf(from)} neigh delete ${this.addressOf(to)} dev eth0`);
  }

  async close(): Promise<void> {
    for (const namespace of [this.#bridge, ...machines.map((machine) => this.namespaceOf(machine))])
      await ip(`netns delete ${namespace}`).catch(() => undefined);
  }

  /** Namespace of the bridge. The host's firewall rules for bridges do not apply in it. */
  get #bridge(): string {
    return `${this.#id}-bridge`;
  }

  async #create(): Promise<void> {
    const [id, bridge] = [this.#id, this.#bridge];
    await ip(`netns add ${bridge}`);
    await ip(`-n ${bridge} link add bridge type bridge`);
    await ip(`-n ${bridge} link set bridge up`);
    await ip(`link add ${id} type veth peer name ${id} netns ${bridge}`);
    await ip(`-n ${bridge} link set ${id} master bridge up`);
    await ip(`address add ${this.proxy}/24 dev ${id}`);
    await ip(`link set ${id} up`);
    for (const machine of machines) {
      const namespace = this.namespaceOf(machine);
      await ip(`netns add ${namespace}`);
      await ip(`-n ${namespace} link set lo up`);
      await ip(`-n ${namespace} link add eth0 type veth peer name ${namespace} netns ${bridge}`);
      await ip(`-n ${bridge} link set ${namespace} master bridge up`);
      await ip(`-n ${namespace} address add ${this.addressOf(machine)}/24 dev eth0`);
      await ip(`-n ${namespace} link set eth0 up`);
    }
  }
}

/** Returns both directions of the connections between a machine and the other machines. */
function directionsOf(machine: Machine): [from: Machine, to: Machine][] {
  const others = machines.filter((other) => other !== machine);
  return others.flatMap((other): [Machine, Machine][] => [
    [machine, other],
    [other, machine],
  ]);
}

async function ip(command: string): Promise<void> {
  await execute('ip', command.split(' '));
}
