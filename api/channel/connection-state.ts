import type { DeviceMessage } from '../../shared/db/tables/channel/inbox.ts';
import type { DeviceSession } from '../../shared/db/tables/channel/sessions.ts';
import type { CloseReason } from './close-reason.ts';
import type { ChannelLimits } from './limits.ts';
import type { ClientCommand, OtherServiceRequest } from './protocols/protocol.ts';

/**
 * The life of one connection, without input or output: what was heard and what time it is go in; the
 * next state and what is to be done come out. A state that cannot do something has no method for it:
 * only a `Member` can be given letters. Drawing: README.md. Times are monotonic milliseconds.
 */
export type ConnectionState = Unauthenticated | Authenticating | Authenticated | Closed;

/** What the socket and the database are to do next. */
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

const step = (next: ConnectionState, ...actions: Action[]): Step => ({ next, actions });

const closeWith = (reason: CloseReason): Step => ({
  next: new Closed(),
  actions: [{ kind: 'close', reason }],
});

type Login = Omit<Extract<ClientCommand, { kind: 'login' }>, 'kind'>;

/** Connected, and nobody knows who it is. */
export class Unauthenticated {
  readonly state = 'unauthenticated';
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

/** Has said who it is; the database is being asked. */
export class Authenticating {
  readonly state = 'authenticating';
  readonly appId: string;
  readonly installationId: string;
  readonly #limits: ChannelLimits;
  readonly #seatedByMs: number;
  readonly #serial: number | undefined;
  /** The last heartbeat, until it is answered. */
  #owedBeat: { serial?: number } | undefined;
  #earlyAcks: number[] = [];

  constructor(login: Login, limits: ChannelLimits, loginByMs: number) {
    this.#serial = login.serial;
    this.appId = login.appId;
    this.installationId = login.installationId;
    this.#limits = limits;
    this.#seatedByMs = loginByMs + limits.sessionWithinMs;
  }

  /** Clients send a heartbeat right behind the login: its answer then says that the login succeeded. */
  receive(command: ClientCommand): Step {
    switch (command.kind) {
      case 'unparseable':
        return closeWith('unparseable');
      case 'heartbeat':
        this.#owedBeat = command;
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
    const actions: Action[] = [{ kind: 'loggedIn', serial: this.#serial }];
    if (this.#owedBeat) actions.push({ kind: 'heartbeat', serial: this.#owedBeat.serial });
    if (this.#earlyAcks.length > 0) actions.push({ kind: 'ack', pushIds: this.#earlyAcks });
    return step(new Authenticated(session, this, this.#limits, nowMs), ...actions);
  }

  onLoginRejected(reason: CloseReason): Step {
    return closeWith(reason);
  }

  /** That the answer is late is our fault, not the device's. */
  tick(nowMs: number): Step {
    return nowMs >= this.#seatedByMs ? closeWith('tryAgainLater') : step(this);
  }
}

/** Logged in: gets letters and acknowledges them. */
export class Authenticated {
  readonly state = 'authenticated';
  readonly session: DeviceSession;
  /** There are letters stored that it has not been given. */
  hasBacklog = false;
  readonly #installationId: string;
  readonly #limits: ChannelLimits;
  readonly #unacknowledged = new Set<number>();
  #heardAtMs: number;
  #isPinged = false;

  constructor(
    session: DeviceSession,
    from: { installationId: string },
    limits: ChannelLimits,
    nowMs: number,
  ) {
    this.session = session;
    this.#installationId = from.installationId;
    this.#limits = limits;
    this.#heardAtMs = nowMs;
  }

  receive(command: ClientCommand): Step {
    switch (command.kind) {
      case 'heartbeat':
        return step(this, { kind: 'heartbeat', serial: command.serial });
      case 'otherService':
        return step(this, { kind: 'rejectRequest', request: command.request });
      case 'ack':
        return command.pushIds.length === 0
          ? step(this)
          : step(this, { kind: 'ack', pushIds: command.pushIds });
      case 'login':
        return this.#isSelf(command)
          ? step(this, { kind: 'loggedIn', serial: command.serial })
          : closeWith('invalidLogin');
      case 'invalidLogin':
        return closeWith('invalidLogin');
      case 'unparseable':
        return closeWith('unparseable');
      default:
        return step(this);
    }
  }

  /** Any sign of life, a pong too. */
  onActivity(nowMs: number): void {
    this.#heardAtMs = nowMs;
    this.#isPinged = false;
  }

  tick(nowMs: number): Step {
    const silentMs = nowMs - this.#heardAtMs;
    const { pingAfterMs, pongWithinMs } = this.#limits;
    if (silentMs >= pingAfterMs + pongWithinMs && this.#isPinged) return closeWith('readTimeout');
    if (silentMs < pingAfterMs || this.#isPinged) return step(this);
    this.#isPinged = true;
    return step(this, { kind: 'ping' });
  }

  /** Pushes that were sent on this connection and are not acknowledged yet. */
  get unacknowledged(): number[] {
    return [...this.#unacknowledged];
  }

  get unacknowledgedCount(): number {
    return this.#unacknowledged.size;
  }

  get canTakeMessages(): boolean {
    return this.unacknowledgedCount < this.#limits.unacknowledgedMessages;
  }

  /** Those of `letters` that are to be sent now; they count as on their way from here on. */
  take(letters: DeviceMessage[]): DeviceMessage[] {
    const taken: DeviceMessage[] = [];
    for (const letter of letters) {
      if (this.#unacknowledged.has(letter.pushId)) continue;
      if (!this.canTakeMessages) {
        this.hasBacklog = true;
        break;
      }
      this.#unacknowledged.add(letter.pushId);
      taken.push(letter);
    }
    return taken;
  }

  /** The acknowledgement of a letter is stored: there is room for another. */
  onAcknowledged(pushId: number): void {
    this.#unacknowledged.delete(pushId);
  }

  #isSelf(login: { appId: string; installationId: string }): boolean {
    return login.appId === this.session.appId && login.installationId === this.#installationId;
  }
}

/** Told to go, or gone. What it acknowledges before its socket closes still counts. */
export class Closed {
  readonly state = 'closed';

  receive(command: ClientCommand): Step {
    return command.kind === 'ack' ? step(this, { kind: 'ack', pushIds: command.pushIds }) : step(this);
  }

  tick(): Step {
    return step(this);
  }
}
