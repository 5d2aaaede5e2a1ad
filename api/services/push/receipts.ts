import type { Receipt, ReceiptCall } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { isDeadlock } from '../../../shared/db/pool.ts';
import {
  clearInvalidTokens,
  deleteReportedInvalid,
  recordInvalidTokens,
} from '../../../shared/db/tables/installations/invalid-notices.ts';
import {
  addReceiptTotals,
  type DeviceReceipt,
  findByRegistrationIds,
  lockPushes,
  markReceipts,
  type ReceiptPush,
  type ReceiptSource,
} from '../../../shared/db/tables/pushes/receipts.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { type ConnectorId, isConnectorId } from '../../../shared/domain/labels.ts';
import { FairQueue, QueueFull } from '../../../shared/fairness/fair-queue.ts';
import { isCallbackSecret } from '../../../shared/http/callback-url.ts';
import type { ApiDeps } from '../deps.ts';

/** The parts of an address that was handed to a gateway. */
export interface CallbackPath {
  connector: string;
  appId: string;
  secret: string;
}

/** More receipts than any gateway puts into a call; the database is asked for all of a call at once. */
const maxReceipts = 20_000;
/** Transactions at a time in this process, and those of one app that may wait for their turn. */
const atOnce = 4;
const maxWaiting = 50;
/** Calls that wait share a transaction up to so many receipts: some gateways tell of one device in each. */
const maxReceiptsTogether = 2000;
/** Registration ids and public ids as they can be stored. */
const maxTokenLength = 1024;
const publicId = /^[A-Za-z0-9]{16}$/;
/** No gateway knows a time beyond. */
const lastMs = 8.64e15;

interface Waiting {
  receipts: Receipt[];
  written: Promise<void>;
}

/** Delivery receipts of gateways: counted on the push record, and dead tokens retired. */
export class ReceiptService {
  readonly #deps: ApiDeps;
  readonly #queue = new FairQueue({ atOnce, maxWaiting });
  /** By app and connector, the transaction that later calls can still join. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Throws the 404 of an address that does not exist, whatever is wrong with it: connector, app or secret. */
  async authenticate(address: CallbackPath): Promise<void> {
    await this.#owner(address);
  }

  /**
   * Takes a call of a gateway; gives the reply that it expects. Throws 400 or 401 for what is no receipt of this
   * gateway, 413 for more than it could send, 429 while too many calls of the app wait.
   */
  async take(address: CallbackPath, call: ReceiptCall): Promise<JsonObject> {
    const { owner, read } = await this.#owner(address);
    const profiles = await this.#deps.appCache.profiles(owner.appId);
    const credentials = profiles
      .filter((profile) => profile.connector === owner.connector)
      .map((profile) => profile.credentials);
    const reading = read(call, credentials);
    if (!reading.ok)
      throw refuse(reading.status === 401 ? 'unauthorized' : 'invalidParameter', toSentence(reading.error));
    const { receipts, reply = {} } = reading;
    if (receipts.length > maxReceipts) throw new Refusal('payloadTooLarge');
    for (const { event } of receipts) this.#deps.metrics.receipts.inc({ connector: owner.connector, event });
    await this.#writeInTurn(owner, receipts.filter(isMatchable));
    return reply;
  }

  /** The secret first: only who knows it learns whether the app is still there, and the database is asked for nobody else. */
  async #owner({ connector, appId, secret }: CallbackPath) {
    const read = isConnectorId(connector) ? connectors.get(connector)?.receipts : undefined;
    const isKnown = isCallbackSecret(this.#deps.vault, { connector, appId }, secret);
    if (!isKnown || !isConnectorId(connector) || !read) throw refuse('notFound');
    if (!(await this.#deps.appCache.app(appId))) throw refuse('notFound');
    return { owner: { appId, connector } satisfies { appId: string; connector: ConnectorId }, read };
  }

  async #writeInTurn(owner: ReceiptSource, receipts: Receipt[]): Promise<void> {
    if (receipts.length === 0) return;
    try {
      await this.#joinOrBegin(owner, receipts);
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      throw new Refusal('tooManyRequests', { retryAfterSeconds: 1 });
    }
  }

  #joinOrBegin(owner: ReceiptSource, receipts: Receipt[]): Promise<void> {
    const key = `${owner.connector} ${owner.appId}`;
    const waiting = this.#waiting.get(key);
    if (waiting && waiting.receipts.length + receipts.length <= maxReceiptsTogether) {
      waiting.receipts.push(...receipts);
      return waiting.written;
    }
    const close = () => {
      if (this.#waiting.get(key)?.receipts === receipts) this.#waiting.delete(key);
    };
    let isBegun = false;
    const written = this.#queue.run(owner.appId, () => {
      isBegun = true;
      close();
      return this.#write(owner, receipts);
    });
    // Where nothing is under way it began at once, and nobody can join any more.
    if (!isBegun) this.#waiting.set(key, { receipts, written });
    written.catch(close);
    return written;
  }

  /** Whoever is ended because two calls waited for each other goes again: nothing of it was kept. */
  async #write(owner: ReceiptSource, receipts: Receipt[]): Promise<void> {
    try {
      await this.#writeOnce(owner, receipts);
    } catch (error) {
      if (!isDeadlock(error)) throw error;
      await this.#writeOnce(owner, receipts);
    }
  }

  /** One transaction for all receipts. */
  #writeOnce(owner: ReceiptSource, receipts: Receipt[]): Promise<void> {
    return this.#deps.db.transaction(async (tx) => {
      const ids = new Set(receipts.map(({ objectId }) => objectId ?? ''));
      const held = await lockPushes(tx, owner.appId, [...ids]);
      const pushes = new Map(held.map((push) => [push.objectId, push]));
      const known = receipts.filter(({ objectId }) => pushes.has(objectId ?? ''));
      if (known.length === 0) return;
      const installations = await findByRegistrationIds(tx, owner, [
        ...new Set(known.map(({ deviceToken }) => deviceToken)),
      ]);
      const marks = deliveryMarks(known, pushes, installations);
      const added = await markReceipts(tx, owner, marks);
      await addReceiptTotals(tx, owner, added);
      // A repeat is no sign of life.
      if (added.size > 0)
        await clearInvalidTokens(tx, owner.appId, [
          ...new Set(marks.map(({ installation }) => installation)),
        ]);
      const notices = deadNotices(known, pushes);
      await recordInvalidTokens(tx, owner, notices);
      await deleteReportedInvalid(tx, owner, [
        ...new Set([...added.keys(), ...notices.map(({ pushId }) => pushId)]),
      ]);
    });
  }
}

/** What can be looked up: of a push of ours, and an address that the database can hold. */
const isMatchable = ({ deviceToken, event, objectId }: Receipt): boolean =>
  objectId !== null &&
  publicId.test(objectId) &&
  deviceToken.length <= maxTokenLength &&
  !deviceToken.includes('\0') &&
  (event === 'delivered' || event === 'clicked' || event === 'dead_token');

/** Each device and push once. What was opened has arrived, also where the gateway tells only of the opening. */
function deliveryMarks(
  receipts: readonly Receipt[],
  pushes: ReadonlyMap<string, ReceiptPush>,
  installations: ReadonlyMap<string, number>,
): DeviceReceipt[] {
  const marks = new Map<string, DeviceReceipt>();
  for (const { deviceToken, event, objectId } of receipts) {
    const push = pushes.get(objectId ?? '');
    const installation = installations.get(deviceToken);
    if (event === 'dead_token' || push === undefined || installation === undefined) continue;
    const key = `${push.id} ${installation}`;
    const isClicked = event === 'clicked' || marks.get(key)?.isClicked === true;
    marks.set(key, { pushId: push.id, installation, isClicked });
  }
  return [...marks.values()];
}

/**
 * Whom the gateway calls dead, as of the time when the push began to be sent, or when the gateway found it if that was
 * before: an installation that was saved later has shown itself alive.
 */
function deadNotices(receipts: readonly Receipt[], pushes: ReadonlyMap<string, ReceiptPush>) {
  return receipts.flatMap(({ deviceToken, atMs, event, needsConfirmation, objectId }) => {
    const push = pushes.get(objectId ?? '');
    if (event !== 'dead_token' || push === undefined) return [];
    const asOf = new Date(Math.min(push.sentAt.getTime(), atMs ?? lastMs));
    return [{ pushId: push.id, registrationId: deviceToken, asOf, isSure: needsConfirmation !== true }];
  });
}

const toSentence = (sentence: string): string => `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}.`;
