import { describe, expect, test } from 'vitest';
import {
  Authenticated,
  Authenticating,
  Closed,
  type ConnectionState,
  Unauthenticated,
  Waiting,
} from '../../api/channel/connection-state.ts';
import { channelLimits as limits } from '../../api/channel/limits.ts';

const session = { appId: 'app', installation: 7, sessionId: 1 };
const login = { kind: 'login', appId: 'app', installationId: 'device' } as const;
const message = (pushId: number) => ({ pushId, content: '{}', expiresAtMs: 1 });

const authenticating = () => new Authenticating(login, limits, limits.loginWithinMs);
const authenticated = (own = {}) => new Authenticated(session, login, { ...limits, ...own }, 0);
const outcomeOf = (step: { next: ConnectionState; actions: unknown[] }) => [
  step.next.name,
  ...step.actions,
];
const closedWith = (reason: string) => ['closed', { kind: 'close', reason }];

describe('an unauthenticated connection', () => {
  const unauthenticated = () => new Unauthenticated(limits, 0);

  test('is authenticating after its login', () => {
    const step = unauthenticated().receive(login);
    expect(step.next.name).toBe('authenticating');
    expect(step.actions).toEqual([{ kind: 'openSession', appId: 'app', installationId: 'device' }]);
  });

  test('answers heartbeats and nothing else', () => {
    expect(unauthenticated().receive({ kind: 'heartbeat' }).actions).toEqual([
      { kind: 'heartbeat' },
    ]);
    expect(unauthenticated().receive({ kind: 'ack', pushIds: [1] }).actions).toEqual([]);
    expect(unauthenticated().receive({ kind: 'other' }).actions).toEqual([]);
  });

  test('closes for an unparseable frame, an invalid login and a late login', () => {
    expect(outcomeOf(unauthenticated().receive({ kind: 'unparseable' }))).toEqual(
      closedWith('unparseable'),
    );
    expect(outcomeOf(unauthenticated().receive({ kind: 'invalidLogin' }))).toEqual(
      closedWith('invalidLogin'),
    );
    expect(unauthenticated().tick(limits.loginWithinMs - 1).next.name).toBe('unauthenticated');
    expect(outcomeOf(unauthenticated().tick(limits.loginWithinMs))).toEqual(
      closedWith('loginTimeout'),
    );
  });
});

describe('an authenticating connection', () => {
  test('is authenticated with its session, and answers the frames that came before', () => {
    const state = authenticating();
    expect(state.receive({ kind: 'heartbeat' }).actions).toEqual([]);
    expect(state.receive({ kind: 'ack', pushIds: [3] }).actions).toEqual([]);
    const step = state.onSessionOpened(session, 0);
    expect(step.next.name).toBe('authenticated');
    expect(step.actions).toEqual([
      { kind: 'loggedIn' },
      { kind: 'heartbeat' },
      { kind: 'ack', pushIds: [3] },
    ]);
  });

  test('keeps a limited number of early acknowledgements', () => {
    const state = authenticating();
    for (let i = 0; i < 10; i += 1)
      state.receive({ kind: 'ack', pushIds: Array.from({ length: 100 }, (_, n) => i * 100 + n) });
    const ack = state.onSessionOpened(session, 0).actions.find((action) => action.kind === 'ack');
    expect(ack?.pushIds.length).toBe(limits.unacknowledgedMessages);
  });

  test('closes if the login is rejected or the database takes too long', () => {
    expect(outcomeOf(authenticating().onLoginRejected('invalidLogin'))).toEqual(
      closedWith('invalidLogin'),
    );
    const lateMs = limits.loginWithinMs + limits.sessionWithinMs;
    expect(authenticating().tick(lateMs - 1).next.name).toBe('authenticating');
    expect(outcomeOf(authenticating().tick(lateMs)), 'a failure of the server').toEqual(
      closedWith('tryAgainLater'),
    );
    expect(outcomeOf(authenticating().receive({ kind: 'unparseable' }))).toEqual(
      closedWith('unparseable'),
    );
  });
});

describe('a connection that waits for its installation', () => {
  const waiting = () => new Waiting(login, limits, 0);

  test('has answered its login and the heartbeat after it', () => {
    const state = authenticating();
    state.receive({ kind: 'heartbeat', serial: 5 });
    expect(outcomeOf(state.onInstallationMissing(0))).toEqual([
      'waiting',
      { kind: 'loggedIn', serial: undefined },
      { kind: 'heartbeat', serial: 5 },
    ]);
    expect(outcomeOf(authenticated().onInstallationMissing(0))).toEqual(['waiting']);
  });

  test('answers like a connection with a session, and ignores acknowledgements', () => {
    expect(outcomeOf(waiting().receive({ kind: 'heartbeat' }))).toEqual([
      'waiting',
      { kind: 'heartbeat' },
    ]);
    expect(outcomeOf(waiting().receive(login))).toEqual(['waiting', { kind: 'loggedIn' }]);
    expect(outcomeOf(waiting().receive({ kind: 'ack', pushIds: [1] }))).toEqual(['waiting']);
    const another = waiting().receive({ ...login, installationId: 'another' });
    expect(outcomeOf(another)).toEqual(closedWith('invalidLogin'));
  });

  test('is pinged when it is silent, and closed without a reply', () => {
    const silent = waiting();
    expect(silent.tick(limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
    const end = limits.pingAfterMs + limits.pongWithinMs;
    expect(outcomeOf(silent.tick(end))).toEqual(closedWith('readTimeout'));
    silent.onActivity(end);
    expect(silent.tick(end).next.name).toBe('waiting');
    expect(waiting().onSessionOpened(session, end).next.name).toBe('authenticated');
  });
});

describe('an authenticated connection', () => {
  test('takes each message once, up to its window', () => {
    const device = authenticated({ unacknowledgedMessages: 2 });
    expect(device.take([message(1), message(1)])).toEqual([message(1)]);
    expect(device.hasBacklog).toBe(false);
    expect(device.take([message(1), message(2), message(3)])).toEqual([message(2)]);
    expect(device.hasBacklog).toBe(true);
    expect(device.canTakeMessages).toBe(false);
    device.onAcknowledged(1);
    expect(device.canTakeMessages).toBe(true);
    expect(device.unacknowledged).toEqual([2]);
  });

  test('is pinged once when it is silent, and closed without a reply', () => {
    const silent = authenticated();
    expect(silent.tick(limits.pingAfterMs - 1).actions).toEqual([]);
    expect(silent.tick(limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
    expect(silent.tick(limits.pingAfterMs + 1).actions).toEqual([]);
    const end = limits.pingAfterMs + limits.pongWithinMs;
    expect(outcomeOf(silent.tick(end))).toEqual(closedWith('readTimeout'));
    silent.onActivity(end);
    expect(silent.tick(end).actions).toEqual([]);
    expect(silent.tick(end + limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
  });

  test('is pinged before it is closed, even after a pause of the whole process', () => {
    expect(authenticated().tick(limits.pingAfterMs * 10).actions).toEqual([{ kind: 'ping' }]);
  });

  test('passes acknowledgements on, and accepts a repeated login', () => {
    expect(authenticated().receive({ kind: 'ack', pushIds: [4, 5] }).actions).toEqual([
      { kind: 'ack', pushIds: [4, 5] },
    ]);
    expect(authenticated().receive({ kind: 'ack', pushIds: [] }).actions).toEqual([]);
    expect(authenticated().receive(login).next.name).toBe('authenticated');
    expect(outcomeOf(authenticated().receive({ ...login, installationId: 'x' }))).toEqual(
      closedWith('invalidLogin'),
    );
  });
});

test('rejects a request to another service, and nothing else changes', () => {
  const request = { service: 2, peerId: 'tom', serial: 9 };
  for (const state of [new Unauthenticated(limits, 0), authenticating(), authenticated()])
    expect(state.receive({ kind: 'otherService', request })).toEqual({
      next: state,
      actions: [{ kind: 'rejectRequest', request }],
    });
});

test('answers heartbeats and logins with their serials in every state', () => {
  const heartbeat = { kind: 'heartbeat', serial: 8 } as const;
  const heartbeatReply = { kind: 'heartbeat', serial: 8 };
  const loggedIn = { kind: 'loggedIn', serial: 7 };
  const step = new Unauthenticated(limits, 0).receive({ ...login, serial: 7 });
  const state = step.next;
  if (!(state instanceof Authenticating)) throw new Error('the login was ignored');
  expect(new Unauthenticated(limits, 0).receive(heartbeat).actions).toEqual([heartbeatReply]);
  expect(state.receive(heartbeat).actions).toEqual([]);
  expect(state.onSessionOpened(session, 0).actions).toEqual([loggedIn, heartbeatReply]);
  expect(authenticated().receive(heartbeat).actions).toEqual([heartbeatReply]);
  expect(authenticated().receive({ ...login, serial: 7 }).actions).toEqual([loggedIn]);
});

test('handles only acknowledgements after it is closed', () => {
  const closed = new Closed();
  const otherService = {
    kind: 'otherService',
    request: { service: 2, peerId: '', serial: 1 },
  } as const;
  for (const command of [
    login,
    { kind: 'heartbeat' },
    otherService,
    { kind: 'unparseable' },
  ] as const)
    expect(closed.receive(command)).toEqual({ next: closed, actions: [] });
  expect(closed.receive({ kind: 'ack', pushIds: [1] }).actions).toEqual([
    { kind: 'ack', pushIds: [1] },
  ]);
});
