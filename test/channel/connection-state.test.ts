import { describe, expect, test } from 'vitest';
import {
  Authenticated,
  Authenticating,
  Closed,
  type ConnectionState,
  Unauthenticated,
} from '../../api/channel/connection-state.ts';
import { channelLimits as limits } from '../../api/channel/limits.ts';

const seat = { appId: 'app', installation: 7, sessionId: 1 };
const login = { kind: 'login', appId: 'app', installationId: 'device' } as const;
const letter = (pushId: number) => ({ pushId, content: '{}', expiresAtMs: 1 });

const applicant = () => new Authenticating(login, limits, limits.loginWithinMs);
const member = (own = {}) => new Authenticated(seat, login, { ...limits, ...own }, 0);
const farewellOf = (step: { next: ConnectionState; actions: unknown[] }) => [step.next.name, ...step.actions];
const leaves = (reason: string) => ['closed', { kind: 'close', reason }];

describe('a stranger', () => {
  const stranger = () => new Unauthenticated(limits, 0);

  test('becomes an applicant by its login', () => {
    const step = stranger().receive(login);
    expect(step.next.name).toBe('authenticating');
    expect(step.actions).toEqual([{ kind: 'openSession', appId: 'app', installationId: 'device' }]);
  });

  test('is answered a heartbeat, and nothing else', () => {
    expect(stranger().receive({ kind: 'heartbeat' }).actions).toEqual([{ kind: 'heartbeat' }]);
    expect(stranger().receive({ kind: 'ack', pushIds: [1] }).actions).toEqual([]);
    expect(stranger().receive({ kind: 'other' }).actions).toEqual([]);
  });

  test('leaves for what cannot be understood, for a bad login, and for lateness', () => {
    expect(farewellOf(stranger().receive({ kind: 'unparseable' }))).toEqual(leaves('unparseable'));
    expect(farewellOf(stranger().receive({ kind: 'invalidLogin' }))).toEqual(leaves('invalidLogin'));
    expect(stranger().tick(limits.loginWithinMs - 1).next.name).toBe('unauthenticated');
    expect(farewellOf(stranger().tick(limits.loginWithinMs))).toEqual(leaves('loginTimeout'));
  });
});

describe('an applicant', () => {
  test('becomes a member when it is seated, and is answered what it said meanwhile', () => {
    const applying = applicant();
    expect(applying.receive({ kind: 'heartbeat' }).actions).toEqual([]);
    expect(applying.receive({ kind: 'ack', pushIds: [3] }).actions).toEqual([]);
    const step = applying.onSessionOpened(seat, 0);
    expect(step.next.name).toBe('authenticated');
    expect(step.actions).toEqual([
      { kind: 'loggedIn' },
      { kind: 'heartbeat' },
      { kind: 'ack', pushIds: [3] },
    ]);
  });

  test('keeps a bounded number of early acknowledgements', () => {
    const applying = applicant();
    for (let i = 0; i < 10; i += 1)
      applying.receive({ kind: 'ack', pushIds: Array.from({ length: 100 }, (_, n) => i * 100 + n) });
    const ack = applying.onSessionOpened(seat, 0).actions.find((action) => action.kind === 'ack');
    expect(ack?.pushIds.length).toBe(limits.unacknowledgedMessages);
  });

  test('leaves when it is refused, and when the database takes too long', () => {
    expect(farewellOf(applicant().onLoginRejected('invalidLogin'))).toEqual(leaves('invalidLogin'));
    const lateMs = limits.loginWithinMs + limits.sessionWithinMs;
    expect(applicant().tick(lateMs - 1).next.name).toBe('authenticating');
    expect(farewellOf(applicant().tick(lateMs)), 'not its fault').toEqual(leaves('tryAgainLater'));
    expect(farewellOf(applicant().receive({ kind: 'unparseable' }))).toEqual(leaves('unparseable'));
  });
});

describe('a member', () => {
  test('takes each letter once, and no more than its window', () => {
    const reading = member({ unacknowledgedMessages: 2 });
    expect(reading.take([letter(1), letter(1)])).toEqual([letter(1)]);
    expect(reading.hasBacklog).toBe(false);
    expect(reading.take([letter(1), letter(2), letter(3)])).toEqual([letter(2)]);
    expect(reading.hasBacklog).toBe(true);
    expect(reading.canTakeMessages).toBe(false);
    reading.onAcknowledged(1);
    expect(reading.canTakeMessages).toBe(true);
    expect(reading.unacknowledged).toEqual([2]);
  });

  test('is pinged once when it is silent, and leaves when that brings no sign of life', () => {
    const silent = member();
    expect(silent.tick(limits.pingAfterMs - 1).actions).toEqual([]);
    expect(silent.tick(limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
    expect(silent.tick(limits.pingAfterMs + 1).actions).toEqual([]);
    const end = limits.pingAfterMs + limits.pongWithinMs;
    expect(farewellOf(silent.tick(end))).toEqual(leaves('readTimeout'));
    silent.onActivity(end);
    expect(silent.tick(end).actions).toEqual([]);
    expect(silent.tick(end + limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
  });

  test('is pinged before it is given up, even after a pause of the whole process', () => {
    expect(member().tick(limits.pingAfterMs * 10).actions).toEqual([{ kind: 'ping' }]);
  });

  test('passes acknowledgements on, and stays for its own login', () => {
    expect(member().receive({ kind: 'ack', pushIds: [4, 5] }).actions).toEqual([
      { kind: 'ack', pushIds: [4, 5] },
    ]);
    expect(member().receive({ kind: 'ack', pushIds: [] }).actions).toEqual([]);
    expect(member().receive(login).next.name).toBe('authenticated');
    expect(farewellOf(member().receive({ ...login, installationId: 'x' }))).toEqual(leaves('invalidLogin'));
  });
});

test('a request to another service is refused, and nothing else changes', () => {
  const request = { service: 2, peerId: 'tom', serial: 9 };
  for (const session of [new Unauthenticated(limits, 0), applicant(), member()])
    expect(session.receive({ kind: 'otherService', request })).toEqual({
      next: session,
      actions: [{ kind: 'rejectRequest', request }],
    });
});

test('heartbeats and logins are answered under their serials, whatever the state', () => {
  const heartbeat = { kind: 'heartbeat', serial: 8 } as const;
  const beat = { kind: 'heartbeat', serial: 8 };
  const welcome = { kind: 'loggedIn', serial: 7 };
  const step = new Unauthenticated(limits, 0).receive({ ...login, serial: 7 });
  const applying = step.next;
  if (!(applying instanceof Authenticating)) throw new Error('its login was not heard');
  expect(new Unauthenticated(limits, 0).receive(heartbeat).actions).toEqual([beat]);
  expect(applying.receive(heartbeat).actions).toEqual([]);
  expect(applying.onSessionOpened(seat, 0).actions).toEqual([welcome, beat]);
  expect(member().receive(heartbeat).actions).toEqual([beat]);
  expect(member().receive({ ...login, serial: 7 }).actions).toEqual([welcome]);
});

test('one who is gone only has acknowledgements heard', () => {
  const gone = new Closed();
  const foreign = { kind: 'otherService', request: { service: 2, peerId: '', serial: 1 } } as const;
  for (const said of [login, { kind: 'heartbeat' }, foreign, { kind: 'unparseable' }] as const)
    expect(gone.receive(said)).toEqual({ next: gone, actions: [] });
  expect(gone.receive({ kind: 'ack', pushIds: [1] }).actions).toEqual([{ kind: 'ack', pushIds: [1] }]);
});
