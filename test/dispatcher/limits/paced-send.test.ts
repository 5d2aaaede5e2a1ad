import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { Recipient, SendRequest } from '../../../connectors/contract/connector.ts';
import { LatenessBudget, sendPaced } from '../../../dispatcher/sending/pace.ts';
import { type Clock, systemClock } from '../../../shared/clock.ts';
import { paceShare } from '../../../shared/db/tables/gateway-limits.ts';

/** Clock that the test advances, because a busy machine may pause between any two lines. */
function manualClock(): Clock & { pass(ms: number): void } {
  let nowMs = 1_000_000;
  return {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    pass: (ms) => {
      nowMs += ms;
    },
  };
}

/** Interval between groups. */
const stepMs = 40;

const recipientsOf = (count: number): Recipient[] =>
  Array.from({ length: count }, (_, index) => ({
    index,
    id: index,
    deviceToken: `token ${index}`,
    deviceType: 'ios',
    vendor: null,
    topic: null,
    teamId: null,
    badge: null,
  }));

const requestTo = (count: number): SendRequest => ({
  pushId: 1,
  message: {} as SendRequest['message'],
  recipients: recipientsOf(count),
  signal: new AbortController().signal,
  report: () => undefined,
});

function bench(count: number, durationMs: number) {
  const clock = manualClock();
  const slices: number[][] = [];
  const request = requestTo(count);
  const send = (
    onSlice: () => void = () => undefined,
    latenessBudget = new LatenessBudget(),
    lateByMs = 0,
    onWarmUp: () => void = () => undefined,
  ) => {
    const sender = {
      warmUp: async () => onWarmUp(),
      send: async ({ recipients }: SendRequest) => {
        slices.push(recipients.map(({ index }) => index));
        clock.pass(stepMs);
        onSlice();
      },
      close: async () => undefined,
    };
    const slot = { startAtMs: clock.now() - lateByMs, durationMs };
    return sendPaced(sender, request, { slot, clock, latenessBudget });
  };
  return { clock, slices, send };
}

test('a batch on time is sent to every recipient once, in groups', async () => {
  const { slices, send } = bench(100, 120);
  expect(await send()).toBe(true);
  expect(slices.length).toBe(3);
  expect(slices.flat()).toEqual(recipientsOf(100).map(({ index }) => index));
});

test('after a stall, the rest of a batch waits for a new time slot', async () => {
  const { clock, slices, send } = bench(100, 400);
  const isInTime = await send(() => slices.length === 2 && clock.pass(1000));
  expect(isInTime).toBe(false);
  expect(slices).toHaveLength(2);
});

test('a batch whose connection opened after its time slot waits for a new slot', async () => {
  const { clock, slices, send } = bench(100, 400);
  expect(await send(undefined, new LatenessBudget(), 0, () => clock.pass(300))).toBe(false);
  expect(slices).toEqual([]);
});

test('a batch that missed its time slot returns it, at most nine times in a row', async () => {
  const { slices, send } = bench(10, stepMs);
  const latenessBudget = new LatenessBudget();
  const tries: boolean[] = [];
  for (let i = 0; i < 11; i++) tries.push(await send(undefined, latenessBudget, 500));
  expect(tries).toEqual([...Array(9).fill(false), true, false]);
  expect(slices.flat()).toHaveLength(10);
});

/** Pause of a process after some of its groups. */
const stall = fc.record({
  afterGroup: fc.integer({ min: 0, max: 24 }),
  ms: fc.integer({ min: 1, max: 300 }),
});

test('no second carries more than 1.1 times the rate, however processes stall', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const perSecond = 1000;
  const slotMs = 1000 / paceShare;
  /** Sends one batch in its time slot. Returns the times at which its recipients were sent to. */
  async function timesOf(
    startAtMs: number,
    lateByMs: number,
    stalls: { afterGroup: number; ms: number }[],
  ) {
    vi.setSystemTime(startAtMs + lateByMs);
    const times: number[] = [];
    let group = 0;
    const sender = {
      send: async ({ recipients }: SendRequest) => {
        times.push(...recipients.map(() => Date.now()));
        for (const { afterGroup, ms } of stalls)
          if (afterGroup === group) vi.setSystemTime(Date.now() + ms);
        group += 1;
      },
      close: async () => undefined,
    };
    const slot = { startAtMs, durationMs: slotMs };
    const timing = { slot, clock: systemClock, latenessBudget: new LatenessBudget() };
    const sent = sendPaced(sender, requestTo(perSecond), timing);
    await vi.runAllTimersAsync();
    await sent;
    return times;
  }
  const batch = fc.record({
    lateByMs: fc.integer({ min: 0, max: 400 }),
    stalls: fc.array(stall, { maxLength: 6 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(batch, { minLength: 2, maxLength: 3 }), async (batches) => {
      const times: number[] = [];
      for (const [i, { lateByMs, stalls }] of batches.entries())
        times.push(...(await timesOf(Math.round(1_000_000 + i * slotMs), lateByMs, stalls)));
      times.sort((a, b) => a - b);
      for (const [i, from] of times.entries())
        expect(
          (times[i + 1.1 * perSecond] ?? Number.POSITIVE_INFINITY) - from,
        ).toBeGreaterThanOrEqual(1000);
    }),
    { numRuns: 60 },
  );
});

test('a large batch without a time slot is sent in groups of 1,000', async () => {
  const groups: number[] = [];
  let hasFailed = false;
  const request: SendRequest = {
    pushId: 1,
    message: {} as SendRequest['message'],
    recipients: recipientsOf(4500),
    signal: new AbortController().signal,
    report: () => undefined,
  };
  const sender = {
    send: async ({ recipients, report }: SendRequest) => {
      groups.push(recipients.length);
      for (const { index } of recipients)
        report(
          index,
          hasFailed
            ? { kind: 'unknown', reason: 'timeout', isRepeatHidden: true }
            : { kind: 'sent' },
        );
    },
    close: async () => undefined,
  };
  const timing = { slot: undefined, clock: manualClock(), latenessBudget: new LatenessBudget() };
  expect(await sendPaced(sender, request, timing)).toBe(true);
  expect(groups).toEqual([1000, 1000, 1000, 1000, 500]);
  hasFailed = true;
  expect(await sendPaced(sender, request, timing)).toBe(false);
  expect(groups).toHaveLength(6);
});

/** Sends a batch without a slot through a sender that answers only when the test says so. */
function answering(count: number) {
  const groups: { answer(from: number, to: number): void; end(): void; size: number }[] = [];
  const reports = new Array<number>(count).fill(0);
  const sender = {
    send: ({ recipients, report }: SendRequest) => {
      const ended = Promise.withResolvers<void>();
      groups.push({
        size: recipients.length,
        answer: (from, to) => {
          for (const { index } of recipients.slice(from, to)) report(index, { kind: 'sent' });
        },
        end: ended.resolve,
      });
      return ended.promise;
    },
    close: async () => undefined,
  };
  const request = { ...requestTo(count), report: countIn(reports) };
  const timing = { slot: undefined, clock: systemClock, latenessBudget: new LatenessBudget() };
  const sending = sendPaced(sender, request, timing);
  return { groups, reports, sending };
}
const countIn = (reports: number[]) => (index: number) => {
  reports[index] = (reports[index] ?? 0) + 1;
};
const turn = () => new Promise((resolve) => setImmediate(resolve));

test('the next group starts when few answers of a group are missing', async () => {
  const { groups, reports, sending } = answering(2500);
  groups[0]?.answer(0, 899);
  await turn();
  expect(groups).toHaveLength(1);
  groups[0]?.answer(899, 900);
  await turn();
  expect(groups.map(({ size }) => size)).toEqual([1000, 1000]);
  groups[1]?.answer(0, 1000);
  await turn();
  expect(groups.map(({ size }) => size)).toEqual([1000, 1000, 500]);
  groups[2]?.answer(0, 500);
  groups[0]?.answer(900, 1000);
  for (const { end } of groups) end();
  expect(await sending).toBe(true);
  expect(reports.every((count) => count === 1)).toBe(true);
});

test('the next group starts if half of a group has answers and the others are silent', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const silent = answering(2000);
  const mostly = answering(2000);
  silent.groups[0]?.answer(0, 499);
  mostly.groups[0]?.answer(0, 500);
  await vi.advanceTimersByTimeAsync(60_000);
  expect([silent.groups.length, mostly.groups.length]).toEqual([1, 2]);
  for (const { groups, sending } of [silent, mostly]) {
    groups[0]?.answer(groups === silent.groups ? 499 : 500, 1000);
    groups[0]?.end();
    await turn();
    groups[1]?.answer(0, 1000);
    groups[1]?.end();
    expect(await sending).toBe(true);
  }
});
