import type { DeviceMessage } from '../../shared/db/tables/channel-messages.ts';
import type { DeviceSession } from '../../shared/db/tables/channel-sessions.ts';
import type { ChannelLimits } from './limits.ts';
import type { ClientCommand, CloseReason, OtherServiceRequest } from './protocols/protocol.ts';

/**
 * State machine of one connection, without input or output. The inputs are commands and the time.
 * The outputs are the next state and the actions to execute. Each state has only the methods that
 * it allows. For example, only `Authenticated` takes messages. README.md contains a diagram. Times
 * are monotonic milliseconds.
 */
export type ConnectionState = Unauthenticated | Authenticating | Waiting | Authenticated | Closed;

/** Work for the socket and the database that follows from a step. */
export type Action =
  | { kind: 'openSession'; appId: string; installationId: string }
  | { kind: 'loggedIn'; serial: number | undefined }
  | { kind: 'heartbeat'; serial: number | undefined }
  | { kind: 'rejectRequest'; request: OtherServiceRequest }
  | { kind: 'ping' }
  | { kind: 'ack'; pushIds: number[] }
  | { kind: 'close'; reason: CloseReason };

export interface Step {
  next: ConnectionState;
  actions: Action[];
}

/**
 * Messages for a device. `groupIds` contains the group of each message, or undefined if the message
 * is in no group. Many devices share one object.
 */
export interface Offer {
  messages: readonly DeviceMessage[];
  groupIds: readonly (number | undefined)[];
}

const step = (next: ConnectionState, ...actions: Action[]): Step => ({ next, actions });

const closeWith = (reason: CloseReason): Step => step(new Closed(), { kind: 'close', reason });

type Login = Omit<Extract<ClientCommand, { kind: 'login' }>, 'kind'>;

/** State of a new connection: waits for the login command. */
export class Unauthenticated {
  readonly name = 'unauthenticated';
  readonly #limits: ChannelLimits;
  readonly #loginByMs: number;

  constructor(limits: ChannelLimits, nowMs: number) {
    this.#limits = limits;
    this.#loginByMs = nowMs + limits.loginWithinMs;
  }

  receive(command: ClientCommand): Step {
    switch (command.kind) {
      case 'login': {
        const { appId, installationId } = command;
        const next = new Authenticating(command, this.#limits, this.#loginByMs);
        return step(next, { kind: 'openSession', appId, installationId });
      }
      case 'invalidLogin':
        return closeWith('invalidLogin');
      case 'unparseable':
        return closeWith('unparseable');
      case 'heartbeat':
        return step(this, { kind: 'heartbeat', serial: command.serial });
      case 'otherService':
        return step(this, { kind: 'rejectRequest', request: command.request });
      default:
        return step(this);
    }
  }

  tick(nowMs: number): Step {
    return nowMs >= this.#loginByMs ? closeWith('loginTimeout') : step(this);
  }
}

/** State after the login command, while the database opens the session. */
export class Authenticating {
  readonly name = 'authenticating';
  readonly appId: string;
  readonly installationId: string;
  readonly #limits: ChannelLimits;
  readonly #sessionByMs: number;
  readonly #serial: number | undefined;
  /** Last heartbeat without a reply. */
  #pendingHeartbeat: { serial?: number } | undefined;
  #earlyAcks: number[] = [];

  constructor(login: Login, limits: ChannelLimits, loginByMs: number) {
    this.#serial = login.serial;
    this.appId = login.appId;
    this.installationId = login.installationId;
    this.#limits = limits;
    this.#sessionByMs = loginByMs + limits.sessionWithinMs;
  }

  /**
   * Handles a command while the session opens. Delays the reply to a heartbeat, because clients
   * send a heartbeat right after the login and take its reply as success.
   */
  receive(command: ClientCommand): Step {
    switch (command.kind) {
      case 'unparseable':
        return closeWith('unparseable');
      case 'heartbeat':
        this.#pendingHeartbeat = command;
        return step(this);
      case 'otherService':
        return step(this, { kind: 'rejectRequest', request: command.request });
      case 'ack':
        this.#earlyAcks = [...this.#earlyAcks, ...command.pushIds].slice(
          0,
          this.#limits.unacknowledgedMessages,
        );
        return step(this);
      default:
        return step(this);
    }
  }

  onSessionOpened(session: DeviceSession, nowMs: number): Step {
    const actions = this.#answers();
    if (this.#earlyAcks.length > 0) actions.push({ kind: 'ack', pushIds: this.#earlyAcks });
    return step(new Authenticated(session, this, this.#limits, nowMs), ...actions);
  }

  /**
   * Completes the login although the installation does not exist. The session opens when the
   * installation exists.
   */
  onInstallationMissing(nowMs: number): Step {
    return step(new Waiting(this, this.#limits, nowMs), ...this.#answers());
  }

  /** Returns the replies to the login and to a heartbeat after it. */
  #answers(): Action[] {
    const loggedIn: Action = { kind: 'loggedIn', serial: this.#serial };
    if (!this.#pendingHeartbeat) return [loggedIn];
    return [loggedIn, { kind: 'heartbeat', serial: this.#pendingHeartbeat.serial }];
  }

  onLoginRejected(reason: CloseReason): Step {
    return closeWith(reason);
  }

  /** Closes with 1013 (try again later) if the session takes too long to open. */
  tick(nowMs: number): Step {
    return nowMs >= this.#sessionByMs ? closeWith('tryAgainLater') : step(this);
  }
}

/** State after the login. Base of the states with and without a session. */
abstract class LoggedIn {
  readonly appId: string;
  readonly installationId: string;
  protected readonly limits: ChannelLimits;
  #lastActivityMs: number;
  #isPinged = false;

  constructor(
    { appId, installationId }: { appId: string; installationId: string },
    limits: ChannelLimits,
    nowMs: number,
  ) {
    this.appId = appId;
    this.installationId = installationId;
    this.limits = limits;
    this.#lastActivityMs = nowMs;
  }

  protected abstract get self(): ConnectionState;

  receive(command: ClientCommand): Step {
    switch (command.kind) {
      case 'heartbeat':
        return step(this.self, { kind: 'heartbeat', serial: command.serial });
      case 'otherService':
        return step(this.self, { kind: 'rejectRequest', request: command.request });
      case 'login':
        return this.#isSameDevice(command)
          ? step(this.self, { kind: 'loggedIn', serial: command.serial })
          : closeWith('invalidLogin');
      case 'invalidLogin':
        return closeWith('invalidLogin');
      case 'unparseable':
        return closeWith('unparseable');
      default:
        return step(this.self);
    }
  }

  /** Records that a frame of any kind arrived, including pongs. */
  onActivity(nowMs: number): void {
    this.#lastActivityMs = nowMs;
    this.#isPinged = false;
  }

  tick(nowMs: number): Step {
    const silentMs = nowMs - this.#lastActivityMs;
    const { pingAfterMs, pongWithinMs } = this.limits;
    if (silentMs >= pingAfterMs + pongWithinMs && this.#isPinged) return closeWith('readTimeout');
    if (silentMs < pingAfterMs || this.#isPinged) return step(this.self);
    this.#isPinged = true;
    return step(this.self, { kind: 'ping' });
  }

  #isSameDevice(login: { appId: string; installationId: string }): boolean {
    return login.appId === this.appId && login.installationId === this.installationId;
  }
}

/**
 * State of a device whose installation does not exist. The device keeps its connection and gets no
 * messages yet.
 */
export class Waiting extends LoggedIn {
  readonly name = 'waiting';

  protected get self(): ConnectionState {
    return this;
  }

  onSessionOpened(session: DeviceSession, nowMs: number): Step {
    return step(new Authenticated(session, this, this.limits, nowMs));
  }
}

/** State of a device with an open session: takes messages and acknowledges them. */
export class Authenticated extends LoggedIn {
  readonly name = 'authenticated';
  readonly session: DeviceSession;
  /**
   * True if the database contains messages for the device that were not sent on this connection.
   */
  hasBacklog = false;
  /** Groups of the messages that were sent and are not acknowledged, by push. */
  readonly #unacknowledged = new Map<number, number | undefined>();

  constructor(
    session: DeviceSession,
    { installationId }: { installationId: string },
    limits: ChannelLimits,
    nowMs: number,
  ) {
    super({ appId: session.appId, installationId }, limits, nowMs);
    this.session = session;
  }

  protected get self(): ConnectionState {
    return this;
  }

  override receive(command: ClientCommand): Step {
    if (command.kind !== 'ack') return super.receive(command);
    return command.pushIds.length === 0
      ? step(this)
      : step(this, { kind: 'ack', pushIds: command.pushIds });
  }

  /**
   * Moves to the waiting state, because the installation was deleted. The device waits for a new
   * installation with its id.
   */
  onInstallationMissing(nowMs: number): Step {
    return step(new Waiting(this, this.limits, nowMs));
  }

  /** Pushes that were sent on this connection and are not acknowledged. */
  get unacknowledged(): number[] {
    return [...this.#unacknowledged.keys()];
  }

  isUnacknowledged(pushId: number): boolean {
    return this.#unacknowledged.has(pushId);
  }

  get canTakeMessages(): boolean {
    return this.#unacknowledged.size < this.limits.unacknowledgedMessages;
  }

  /** Returns the messages to send now and counts them as unacknowledged. */
  take(
    messages: readonly DeviceMessage[],
    groupIds: Offer['groupIds'] = [],
  ): readonly DeviceMessage[] {
    const taken: DeviceMessage[] = [];
    messages.forEach((message, i) => {
      if (this.#unacknowledged.has(message.pushId)) return;
      if (!this.canTakeMessages) {
        this.hasBacklog = true;
        return;
      }
      this.#unacknowledged.set(message.pushId, groupIds[i]);
      taken.push(message);
    });
    // Devices that take the whole offer share its frame.
    return taken.length === messages.length ? messages : taken;
  }

  /**
   * Returns the group of a message that was sent. Returns undefined if the message was read from
   * the inbox.
   */
  groupOf(pushId: number): number | undefined {
    return this.#unacknowledged.get(pushId);
  }

  /** Makes room for another message after the acknowledgement of this message is stored. */
  onAcknowledged(pushId: number): void {
    this.#unacknowledged.delete(pushId);
  }
}

/**
 * State of a connection that is closing or closed. Acknowledgements count until the socket closes.
 */
export class Closed {
  readonly name = 'closed';

  receive(command: ClientCommand): Step {
    return command.kind === 'ack'
      ? step(this, { kind: 'ack', pushIds: command.pushIds })
      : step(this);
  }

  tick(): Step {
    return step(this);
  }
}
