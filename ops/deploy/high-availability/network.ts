import { execFile } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Machines of the cluster: the first two have PostgreSQL under Patroni, and each may have etcd. */
export const machines = ['db1', 'db2', 'db3'] as const;
export type Machine = (typeof machines)[number];

/** Addresses of the machines of a cluster. */
export interface ClusterNetwork {
  /** Address of HAProxy and of this process. */
  proxy: string;
  addressOf(machine: Machine): string;
  /**
   * Machines with etcd. One is enough where all of them are lost together, and a busy machine
   * delays no elections of it.
   */
  etcdOn: readonly Machine[];
  /**
   * Returns the network namespace in which the programs of a machine run; undefined: that of this
   * process.
   */
  namespaceOf(machine: Machine): string | undefined;
  close(): Promise<void>;
}

/**
 * Returns a network of the loopback device that nothing else uses, so that every machine has the
 * usual ports.
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

/** Hardware address that no machine has. */
const nobody = '02:00:00:00:00:fe';

/**
 * Network whose machines are network namespaces, joined by a bridge, so that one can be cut off
 * from the others.
 */
export class PartedNetwork implements ClusterNetwork {
  readonly etcdOn = machines;
  readonly #id = `ch${randomBytes(2).toString('hex')}`;
  readonly #prefix = `10.${randomInt(16, 255)}.${randomInt(1, 255)}`;

  private constructor() {
    // Only `open` creates the namespaces.
  }

  /** Creates the namespaces, as root. Throws the error of `ip`. */
  static async open(): Promise<PartedNetwork> {
    const network = new PartedNetwork();
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
   * Loses all packets between a machine and the other ones. This process and HAProxy still reach
   * it.
   */
  async cutOff(machine: Machine): Promise<void> {
    for (const [from, to] of waysOf(machine))
      await ip(
        `-n ${this.namespaceOf(from)} neigh replace ${this.addressOf(to)} lladdr ${nobody} dev eth0 nud permanent`,
      );
  }

  /** Ends `cutOff`. */
  async rejoin(machine: Machine): Promise<void> {
    for (const [from, to] of waysOf(machine))
      await ip(`-n ${this.namespaceOf(from)} neigh delete ${this.addressOf(to)} dev eth0`);
  }

  async close(): Promise<void> {
    for (const namespace of [this.#bridge, ...machines.map((machine) => this.namespaceOf(machine))])
      await ip(`netns delete ${namespace}`).catch(() => undefined);
  }

  /** Namespace of the bridge: rules of this machine for bridges do not count there. */
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

/** Returns both directions between a machine and each other one. */
function waysOf(machine: Machine): [from: Machine, to: Machine][] {
  const others = machines.filter((other) => other !== machine);
  return others.flatMap((other): [Machine, Machine][] => [
    [machine, other],
    [other, machine],
  ]);
}

async function ip(command: string): Promise<void> {
  await execute('ip', command.split(' '));
}
