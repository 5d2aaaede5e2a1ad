/** Health of one push service: tests, pauses, and messages that wait for neither. */
import { describe, expect, test } from 'vitest';
import { ServiceHealth, type ServiceResult } from '../../../connectors/webpush/service-health.ts';

function start() {
  let nowMs = 1_000_000;
  const health = new ServiceHealth({ now: () => nowMs, monotonicMs: () => nowMs });
  return {
    health,
    pass: (ms: number) => {
      nowMs += ms;
    },
    record: (result: ServiceResult, count = 1) => {
      for (let i = 0; i < count; i++) health.record(result);
    },
  };
}

describe('a service whose health is unknown', () => {
  test('gets one message, and all others after its answer', async () => {
    const { health, record } = start();
    expect([health.admit(50), health.admit(50)]).toEqual([1, 0]);
    const waiting = health.untilAnswer();
    record('answered');
    expect(await waiting).toBe(true);
    expect([health.admit(50), health.admit(50)]).toEqual([50, 50]);
  });

  test('is known after an answer of any status', () => {
    const { health, record } = start();
    health.admit(1);
    record('failed');
    expect(health.admit(50)).toBe(50);
  });

  test('is paused if the message gets no answer, twice as long after each test', () => {
    const { health, pass, record } = start();
    const pauses = [];
    for (let i = 0; i < 6; i++) {
      expect(health.admit(50)).toBe(1);
      expect(health.admit(50)).toBe(0);
      record('unanswered');
      expect(health.admit(50)).toBe(0);
      pauses.push(health.cooldownMs());
      pass(health.cooldownMs());
    }
    expect(pauses).toEqual([2000, 4000, 8000, 16_000, 30_000, 30_000]);
    health.admit(1);
    record('answered');
    expect([health.cooldownMs(), health.admit(50)]).toEqual([0, 50]);
  });

  test('is tested by the next message if a message was not sent', async () => {
    const { health, record } = start();
    health.admit(1);
    const waiting = health.untilAnswer();
    record('unsent');
    expect(await waiting).toBe(true);
    expect([health.admit(50), health.cooldownMs()]).toEqual([1, 0]);
  });

  test('holds nobody after 5 s, and nobody after a failed test', async () => {
    const { health, pass, record } = start();
    health.admit(1);
    pass(5001);
    expect(await health.untilAnswer()).toBe(false);
    record('unanswered');
    pass(2000);
    expect(health.admit(50)).toBe(1);
    expect(await health.untilAnswer()).toBe(false);
  });
});

describe('a healthy service', () => {
  const healthy = () => {
    const started = start();
    started.health.admit(1);
    started.record('answered');
    return started;
  };

  test('gets no more messages when messages have been without any answer for 5 s', async () => {
    const { health, pass, record } = healthy();
    expect(health.admit(100)).toBe(100);
    pass(5001);
    expect(health.admit(1)).toBe(0);
    expect(await health.untilAnswer()).toBe(false);
    record('answered');
    expect(health.admit(100)).toBe(100);
  });

  test('is paused after 20 failures in a row, once for all messages in flight', () => {
    for (const failure of ['failed', 'unanswered'] as const) {
      const { health, record } = healthy();
      health.admit(100);
      record(failure, 19);
      expect(health.cooldownMs()).toBe(0);
      record(failure, 81);
      expect(health.cooldownMs()).toBe(2000);
    }
  });

  test('is not paused by single failures', () => {
    const { health, record } = healthy();
    health.admit(90);
    for (let i = 0; i < 30; i++) {
      record('unanswered', 2);
      record('answered');
    }
    expect([health.cooldownMs(), health.admit(50)]).toEqual([0, 50]);
  });

  test('is unknown again after a minute without answers', () => {
    const { health, pass } = healthy();
    pass(60_000);
    expect(health.admit(50)).toBe(1);
  });
});
