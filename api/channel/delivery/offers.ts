import { setImmediate } from 'node:timers/promises';
import type { MessageGroup } from '../../../shared/db/tables/channel/groups.ts';
import type { DeviceMessage } from '../../../shared/db/tables/channel/inbox.ts';
import type { Connection } from '../connection.ts';
import type { Offer } from '../connection-state.ts';

/**
 * Messages that devices are offered together. Devices with the same messages of the same groups share the node, and so
 * the offer and its frame.
 */
class OfferNode {
  readonly offer: Offer;
  readonly #next = new Map<number, OfferNode>();

  constructor(offer: Offer) {
    this.offer = offer;
  }

  /** Returns the node with one message more. */
  and(message: DeviceMessage, groupId: number): OfferNode {
    const known = this.#next.get(groupId);
    if (known) return known;
    const { messages, groupIds } = this.offer;
    const next = new OfferNode({ messages: [...messages, message], groupIds: [...groupIds, groupId] });
    this.#next.set(groupId, next);
    return next;
  }
}

/** Devices that are offered messages in one turn of the event loop. */
const devicesPerTurn = 256;

/** Messages of several groups for the devices of an app: a device gets those for it in one frame. */
export class Offers {
  readonly #devices: ReadonlyMap<number, Connection>;
  readonly #root = new OfferNode({ messages: [], groupIds: [] });
  readonly #nodes = new Map<Connection, OfferNode>();

  constructor(devices: ReadonlyMap<number, Connection>) {
    this.#devices = devices;
  }

  add({ id, pending }: MessageGroup, message: DeviceMessage): void {
    for (const installation of pending) {
      const connection = this.#devices.get(installation);
      if (!connection) continue;
      const node = this.#nodes.get(connection) ?? this.#root;
      this.#nodes.set(connection, node.and(message, id));
    }
  }

  /** Offers everything. Pauses after some milliseconds of work, so that no other request waits for all devices. */
  async send(): Promise<void> {
    let offered = 0;
    for (const [connection, { offer }] of this.#nodes) {
      connection.offer(offer);
      offered += 1;
      if (offered % devicesPerTurn === 0) await setImmediate();
    }
  }
}
