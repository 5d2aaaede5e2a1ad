import { describe, expect, test } from 'vitest';
import { channelLimits as limits } from '../../api/channel/limits.ts';
import { Applicant, Gone, Member, type Session, Stranger } from '../../api/channel/session.ts';

const seat = { appId: 'app', installation: 7, sessionId: 1 };
const login = { kind: 'login', appId: 'app', installationId: 'device' } as const;
const letter = (pushId: number) => ({ pushId, content: '{}', expiresAtMs: 1 });

const applicant = () => new Applicant(login, limits, limits.loginWithinMs);
const member = (own = {}) => new Member(seat, login, { ...limits, ...own }, 0);
const farewellOf = (step: { next: Session; actions: unknown[] }) => [step.next.state, ...step.actions];
const leaves = (farewell: string) => ['gone', { kind: 'close', farewell }];

describe('a stranger', () => {
  const stranger = () => new Stranger(limits, 0);

  test('becomes an applicant by its login', () => {
    const step = stranger().hear(login);
    expect(step.next.state).toBe('applicant');
    expect(step.actions).toEqual([{ kind: 'seat', appId: 'app', installationId: 'device' }]);
  });

  test('is answered a heartbeat, and nothing else', () => {
    expect(stranger().hear({ kind: 'heartbeat' }).actions).toEqual([{ kind: 'beat' }]);
    expect(stranger().hear({ kind: 'ack', pushIds: [1] }).actions).toEqual([]);
    expect(stranger().hear({ kind: 'other' }).actions).toEqual([]);
  });

  test('leaves for what cannot be understood, for a bad login, and for lateness', () => {
    expect(farewellOf(stranger().hear({ kind: 'unparseable' }))).toEqual(leaves('unparseable'));
    expect(farewellOf(stranger().hear({ kind: 'badLogin' }))).toEqual(leaves('invalidLogin'));
    expect(stranger().tick(limits.loginWithinMs - 1).next.state).toBe('stranger');
    expect(farewellOf(stranger().tick(limits.loginWithinMs))).toEqual(leaves('loginTimeout'));
  });
});

describe('an applicant', () => {
  test('becomes a member when it is seated, and is answered what it said meanwhile', () => {
    const applying = applicant();
    expect(applying.hear({ kind: 'heartbeat' }).actions).toEqual([]);
    expect(applying.hear({ kind: 'ack', pushIds: [3] }).actions).toEqual([]);
    const step = applying.seated(seat, 0);
    expect(step.next.state).toBe('member');
    expect(step.actions).toEqual([{ kind: 'welcome' }, { kind: 'beat' }, { kind: 'ack', pushIds: [3] }]);
  });

  test('keeps a bounded number of early acknowledgements', () => {
    const applying = applicant();
    for (let i = 0; i < 10; i += 1)
      applying.hear({ kind: 'ack', pushIds: Array.from({ length: 100 }, (_, n) => i * 100 + n) });
    const ack = applying.seated(seat, 0).actions.find((action) => action.kind === 'ack');
    expect(ack?.pushIds.length).toBe(limits.unackedLetters);
  });

  test('leaves when it is refused, and when the database takes too long', () => {
    expect(farewellOf(applicant().refused('invalidLogin'))).toEqual(leaves('invalidLogin'));
    const lateMs = limits.loginWithinMs + limits.seatWithinMs;
    expect(applicant().tick(lateMs - 1).next.state).toBe('applicant');
    expect(farewellOf(applicant().tick(lateMs)), 'not its fault').toEqual(leaves('tryAgainLater'));
    expect(farewellOf(applicant().hear({ kind: 'unparseable' }))).toEqual(leaves('unparseable'));
  });
});

describe('a member', () => {
  test('takes each letter once, and no more than its window', () => {
    const reading = member({ unackedLetters: 2 });
    expect(reading.take([letter(1), letter(1)])).toEqual([letter(1)]);
    expect(reading.isBehind).toBe(false);
    expect(reading.take([letter(1), letter(2), letter(3)])).toEqual([letter(2)]);
    expect(reading.isBehind).toBe(true);
    expect(reading.hasRoom).toBe(false);
    reading.settled(1);
    expect(reading.hasRoom).toBe(true);
    expect(reading.onTheWay).toEqual([2]);
  });

  test('is pinged once when it is silent, and leaves when that brings no sign of life', () => {
    const silent = member();
    expect(silent.tick(limits.pingAfterMs - 1).actions).toEqual([]);
    expect(silent.tick(limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
    expect(silent.tick(limits.pingAfterMs + 1).actions).toEqual([]);
    const end = limits.pingAfterMs + limits.pongWithinMs;
    expect(farewellOf(silent.tick(end))).toEqual(leaves('readTimeout'));
    silent.heard(end);
    expect(silent.tick(end).actions).toEqual([]);
    expect(silent.tick(end + limits.pingAfterMs).actions).toEqual([{ kind: 'ping' }]);
  });

  test('is pinged before it is given up, even after a pause of the whole process', () => {
    expect(member().tick(limits.pingAfterMs * 10).actions).toEqual([{ kind: 'ping' }]);
  });

  test('passes acknowledgements on, and stays for its own login', () => {
    expect(member().hear({ kind: 'ack', pushIds: [4, 5] }).actions).toEqual([
      { kind: 'ack', pushIds: [4, 5] },
    ]);
    expect(member().hear({ kind: 'ack', pushIds: [] }).actions).toEqual([]);
    expect(member().hear(login).next.state).toBe('member');
    expect(farewellOf(member().hear({ ...login, installationId: 'x' }))).toEqual(leaves('invalidLogin'));
  });
});

test('a request to another service is refused, and nothing else changes', () => {
  const request = { service: 2, peerId: 'tom', serial: 9 };
  for (const session of [new Stranger(limits, 0), applicant(), member()])
    expect(session.hear({ kind: 'foreign', request })).toEqual({
      next: session,
      actions: [{ kind: 'refuse', request }],
    });
});

test('heartbeats and logins are answered under their serials, whatever the state', () => {
  const heartbeat = { kind: 'heartbeat', serial: 8 } as const;
  const beat = { kind: 'beat', serial: 8 };
  const welcome = { kind: 'welcome', serial: 7 };
  const step = new Stranger(limits, 0).hear({ ...login, serial: 7 });
  const applying = step.next;
  if (!(applying instanceof Applicant)) throw new Error('its login was not heard');
  expect(new Stranger(limits, 0).hear(heartbeat).actions).toEqual([beat]);
  expect(applying.hear(heartbeat).actions).toEqual([]);
  expect(applying.seated(seat, 0).actions).toEqual([welcome, beat]);
  expect(member().hear(heartbeat).actions).toEqual([beat]);
  expect(member().hear({ ...login, serial: 7 }).actions).toEqual([welcome]);
});

test('one who is gone only has acknowledgements heard', () => {
  const gone = new Gone();
  const foreign = { kind: 'foreign', request: { service: 2, peerId: '', serial: 1 } } as const;
  for (const said of [login, { kind: 'heartbeat' }, foreign, { kind: 'unparseable' }] as const)
    expect(gone.hear(said)).toEqual({ next: gone, actions: [] });
  expect(gone.hear({ kind: 'ack', pushIds: [1] }).actions).toEqual([{ kind: 'ack', pushIds: [1] }]);
});
