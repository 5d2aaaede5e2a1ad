import { type Clock, dayMs, hourMs } from '../../shared/clock.ts';
import { networkOf } from '../../shared/domain/addresses.ts';
import type { App, AppOptions } from '../../shared/domain/apps/app.ts';
import { Refusal, refuse } from '../../shared/domain/errors/errors.ts';

const callsOnly = (perHour: number) => ({
  perHour,
  bytesPerDay: Number.POSITIVE_INFINITY,
  bytes: Number.POSITIVE_INFINITY,
});

/**
 * Objects that callers with an app key create, with the options that limit them per network
 * address.
 */
const limitsOf = {
  installations: ({
    installationsPerAddressPerHour: perHour,
    installationBytesPerAddressPerDay: bytesPerDay,
    installationBytes: bytes,
  }: AppOptions) => ({ perHour, bytesPerDay, bytes }),
  roles: ({
    rolesPerAddressPerHour: perHour,
    roleBytesPerAddressPerDay: bytesPerDay,
    roleBytes: bytes,
  }: AppOptions) => ({ perHour, bytesPerDay, bytes }),
  /** The database counts new users (`takeSignUpBudget`). Here only their growth counts. */
  users: ({ signUpBytesPerAddressPerDay: bytesPerDay }: AppOptions) => ({
    perHour: Number.POSITIVE_INFINITY,
    bytesPerDay,
    bytes: Number.POSITIVE_INFINITY,
  }),
  captchas: ({ captchasPerAddressPerHour: perHour }: AppOptions) => callsOnly(perHour),
  /** Strict queries store nothing, but each query may read users. */
  strictQueries: ({ strictQueriesPerAddressPerHour: perHour }: AppOptions) => callsOnly(perHour),
};
export type StoredKind = keyof typeof limitsOf;

/** Caller of a write, with its network address. */
export interface StoringCaller {
  app: App;
  isMaster: boolean;
  hasHookKey?: boolean | undefined;
  remoteAddress: string;
}

/** Bytes of a row and its index entries in addition to its members. */
const rowBytes = 256;
/** Maximum number of network addresses in memory. A new address replaces the oldest. */
const defaultMaxAddresses = 50_000;

interface Count {
  used: number;
  endsAtMs: number;
}

/**
 * Limits what callers with an app key store, per app, kind and network address (/64 network for
 * IPv6). The app key is public, so a caller could otherwise fill the disk. Servers of the app,
 * which have the master or hook key, are not counted. Each api process counts for itself, so that
 * saves of installations need no additional statement.
 */
export class ClientStorage {
  readonly #clock: Pick<Clock, 'now'>;
  readonly #maxAddresses: number;
  readonly #counts = new Map<string, { objects: Count; bytes: Count }>();

  constructor(clock: Pick<Clock, 'now'>, maxAddresses = defaultMaxAddresses) {
    this.#clock = clock;
    this.#maxAddresses = maxAddresses;
  }

  /** Returns the account of one write. Returns undefined for a caller that is not counted. */
  accountOf(kind: StoredKind, caller: StoringCaller): StorageAccount | undefined {
    const { app, isMaster, hasHookKey = false, remoteAddress } = caller;
    if (isMaster || hasHookKey) return undefined;
    const key = `${kind} ${app.appId} ${networkOf(remoteAddress)}`;
    return new StorageAccount(kind, limitsOf[kind](app.options), (use) => this.#add(key, use));
  }

  /** Adds to the counts of a key and returns the counts. */
  #add(key: string, { objects, bytes }: { objects: number; bytes: number }) {
    const nowMs = this.#clock.now();
    const counts = this.#counts.get(key) ?? this.#start(key);
    for (const [count, used, windowMs] of [
      [counts.objects, objects, hourMs],
      [counts.bytes, bytes, dayMs],
    ] as const) {
      if (count.endsAtMs <= nowMs) Object.assign(count, { used: 0, endsAtMs: nowMs + windowMs });
      count.used = Math.max(0, count.used + used);
    }
    return { objects: counts.objects, bytes: counts.bytes, nowMs };
  }

  #start(key: string) {
    const [oldest] = this.#counts.keys();
    if (oldest !== undefined && this.#counts.size >= this.#maxAddresses)
      this.#counts.delete(oldest);
    const counts = { objects: { used: 0, endsAtMs: 0 }, bytes: { used: 0, endsAtMs: 0 } };
    this.#counts.set(key, counts);
    return counts;
  }
}

type Add = (use: { objects: number; bytes: number }) => {
  objects: Count;
  bytes: Count;
  nowMs: number;
};

/** Counts what one write stores. If the write fails or is repeated, `refund` undoes its counts. */
export class StorageAccount {
  readonly #kind: StoredKind;
  readonly #limits: { perHour: number; bytesPerDay: number; bytes: number };
  readonly #add: Add;
  #spent = { objects: 0, bytes: 0 };

  constructor(
    kind: StoredKind,
    limits: { perHour: number; bytesPerDay: number; bytes: number },
    add: Add,
  ) {
    this.#kind = kind;
    this.#limits = limits;
    this.#add = add;
  }

  /**
   * Counts a new object. `others` is the size of additional rows. Throws error 116 if the object
   * exceeds the size option of its kind. Throws error 429 with the seconds left if the network
   * address may not store more.
   */
  create(bytes: number, others = 0): void {
    this.#requireSize(bytes, 0);
    this.#spend({ objects: 1, bytes: bytes + rowBytes + others });
  }

  /**
   * Counts the growth of an object. Throws as `create`. An object that is already too large may
   * still change and shrink.
   */
  change(bytes: number, bytesBefore: number, others = 0): void {
    this.#requireSize(bytes, bytesBefore);
    const grown = Math.max(0, bytes - bytesBefore) + others;
    if (grown > 0) this.#spend({ objects: 0, bytes: grown });
  }

  /** Undoes the counts of a write that stored nothing. */
  refund(): void {
    const { objects, bytes } = this.#spent;
    if (objects > 0 || bytes > 0) this.#add({ objects: -objects, bytes: -bytes });
    this.#spent = { objects: 0, bytes: 0 };
  }

  #spend(use: { objects: number; bytes: number }): void {
    const { objects, bytes, nowMs } = this.#add(use);
    this.#spent = {
      objects: this.#spent.objects + use.objects,
      bytes: this.#spent.bytes + use.bytes,
    };
    const { perHour, bytesPerDay } = this.#limits;
    const isOver = (use.objects > 0 && objects.used > perHour) || bytes.used > bytesPerDay;
    if (!isOver) return;
    this.refund();
    const endsAtMs = bytes.used > bytesPerDay ? bytes.endsAtMs : objects.endsAtMs;
    throw new Refusal('tooManyRequests', {
      text:
        this.#kind === 'strictQueries'
          ? 'Too many strict queries come from this network address.'
          : `Too many ${this.#kind} are stored from this network address.`,
      retryAfterSeconds: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)),
    });
  }

  #requireSize(bytes: number, bytesBefore: number): void {
    const { bytes: maxBytes } = this.#limits;
    if (bytes <= maxBytes || bytes <= bytesBefore) return;
    const [noun] = this.#kind.split(/s$/);
    throw refuse(
      'tooLarge',
      `An app key stores at most ${maxBytes} bytes in one ${noun}; the master key more.`,
    );
  }
}
