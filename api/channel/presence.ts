import { randomUUID } from 'node:crypto';
import type { Clock } from '../../shared/clock.ts';
import type { AppCache } from '../../shared/db/cache/app-cache.ts';
import { type Database, isDeadlock, isMissingReference } from '../../shared/db/pool.ts';
import {
  closeSessions,
  type DeviceName,
  type DeviceSession,
  type NewDeviceSession,
  openSessions,
  recordHeartbeat,
  removeDeadNodes,
  removeNode,
  restoreSessions,
  sessionsOfNode,
} from '../../shared/db/tables/channel/sessions.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { CloseReason } from './close-reason.ts';
import type { Connection } from './connection.ts';
import type { ChannelLimits } from './limits.ts';
import { parseSessionNotification } from './notifications.ts';
import { QueryBatcher } from './query-batcher.ts';
import { WriteBuffer } from './write-buffer.ts';

export interface PresenceDeps {
  db: Database;
  appCache: AppCache;
  metrics: Metrics;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
}

/**
 * Statements that seat devices at the same time, and devices of one: the rest of the pool stays for the api's
 * other work when all devices return.
 */
const loginLanes = 2;
const loginsTogether = 100;

interface Login extends DeviceName {
  connection: Connection;
}

const keyOf = (appId: string, installation: number) => `${appId}/${installation}`;

/** Who is connected to this process, and how the other processes know. */
export class Presence {
  /** This process among those that serve devices. */
  readonly nodeId = randomUUID();
  readonly #deps: PresenceDeps;
  readonly #members = new Map<string, Connection>();
  readonly #logins: QueryBatcher<Login, NewDeviceSession | CloseReason | undefined>;
  readonly #departures: WriteBuffer<DeviceSession>;
  /**
   * Takeovers we were told of while a login was under way: a notice may overtake the answer to the login
   * that it ends. By device; the highest session id, and when it was told.
   */
  readonly #takeovers = new Map<string, { sessionId: number; toldAtMs: number }>();
  /** Members and applicants by app. */
  readonly #ofApp = new Map<string, number>();
  #joining = 0;
  /** A login found that this node had been taken for dead: its other seats are still to be restored. */
  #wasBuried = false;

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
    this.#logins = new QueryBatcher({
      concurrency: loginLanes,
      size: loginsTogether,
      keyOf: ({ appId, installationId }) => `${appId}/${installationId}`,
      run: (logins) => this.#seat(logins),
    });
    this.#departures = new WriteBuffer({
      name: 'departures',
      delayMs: deps.limits.writeDelayMs,
      write: (seats) => closeSessions(deps.db, seats),
      log: deps.log,
    });
  }

  find(appId: string, installation: number): Connection | undefined {
    return this.#members.get(keyOf(appId, installation));
  }

  /** Seats a connection or refuses it. True when it was seated. Never throws. */
  async join(connection: Connection, login: DeviceName): Promise<boolean> {
    if ((this.#ofApp.get(login.appId) ?? 0) >= this.#deps.limits.connectionsPerApp) {
      connection.onLoginRejected('tryAgainLater');
      return false;
    }
    this.#countApp(login.appId, 1);
    this.#joining += 1;
    const answer = await this.#ask(connection, login);
    this.#joining -= 1;
    const isSeated = this.#answer(connection, answer);
    if (!isSeated) this.#countApp(login.appId, -1);
    return isSeated;
  }

  /** Takes a connection that ended out; its seat is freed unless another login has taken it. */
  leave(connection: Connection): void {
    const { session: seat } = connection;
    if (!seat) return;
    const key = keyOf(seat.appId, seat.installation);
    if (this.#members.get(key) !== connection) return;
    this.#members.delete(key);
    this.#countApp(seat.appId, -1);
    this.#count();
    this.#departures.add(seat);
  }

  /** A login somewhere took over from another: that one closes (protocol/channel.md#delivery-on-the-channel, error 4101). */
  onNotice(payload: string): void {
    const told = parseSessionNotification(payload);
    if (!told) return;
    const connection = this.find(told.appId, told.installation);
    const seat = connection?.authenticated?.session;
    if (seat && seat.sessionId < told.sessionId) connection.close('duplicatedLogin');
    else if (this.#joining > 0) this.#remember(told);
  }

  /** Says that this node lives, and buries others. True when this node had been taken for dead. */
  async beat(): Promise<boolean> {
    const { db, limits } = this.#deps;
    const isNew = (await recordHeartbeat(db, this.nodeId)) || this.#wasBuried;
    this.#wasBuried = false;
    await removeDeadNodes(db, limits.deadAfterMs);
    for (const [key, { toldAtMs }] of this.#takeovers)
      if (toldAtMs < this.#deps.clock.monotonicMs() - limits.deadAfterMs) this.#takeovers.delete(key);
    return isNew;
  }

  /**
   * Makes the database and this process agree after notices were missed or the node was taken for dead:
   * seats that were lost are restored, connections whose device logged in elsewhere are closed.
   */
  async reconcile(): Promise<void> {
    const before = [...this.#members.values()].flatMap(
      (connection) => connection.authenticated?.session ?? [],
    );
    await recordHeartbeat(this.#deps.db, this.nodeId);
    await restoreSessions(this.#deps.db, this.nodeId, before);
    const seats = await sessionsOfNode(this.#deps.db, this.nodeId);
    const seated = new Set(seats.map((seat) => seat.sessionId));
    for (const { appId, installation, sessionId } of before) {
      const connection = this.find(appId, installation);
      if (connection?.authenticated?.session.sessionId === sessionId && !seated.has(sessionId))
        connection.close('duplicatedLogin');
    }
  }

  async close(): Promise<void> {
    await this.#departures.drain();
    await removeNode(this.#deps.db, this.nodeId);
  }

  /** Undefined when the connection ended while it waited. */
  async #ask(connection: Connection, login: DeviceName): Promise<NewDeviceSession | CloseReason | undefined> {
    const { appCache, log } = this.#deps;
    try {
      if (!(await appCache.app(login.appId))) return 'appNotAvailable';
      return await this.#logins.load({ ...login, connection });
    } catch (error) {
      log.warn({ err: error }, 'a device could not log in');
      return 'tryAgainLater';
    }
  }

  async #seat(logins: Login[]): Promise<(NewDeviceSession | CloseReason | undefined)[]> {
    const waiting = logins.filter(({ connection }) => connection.isAuthenticating);
    const seats = waiting.length === 0 ? [] : await this.#write(waiting);
    const answers = new Map(waiting.map((login, i) => [login, seats[i] ?? ('invalidLogin' as const)]));
    return logins.map((login) => answers.get(login));
  }

  async #write(devices: DeviceName[]): Promise<(NewDeviceSession | undefined)[]> {
    const { db, clock, limits } = this.#deps;
    const nowMs = clock.now();
    const seating = {
      nodeId: this.nodeId,
      now: new Date(nowMs),
      touchedBefore: new Date(nowMs - limits.touchEveryMs),
    };
    try {
      return await openSessions(db, devices, seating);
    } catch (error) {
      if (!isMissingReference(error) && !isDeadlock(error)) throw error;
      if (await recordHeartbeat(db, this.nodeId)) this.#wasBuried = true;
      return openSessions(db, devices, seating);
    }
  }

  #answer(connection: Connection, answer: NewDeviceSession | CloseReason | undefined): boolean {
    if (answer === undefined) return false;
    if (typeof answer === 'string') {
      connection.onLoginRejected(answer);
      return false;
    }
    // Its socket closed while the database was asked.
    if (!connection.isAuthenticating) this.#departures.add(answer);
    return connection.isAuthenticating && this.#admit(connection, answer);
  }

  #admit(connection: Connection, seat: NewDeviceSession): boolean {
    const key = keyOf(seat.appId, seat.installation);
    const other = this.#members.get(key);
    const latest = Math.max(
      other?.authenticated?.session.sessionId ?? 0,
      this.#takeovers.get(key)?.sessionId ?? 0,
    );
    if (latest > seat.sessionId) {
      connection.onLoginRejected('duplicatedLogin');
      return false;
    }
    this.#members.set(key, connection);
    connection.onSessionOpened(seat);
    if (other) {
      this.#countApp(seat.appId, -1);
      other.close('duplicatedLogin');
    }
    this.#count();
    return true;
  }

  #remember({ appId, installation, sessionId }: DeviceSession): void {
    const key = keyOf(appId, installation);
    const known = this.#takeovers.get(key)?.sessionId ?? 0;
    const toldAtMs = this.#deps.clock.monotonicMs();
    this.#takeovers.set(key, { sessionId: Math.max(known, sessionId), toldAtMs });
  }

  #countApp(appId: string, by: 1 | -1): void {
    const count = (this.#ofApp.get(appId) ?? 0) + by;
    if (count > 0) this.#ofApp.set(appId, count);
    else this.#ofApp.delete(appId);
  }

  #count(): void {
    this.#deps.metrics.channelConnections.set(this.#members.size);
  }
}
