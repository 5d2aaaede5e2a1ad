import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { Batcher } from '../../shared/batcher.ts';
import type { Clock } from '../../shared/clock.ts';
import type { AppCache } from '../../shared/db/app-cache.ts';
import { isDeadlock, isMissingReference } from '../../shared/db/limits/database-errors.ts';
import { parseNotification } from '../../shared/db/listener.ts';
import type { Database } from '../../shared/db/pool.ts';
import {
  closeSessions,
  type DeviceName,
  type DeviceSession,
  findUnopened,
  type NewDeviceSession,
  openSessions,
  recordHeartbeat,
  removeDeadNodes,
  removeNode,
  restoreSessions,
  sessionsOfNode,
  sessionsWithoutInstallation,
} from '../../shared/db/tables/channel-sessions.ts';
import type { Metrics } from '../../shared/metrics.ts';
import type { Logger } from '../../shared/process/logging.ts';
import type { Connection } from './connection.ts';
import { type ChannelLimits, writeBatches } from './limits.ts';
import type { CloseReason } from './protocols/protocol.ts';
import { WaitingDevices } from './waiting-devices.ts';

const takeoverShape = z.object({
  appId: z.string(),
  installation: z.number(),
  sessionId: z.number(),
});

export interface PresenceDeps {
  db: Database;
  appCache: AppCache;
  metrics: Metrics;
  clock: Clock;
  log: Logger;
  limits: ChannelLimits;
}

/**
 * Number of concurrent login statements. The other connections of the pool stay free for other
 * requests when all devices reconnect.
 */
const concurrentLogins = 2;
/** Maximum number of devices in one login statement. */
const devicesPerLogin = 100;

interface Login extends DeviceName {
  connection: Connection;
}

/** Result of a login. Undefined if the connection closed before its session was opened. */
type LoginResult = NewDeviceSession | CloseReason | 'noInstallation' | undefined;

const noConnections: ReadonlyMap<number, Connection> = new Map();

const keyOf = (appId: string, installation: number) => `${appId}/${installation}`;

/**
 * Tracks the devices connected to this process. Their sessions in the database make them visible to
 * other processes.
 */
export class Presence {
  /** Id of this process among the processes that serve devices. */
  readonly nodeId = randomUUID();
  readonly #deps: PresenceDeps;
  readonly #connections = new Map<string, Map<number, Connection>>();
  #connectionCount = 0;
  readonly #waiting = new WaitingDevices();
  readonly #logins: Batcher<Login, LoginResult>;
  readonly #closedSessions: Batcher<DeviceSession>;
  /**
   * Takeovers that were notified while a login was in progress, by device. The notification can
   * arrive before the result of the login that it ends. Contains the highest session id and the
   * time of arrival.
   */
  readonly #takeovers = new Map<string, { sessionId: number; receivedAtMs: number }>();
  /** Number of devices that are logged in or logging in, by app. */
  readonly #devicesByApp = new Map<string, number>();
  #loginsInProgress = 0;
  /**
   * True if a heartbeat or a login found that this node had been removed. The node's other sessions
   * must then be restored.
   */
  #wasRemoved = false;

  constructor(deps: PresenceDeps) {
    this.#deps = deps;
    this.#logins = new Batcher({
      concurrency: concurrentLogins,
      size: devicesPerLogin,
      uniqueBy: ({ appId, installationId }) => `${appId}/${installationId}`,
      run: (logins) => this.#openSessions(logins),
    });
    this.#closedSessions = new Batcher<DeviceSession>({
      ...writeBatches('closed sessions', deps.log),
      delayMs: deps.limits.writeDelayMs,
      run: async (sessions) => {
        await closeSessions(deps.db, sessions);
        return [];
      },
    });
  }

  find(appId: string, installation: number): Connection | undefined {
    return this.#connections.get(appId)?.get(installation);
  }

  /** Returns the connections of the devices of an app, by installation. */
  devicesOf(appId: string): ReadonlyMap<number, Connection> {
    return this.#connections.get(appId) ?? noConnections;
  }

  /**
   * Opens a session for a connection or rejects its login. Returns whether the session was opened.
   * Never throws.
   */
  async logIn(connection: Connection, login: DeviceName): Promise<boolean> {
    if ((this.#devicesByApp.get(login.appId) ?? 0) >= this.#deps.limits.connectionsPerApp) {
      connection.onLoginRejected('tryAgainLater');
      return false;
    }
    this.#countDevice(login.appId, 1);
    this.#loginsInProgress += 1;
    const result = await this.#requestSession(connection, login);
    this.#loginsInProgress -= 1;
    if (result === 'noInstallation' && this.#wait(connection, login)) return false;
    const isOpen = this.#applyResult(connection, result);
    if (!isOpen) this.#countDevice(login.appId, -1);
    return isOpen;
  }

  /**
   * Opens sessions for waiting devices whose installation now exists. Returns their connections.
   * Each call checks a limited number of devices.
   */
  async openWaiting(): Promise<Connection[]> {
    if (this.#waiting.size === 0) return [];
    const { db, limits } = this.#deps;
    const opened: Promise<Connection[]>[] = [];
    for (const { appId, installationIds } of this.#waiting.next(limits.waitingPerTick))
      for (const installationId of await findUnopened(db, appId, installationIds))
        opened.push(this.#openWaiting({ appId, installationId }));
    return (await Promise.all(opened)).flat();
  }

  async #openWaiting(login: DeviceName): Promise<Connection[]> {
    const connection = this.#waiting.find(login);
    if (!connection) return [];
    this.#loginsInProgress += 1;
    const result = await this.#requestSession(connection, login);
    this.#loginsInProgress -= 1;
    if (typeof result === 'string') return [];
    return this.#applyResult(connection, result) ? [connection] : [];
  }

  /**
   * Moves devices of this process to the waiting state if their installation was deleted. They then
   * find its successor. Closes the connections of deleted apps.
   */
  async releaseDeleted(): Promise<void> {
    await Promise.all([...this.#devicesByApp.keys()].map((appId) => this.#closeIfDeleted(appId)));
    for (const session of await sessionsWithoutInstallation(this.#deps.db, this.nodeId)) {
      const connection = this.find(session.appId, session.installation);
      const state = connection?.authenticated;
      if (!connection || state?.session.sessionId !== session.sessionId) continue;
      this.#forget(session);
      this.#closedSessions.add(session);
      this.#wait(connection, state);
    }
  }

  async #closeIfDeleted(appId: string): Promise<void> {
    if (await this.#deps.appCache.app(appId)) return;
    for (const connection of [...this.devicesOf(appId).values(), ...this.#waiting.ofApp(appId)])
      connection.close('appNotAvailable');
  }

  /** Makes a connection wait for its installation. Returns false if the connection is closed. */
  #wait(connection: Connection, device: DeviceName): boolean {
    connection.onInstallationMissing();
    if (!connection.isWaiting) return false;
    const previous = this.#waiting.add(connection, device);
    if (previous) {
      this.#countDevice(device.appId, -1);
      previous.close('duplicatedLogin');
    }
    return true;
  }

  /**
   * Removes a closed connection and closes its session. Keeps the session if another login has
   * taken it over.
   */
  remove(connection: Connection): void {
    const waited = this.#waiting.remove(connection);
    if (waited) this.#countDevice(waited.appId, -1);
    const { session } = connection;
    if (!session || this.find(session.appId, session.installation) !== connection) return;
    this.#forget(session);
    this.#countDevice(session.appId, -1);
    this.#closedSessions.add(session);
  }

  #forget({ appId, installation }: DeviceSession): void {
    const ofApp = this.#connections.get(appId);
    ofApp?.delete(installation);
    if (ofApp?.size === 0) this.#connections.delete(appId);
    this.#connectionCount -= 1;
    this.#updateMetric();
  }

  /**
   * Closes a connection whose device logged in elsewhere
   * (protocol/channel.md#delivery-on-the-channel, error 4101).
   */
  onNotification(payload: string): void {
    const takeover = parseNotification(takeoverShape, payload);
    if (!takeover) return;
    const connection = this.find(takeover.appId, takeover.installation);
    const session = connection?.authenticated?.session;
    if (session && session.sessionId < takeover.sessionId) connection.close('duplicatedLogin');
    else if (this.#loginsInProgress > 0) this.#rememberTakeover(takeover);
  }

  /**
   * Records a heartbeat of this node and removes expired nodes. Returns true if this node had been
   * removed.
   */
  async heartbeat(): Promise<boolean> {
    const { db, limits } = this.#deps;
    if (await recordHeartbeat(db, this.nodeId)) this.#wasRemoved = true;
    await removeDeadNodes(db, limits.deadAfterMs);
    for (const [key, { receivedAtMs }] of this.#takeovers)
      if (receivedAtMs < this.#deps.clock.monotonicMs() - limits.deadAfterMs)
        this.#takeovers.delete(key);
    const wasRemoved = this.#wasRemoved;
    this.#wasRemoved = false;
    return wasRemoved;
  }

  /**
   * Reconciles this process with the database after missed notifications or the removal of this
   * node. Restores lost sessions and closes connections whose device logged in elsewhere.
   */
  async reconcile(): Promise<void> {
    const before = [...this.#connections.values()].flatMap((ofApp) =>
      [...ofApp.values()].flatMap((connection) => connection.authenticated?.session ?? []),
    );
    await recordHeartbeat(this.#deps.db, this.nodeId);
    await restoreSessions(this.#deps.db, this.nodeId, before);
    const stored = await sessionsOfNode(this.#deps.db, this.nodeId);
    const storedIds = new Set(stored.map((session) => session.sessionId));
    for (const { appId, installation, sessionId } of before) {
      const connection = this.find(appId, installation);
      if (connection?.authenticated?.session.sessionId === sessionId && !storedIds.has(sessionId))
        connection.close('duplicatedLogin');
    }
  }

  async close(): Promise<void> {
    await this.#closedSessions.drain();
    await removeNode(this.#deps.db, this.nodeId);
  }

  async #requestSession(connection: Connection, login: DeviceName): Promise<LoginResult> {
    const { appCache, log } = this.#deps;
    try {
      if (!(await appCache.app(login.appId))) return 'appNotAvailable';
      return await this.#logins.run({ ...login, connection });
    } catch (error) {
      log.warn({ err: error }, 'login of a device failed');
      return 'tryAgainLater';
    }
  }

  async #openSessions(logins: Login[]): Promise<LoginResult[]> {
    const waiting = logins.filter(({ connection }) => connection.awaitsSession);
    const sessions = waiting.length === 0 ? [] : await this.#storeSessions(waiting);
    const results = new Map(
      waiting.map((login, i) => [login, sessions[i] ?? ('noInstallation' as const)]),
    );
    return logins.map((login) => results.get(login));
  }

  async #storeSessions(devices: DeviceName[]): Promise<(NewDeviceSession | undefined)[]> {
    const { db, clock, limits } = this.#deps;
    const nowMs = clock.now();
    const request = {
      nodeId: this.nodeId,
      now: new Date(nowMs),
      touchedBefore: new Date(nowMs - limits.touchEveryMs),
    };
    try {
      return await openSessions(db, devices, request);
    } catch (error) {
      if (!isMissingReference(error) && !isDeadlock(error)) throw error;
      if (await recordHeartbeat(db, this.nodeId)) this.#wasRemoved = true;
      return openSessions(db, devices, request);
    }
  }

  #applyResult(connection: Connection, result: LoginResult): boolean {
    if (result === undefined || result === 'noInstallation') return false;
    if (typeof result === 'string') {
      connection.onLoginRejected(result);
      return false;
    }
    // The socket closed during the query.
    if (!connection.awaitsSession) this.#closedSessions.add(result);
    return connection.awaitsSession && this.#addConnection(connection, result);
  }

  #addConnection(connection: Connection, session: NewDeviceSession): boolean {
    const key = keyOf(session.appId, session.installation);
    const previous = this.find(session.appId, session.installation);
    const latest = Math.max(
      previous?.authenticated?.session.sessionId ?? 0,
      this.#takeovers.get(key)?.sessionId ?? 0,
    );
    if (latest > session.sessionId) {
      connection.onLoginRejected('duplicatedLogin');
      return false;
    }
    const ofApp = this.#connections.get(session.appId) ?? new Map<number, Connection>();
    this.#connections.set(session.appId, ofApp.set(session.installation, connection));
    if (!previous) this.#connectionCount += 1;
    this.#waiting.remove(connection);
    connection.onSessionOpened(session);
    if (previous) {
      this.#countDevice(session.appId, -1);
      previous.close('duplicatedLogin');
    }
    this.#updateMetric();
    return true;
  }

  #rememberTakeover({ appId, installation, sessionId }: DeviceSession): void {
    const key = keyOf(appId, installation);
    const latest = this.#takeovers.get(key)?.sessionId ?? 0;
    const receivedAtMs = this.#deps.clock.monotonicMs();
    this.#takeovers.set(key, { sessionId: Math.max(latest, sessionId), receivedAtMs });
  }

  #countDevice(appId: string, by: 1 | -1): void {
    const count = (this.#devicesByApp.get(appId) ?? 0) + by;
    if (count > 0) this.#devicesByApp.set(appId, count);
    else this.#devicesByApp.delete(appId);
  }

  #updateMetric(): void {
    this.#deps.metrics.channelConnections.set(this.#connectionCount);
  }
}
