import { z } from 'zod';
import type {
  Receipt,
  ReceiptCall,
  ReceiptsResult,
} from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import { Batcher } from '../../../shared/batcher.ts';
import { openOrUndefined, sha256 } from '../../../shared/crypto.ts';
import { againAfterDeadlock } from '../../../shared/db/limits/database-errors.ts';
import {
  clearInvalidTokens,
  deleteReportedInvalid,
  recordInvalidTokens,
} from '../../../shared/db/tables/invalid-tokens.ts';
import {
  countReceipts,
  type DeviceReceipt,
  deleteFailedReceipts,
  findByRegistrationIds,
  keepFailedReceipt,
  listFailedReceipts,
  lockPushes,
  type NewReceipt,
  type ReceiptPush,
  type ReceiptSource,
  readFailedReceipts,
  type SealedCall,
} from '../../../shared/db/tables/receipts.ts';
import { inParts } from '../../../shared/db/webhook-events.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import { Refusal, refuse } from '../../../shared/domain/errors/errors.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { isConnectorId } from '../../../shared/domain/labels.ts';
import { generationOfSecret } from '../../../shared/http/outbound-addresses.ts';
import { QueueFull } from '../../../shared/semaphore.ts';
import type { ApiDeps } from '../deps.ts';
import { requireApp } from '../operator/apps.ts';
import { recordChange } from '../operator/audit/audit.ts';
import { type PageRequest, toPage } from '../operator/lists/page.ts';

/** Parameters of the callback URL that a gateway calls. */
interface CallbackPath {
  connector: string;
  appId: string;
  secret: string;
}

/**
 * Maximum number of receipts in a call. One query searches for all of them. No gateway sends as
 * many.
 */
const maxReceipts = 20_000;
/**
 * Limits of batches. `size` is the number of receipts from waiting calls that share a transaction,
 * because some gateways send one receipt per call. `concurrency` is the number of concurrent
 * batches. `maxWaiting` is the number of receipts of one app that may wait.
 */
const batchLimits = { size: 2000, concurrency: 4, maxWaiting: 100_000 };
/** Maximum length of a stored registration id. */
const maxTokenLength = 1024;
const objectIdPattern = /^[A-Za-z0-9]{16}$/;
/** Maximum time of a `Date`. */
const maxTimeMs = 8.64e15;

/** Receipts of one call. */
interface CallReceipts {
  source: ReceiptSource;
  receipts: Receipt[];
}

/**
 * Counts delivery receipts of gateways on the push record, and deletes installations with invalid
 * tokens.
 */
export class ReceiptService {
  readonly #deps: ApiDeps;
  /** Resolves with the error of a call, or undefined if the call succeeded. */
  readonly #batcher: Batcher<CallReceipts, unknown>;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
    this.#batcher = new Batcher({
      ...batchLimits,
      fairBy: ({ source }) => source.appId,
      isApart: () => true,
      weightOf: ({ receipts }) => receipts.length,
      run: (calls) => this.#write(calls),
    });
  }

  /**
   * Throws error 404 if the connector, the app or the secret is wrong. The error does not say which
   * of them is wrong.
   */
  async authenticate(path: CallbackPath): Promise<void> {
    await this.#source(path);
  }

  /**
   * Records the receipts of a call and returns the reply that the gateway expects. Throws error 400
   * or 401 if the call is not a receipt of this gateway, error 413 if it has too many receipts,
   * error 429 if too many calls of the app wait.
   */
  async record(path: CallbackPath, call: ReceiptCall): Promise<JsonObject> {
    const source = await this.#source(path);
    const result = await this.read(source, call);
    if (!result.ok) {
      await keepRefusedCall(this.#deps, source, call, result);
      throw refuse(
        result.status === 401 ? 'unauthorized' : 'invalidParameter',
        toErrorText(result.error),
      );
    }
    const { receipts, reply = {} } = result;
    await this.take(source, receipts);
    return reply;
  }

  /** Parses a call with the current credentials. */
  async read({ appId, connector }: ReceiptSource, call: ReceiptCall): Promise<ReceiptsResult> {
    const profiles = await this.#deps.appCache.profiles(appId);
    const credentials = profiles
      .filter((profile) => profile.connector === connector)
      .map((profile) => profile.credentials);
    const read = connectors.get(connector)?.receipts;
    return (
      read?.(call, credentials) ?? {
        ok: false,
        status: 400,
        error: 'this gateway sends no receipts',
      }
    );
  }

  /**
   * Records receipts. Throws error 413 if there are too many, error 429 if too many calls of the
   * app wait.
   */
  async take(source: ReceiptSource, receipts: Receipt[]): Promise<void> {
    if (receipts.length > maxReceipts) throw new Refusal('payloadTooLarge');
    for (const { event } of receipts)
      this.#deps.metrics.receipts.inc({ connector: source.connector, event });
    await this.#writeQueued(source, receipts.filter(isMatchable));
  }

  /**
   * Returns the source of a call. Checks the secret before the app, so that a caller without it
   * causes no query and cannot find out whether the app exists.
   */
  async #source({ connector, appId, secret }: CallbackPath): Promise<ReceiptSource> {
    const read = isConnectorId(connector) ? connectors.get(connector)?.receipts : undefined;
    const generation = generationOfSecret(this.#deps.vault, { connector, appId }, secret);
    if (generation === undefined || !isConnectorId(connector) || !read) throw refuse('notFound');
    const app = await this.#deps.appCache.app(appId);
    if (app?.options.receiptUrlGeneration !== generation) throw refuse('notFound');
    return { appId, connector };
  }

  async #writeQueued(source: ReceiptSource, receipts: Receipt[]): Promise<void> {
    if (receipts.length === 0) return;
    try {
      const failure = await this.#batcher.run({ source, receipts });
      if (failure !== undefined) throw failure;
    } catch (error) {
      if (!(error instanceof QueueFull)) throw error;
      throw new Refusal('tooManyRequests', { retryAfterSeconds: 1 });
    }
  }

  /**
   * Writes each source in its own transaction. Returns for each call its error, or undefined if it
   * succeeded.
   */
  async #write(calls: CallReceipts[]): Promise<unknown[]> {
    const failures = new Map<CallReceipts, unknown>();
    for (const ofSource of Map.groupBy(calls, ({ source }) => source.connector).values()) {
      try {
        await this.#writeSource(ofSource);
      } catch (error) {
        for (const call of ofSource) failures.set(call, error);
      }
    }
    return calls.map((call) => failures.get(call));
  }

  /** Writes the receipts of a source. */
  async #writeSource(calls: CallReceipts[]): Promise<void> {
    const [first] = calls;
    if (!first) return;
    const receipts = calls.flatMap((call) => call.receipts);
    await againAfterDeadlock(() => this.#writeOnce(first.source, receipts));
  }

  #writeOnce(source: ReceiptSource, receipts: Receipt[]): Promise<void> {
    return this.#deps.db.transaction(async (tx) => {
      const ids = new Set(receipts.map(({ objectId }) => objectId ?? ''));
      const locked = await lockPushes(tx, source.appId, [...ids]);
      const pushes = new Map(locked.map((push) => [push.objectId, push]));
      const matched = receipts.filter(({ objectId }) => pushes.has(objectId ?? ''));
      if (matched.length === 0) return;
      const installations = await findByRegistrationIds(tx, source, [
        ...new Set(matched.map(({ deviceToken }) => deviceToken)),
      ]);
      const deliveries = deliveriesOf(matched, pushes, installations);
      const isListed = await this.#deps.webhooks.isWanted(tx, source.appId, 'recipients.receipt');
      const { pushIds, fresh } = await countReceipts(tx, source, deliveries, { isListed });
      await this.#deps.webhooks.emit(tx, ...receiptEvents(source, locked, fresh));
      // A new receipt shows that the device is active. A repeated receipt does not.
      if (pushIds.length > 0)
        await clearInvalidTokens(tx, source.appId, [
          ...new Set(deliveries.map(({ installation }) => installation)),
        ]);
      const notices = invalidTokenNotices(matched, pushes);
      await recordInvalidTokens(tx, source, notices);
      const deleted = await deleteReportedInvalid(tx, source, [
        ...new Set([...pushIds, ...notices.map(({ pushId }) => pushId)]),
      ]);
      const objectIds = new Map(locked.map(({ id, objectId }) => [id, objectId]));
      for (const [pushId, devices] of deleted)
        await this.#deps.webhooks.emitInvalid(tx, {
          appId: source.appId,
          push: objectIds.get(pushId) ?? '',
          devices,
        });
    });
  }
}

/**
 * Returns whether a receipt can be matched: it names a push of this service, and a token that the
 * database can store.
 */
const isMatchable = ({ deviceToken, event, objectId }: Receipt): boolean =>
  objectId !== null &&
  objectIdPattern.test(objectId) &&
  deviceToken.length <= maxTokenLength &&
  !deviceToken.includes('\0') &&
  (event === 'delivered' || event === 'clicked' || event === 'dead_token');

/**
 * Returns one delivery mark for each device and push. A clicked push counts as delivered, even
 * without a receipt of its delivery.
 */
function deliveriesOf(
  receipts: readonly Receipt[],
  pushes: ReadonlyMap<string, ReceiptPush>,
  installations: ReadonlyMap<string, number>,
): DeviceReceipt[] {
  const deliveries = new Map<string, DeviceReceipt>();
  for (const { deviceToken, event, objectId } of receipts) {
    const push = pushes.get(objectId ?? '');
    const installation = installations.get(deviceToken);
    if (event === 'dead_token' || push === undefined || installation === undefined) continue;
    const key = `${push.id} ${installation}`;
    const isClicked = event === 'clicked' || deliveries.get(key)?.isClicked === true;
    deliveries.set(key, {
      pushId: push.id,
      installation,
      isDelivered: true,
      isClicked,
      isDismissed: false,
    });
  }
  return [...deliveries.values()];
}

/** Returns the events of receipts that were not counted before. */
function receiptEvents(
  { appId, connector }: ReceiptSource,
  pushes: readonly ReceiptPush[],
  fresh: readonly NewReceipt[],
) {
  const byPush = Map.groupBy(fresh, ({ pushId }) => pushId);
  return pushes.flatMap(({ id, objectId: push }) => {
    const recipients = (byPush.get(id) ?? []).flatMap(
      ({ objectId: installation, isDelivered, isClicked }) => [
        ...(isDelivered ? [{ installation, type: 'delivered' as const }] : []),
        ...(isClicked ? [{ installation, type: 'clicked' as const }] : []),
      ],
    );
    return inParts(recipients).map((part) => ({
      appId,
      type: 'recipients.receipt' as const,
      data: { push, connector, recipients: part },
    }));
  });
}

/**
 * Returns the tokens that the gateway reports as invalid. `asOf` is the start of the push or the
 * gateway's time, whichever is earlier. An installation that was saved after this time is still
 * valid.
 */
function invalidTokenNotices(
  receipts: readonly Receipt[],
  pushes: ReadonlyMap<string, ReceiptPush>,
) {
  return receipts.flatMap(({ deviceToken, atMs, event, needsConfirmation, objectId }) => {
    const push = pushes.get(objectId ?? '');
    if (event !== 'dead_token' || push === undefined) return [];
    const asOf = new Date(Math.min(push.sentAt.getTime(), atMs ?? maxTimeMs));
    return [
      { pushId: push.id, registrationId: deviceToken, asOf, isSure: needsConfirmation !== true },
    ];
  });
}

const toErrorText = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;

/** Maximum number of refused calls that one call parses again. */
const maxCalls = 50;

/** Selection of refused calls, and the cursor from the previous call. */
interface ReceiptRedrive {
  connector?: string | undefined;
  cursor?: number | undefined;
}

/** Receipts of gateways that could not be processed (protocol/admin-api.md#failed-receipts). */
export class FailedReceiptService {
  readonly #deps: ApiDeps;
  readonly #receipts: ReceiptService;

  constructor(deps: ApiDeps, receipts: ReceiptService) {
    this.#deps = deps;
    this.#receipts = receipts;
  }

  /**
   * Lists refused calls, newest first, without their content. Throws error 404 if the app does not
   * exist.
   */
  async list(
    appId: string,
    { connector, before, limit }: { connector?: string | undefined } & PageRequest,
  ) {
    await requireApp(this.#deps, appId);
    const page = { before, limit: limit + 1 };
    const rows = await listFailedReceipts(this.#deps.db, appId, connector, page);
    const { results, next } = toPage(rows, limit, ({ id }) => id);
    return { results: results.map(({ id, ...row }) => ({ id: String(id), ...row })), next };
  }

  /**
   * Parses refused calls again with the current credentials, oldest first, at most 50. Deletes the
   * calls that were processed. A receipt counts only once, even if its call is parsed several
   * times. `isDryRun` only counts. Throws error 404 if the app does not exist.
   */
  async redrive(
    appId: string,
    { connector, cursor = 0 }: ReceiptRedrive,
    { isDryRun }: { isDryRun: boolean },
  ) {
    await requireApp(this.#deps, appId);
    const { db } = this.#deps;
    const calls = await readFailedReceipts(db, appId, connector, {
      after: cursor,
      limit: maxCalls,
    });
    const taken: number[] = [];
    for (const { id, connector: of, ...sealed } of calls) {
      const source = { appId, connector: of };
      const call = openRefusedCall(this.#deps, source, sealed);
      const result = call && (await this.#receipts.read(source, call));
      if (!result?.ok) continue;
      if (!isDryRun) await this.#receipts.take(source, result.receipts);
      taken.push(id);
    }
    if (!isDryRun && taken.length > 0)
      await db.transaction(async (tx) => {
        await deleteFailedReceipts(tx, appId, taken);
        const after = { processed: taken.length };
        await recordChange(tx, {
          action: 'receipts.redrive',
          appId,
          target: connector ?? 'all',
          after,
        });
      });
    const last = calls.length < maxCalls ? undefined : calls.at(-1);
    return {
      processed: taken.length,
      refused: calls.length - taken.length,
      next: last === undefined ? null : String(last.id),
    };
  }
}

/**
 * Maximum number of refused calls that are stored per app, and maximum size of each, in total 64
 * MB. The oldest calls are kept.
 */
const maxStoredCalls = 1000;
const maxStoredBytes = 64 * 1024;

/** Headers that no signature covers. */
const droppedHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie']);

const storedCall = z.object({
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  receivedAtMs: z.number().optional(),
});

/**
 * Stores a refused call of a gateway for a later try. If the call is too large or the app has too
 * many, it is only counted.
 */
async function keepRefusedCall(
  { db, vault, metrics }: ApiDeps,
  { appId, connector }: ReceiptSource,
  call: ReceiptCall,
  refusal: { status: number; error: string },
): Promise<void> {
  const headers = Object.fromEntries(
    Object.entries(call.headers).filter(([name]) => !droppedHeaders.has(name)),
  );
  const stored = { headers, body: call.body, receivedAtMs: call.receivedAtMs };
  const bytes = Buffer.byteLength(call.body);
  const isSmall = Buffer.byteLength(JSON.stringify(stored)) <= maxStoredBytes;
  const digest = sha256(call.body).toString('hex');
  const { status, error: reason } = refusal;
  const sealed = () => vault.seal(stored, sealContexts.receipt(appId, connector, digest));
  const isKept =
    isSmall &&
    (await db.transaction((tx) => {
      const failed = { connector, digest, status, reason, bytes, call: sealed() };
      return keepFailedReceipt(tx, appId, failed, maxStoredCalls);
    }));
  metrics.refusedReceiptCalls.inc({ connector, kept: isKept ? 'yes' : 'no' });
}

/** Decrypts a stored call. Returns undefined if no key decrypts it. */
function openRefusedCall(
  { vault }: Pick<ApiDeps, 'vault'>,
  { appId, connector }: ReceiptSource,
  { call, digest }: SealedCall,
): ReceiptCall | undefined {
  return openOrUndefined(() =>
    storedCall.parse(vault.open(call, sealContexts.receipt(appId, connector, digest))),
  );
}
