import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Connector, PushMessage } from '../../../connectors/contract/connector.ts';
import { connectors } from '../../../connectors/registry.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { profileConnectorIds } from '../../../shared/domain/labels.ts';
import { hintText } from '../../../shared/domain/reasons.ts';
import {
  aContext,
  aMessage,
  kinds,
  type Outcome,
  recipients,
  sendAll,
} from '../../support/gateways/apns.ts';
import type { GatewayInstance } from './fixture.ts';
import { fixtures } from './fixtures.ts';

/** Unusual content that callers may send. No connector may throw for it. */
const unusualData: JsonObject[] = [
  {},
  { alert: '' },
  { alert: null },
  { alert: ['a'] },
  { alert: { body: {} } },
  { alert: 'a', badge: 'increment' },
  {
    alert: 'a',
    ios: [],
    android: 5,
    hms: 'x',
    mi: null,
    fcm: [],
    vivo: 1,
    oppo: '',
    mz: false,
    honor: 0,
  },
  {
    alert: 'a',
    hms: {},
    mi: {},
    mz: {},
    oppo: {},
    vivo: {},
    honor: {},
    fcm: {},
    android: {},
    ios: {},
  },
  {
    alert: 'a',
    hms: { message: 5 },
    fcm: { message: [] },
    vivo: { pushMode: {} },
    mi: { extra: 'x' },
  },
  { aps: { aps: { aps: 1 } } },
  { alert: '\u0000\ud800 ☃', 'k\u2028': '\u2029' },
  { alert: 'a'.repeat(100_000) },
  { silent: true, action: 'x', k: [[[[1]]]] },
  { silent: 'yes', alert: 'a' },
];

test('every connector of the registry with credentials has a fixture here', () => {
  const served = [...connectors.keys()].filter((id) =>
    profileConnectorIds.some((known) => known === id),
  );
  expect(fixtures.map(({ connector }) => connector.id).sort()).toEqual(served.sort());
});

describe.each(fixtures)('connector $connector.id', (fixture) => {
  const { connector, credentials, deviceType } = fixture;
  let instance: GatewayInstance;

  beforeAll(async () => {
    instance = await fixture.start();
  });
  afterAll(() => instance.close());
  afterEach(() => {
    instance.behave();
    instance.forget();
  });

  const makeRecipients = (count: number) =>
    recipients(count, { deviceType }).map((one) => ({
      ...one,
      deviceToken: fixture.deviceToken(one.index),
    }));

  /** Sends with a new sender to the sandbox, or to a closed port. */
  async function push(
    count: number,
    options: {
      to?: 'closed port';
      by?: Connector;
      message?: PushMessage;
      signal?: AbortSignal;
      context?: ReturnType<typeof aContext>;
    } = {},
  ): Promise<Outcome> {
    const { by = connector, context = aContext(), message, signal, to } = options;
    const sender = by.open(by.credentials.parse(to ? credentials : instance.credentials), context);
    try {
      return await sendAll(sender, makeRecipients(count), message, signal);
    } finally {
      await sender.close();
    }
  }

  test('sends different texts in one pass like one text, if it supports this', async () => {
    const sender = connector.open(connector.credentials.parse(instance.credentials), aContext());
    if (!sender.sendTexts) return sender.close();
    const to = makeRecipients(5);
    const reports = to.map(() => [] as string[]);
    const groups = to.map((recipient, i) => ({
      recipients: [recipient],
      values: new Map([['name', i === 4 ? 'x'.repeat(5000) : `Name ${i} "\\ 😀`]]),
    }));
    const message = aMessage({ alert: 'a' });
    const report = (index: number, attempt: { kind: string }) =>
      void reports[index]?.push(attempt.kind);
    const { signal } = new AbortController();
    const dataOf = (values: ReadonlyMap<string, string>) => ({
      alert: `Hello ${values.get('name')}`,
    });
    const texts = { dataOf, names: ['name'], groups };
    try {
      await sender.sendTexts({ pushId: 1, message, report, signal }, texts);
      expect(reports).toEqual([...Array(4).fill(['sent']), ['rejected']]);
      expect(to.map(({ deviceToken }) => instance.seen(deviceToken))).toEqual([1, 1, 1, 1, 0]);
      expect(instance.violations).toEqual([]);
      await sender.sendTexts(
        { pushId: 1, message: { ...message, expiresAtMs: 0 }, report, signal },
        texts,
      );
      expect(reports.map((kinds) => kinds[1])).toEqual(Array(5).fill('rejected'));
      instance.kill(to[0]?.deviceToken ?? '');
      await sender.sendTexts({ pushId: 1, message, report, signal }, texts);
      expect(reports.map((kinds) => kinds[2])).toEqual([
        'invalid_token',
        ...Array(3).fill('sent'),
        'rejected',
      ]);
    } finally {
      await sender.close();
    }
  });

  test('has an id and capabilities', () => {
    expect(profileConnectorIds).toContain(connector.id);
    expect(connector.limits.recipientsPerRequest).toBeGreaterThan(0);
    expect(connector.limits.bodyBytes).toBeGreaterThan(0);
  });

  test('accepts valid credentials and refuses all others', () => {
    expect(connector.credentials.safeParse(credentials).error).toBeUndefined();
    for (const wrong of [null, 5, 'x', [], {}, { ...credentials, surplus: 1 }])
      expect(connector.credentials.safeParse(wrong).success).toBe(false);
    for (const name of Object.keys(credentials))
      expect(connector.credentials.safeParse({ ...credentials, [name]: [5] }).success).toBe(false);
  });

  test('reports on credentials without showing them', () => {
    const report = JSON.stringify(connector.inspect(connector.credentials.parse(credentials), 0));
    for (const name of fixture.secrets)
      expect(report).not.toContain(JSON.stringify(credentials[name] ?? 'missing').slice(1, -1));
  });

  test.each(unusualData.map((data) => [JSON.stringify(data).slice(0, 40), data] as const))(
    'renders %s always the same, or reports why not',
    (_, data) => {
      const before = structuredClone(data);
      const message = aMessage(data);
      const first = connector.render(message, deviceType);
      if (!first.ok) expect(first.error).toMatch(/\w/);
      expect(connector.render(message, deviceType)).toEqual(first);
      expect(message.data).toEqual(before);
    },
  );

  test('reports each recipient once as a retry if the gateway is unreachable', async () => {
    const { attempts, reports } = await push(7, { to: 'closed port' });
    expect(reports).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(attempts.every(({ kind }) => kind === 'retry')).toBe(true);
  });

  test('aborted before the send, reports each recipient once and sends nothing', async () => {
    const sender = connector.open(connector.credentials.parse(instance.credentials), aContext());
    const aborted = await sendAll(sender, makeRecipients(3), aMessage(), AbortSignal.abort());
    await sender.close();
    await sender.close();
    const closed = await sendAll(sender, makeRecipients(3));
    for (const { attempts, reports } of [aborted, closed]) {
      expect(reports).toEqual([1, 1, 1]);
      expect(attempts.every(({ kind }) => kind === 'retry')).toBe(true);
    }
    expect(instance.total).toBe(0);
  });

  test('reports an expired message without a request', async () => {
    const { attempts } = await push(2, { message: aMessage({ alert: 'a' }, { expiresAtMs: 1 }) });
    expect(attempts.every((one) => one.kind === 'rejected' && one.outcome === 'expired')).toBe(
      true,
    );
    expect(instance.total).toBe(0);
  });

  test('checks the gateway without sending, and reports why it could not', async () => {
    const check = async (sent: JsonObject) => {
      const sender = connector.open(connector.credentials.parse(sent), aContext());
      return (await sender.check?.().finally(() => sender.close())) ?? null;
    };
    expect(await check(instance.credentials)).toMatchObject({ ok: true });
    expect(instance.seen(fixture.deviceToken(0))).toBe(0);
    expect(instance.violations).toEqual([]);
    const attempt = { kind: 'retry', cause: 'ECONNREFUSED' };
    expect(await check(credentials)).toMatchObject({ ok: false, attempt });
  });

  test('does nothing without recipients', async () => {
    expect((await push(0)).attempts).toEqual([]);
  });

  test('sends a whole batch to each device once, without a protocol violation', async () => {
    const context = aContext();
    const outcome = await push(1000, { context });
    expect(kinds(outcome)).toEqual({ sent: 1000 });
    expect(outcome.reports.every((count) => count === 1)).toBe(true);
    expect(makeRecipients(1000).every(({ deviceToken }) => instance.seen(deviceToken) === 1)).toBe(
      true,
    );
    expect(instance.violations).toEqual([]);
    expect(instance.total).toBeLessThanOrEqual(
      Math.ceil(1000 / connector.limits.recipientsPerRequest) + 1,
    );
    expect(
      context.calls.filter(({ status }) => status === 200 || status === 201).length,
    ).toBeGreaterThan(0);
  });

  test('invalidates a deleted device and sends to the others', async () => {
    instance.kill(fixture.deviceToken(2));
    const { attempts } = await push(5);
    expect(attempts.map(({ kind }) => kind)).toEqual([
      'sent',
      'sent',
      'invalid_token',
      'sent',
      'sent',
    ]);
  });

  test('invalidates no token on a rate limit, and retries later', async () => {
    instance.throttle();
    expect(kinds(await push(5))).toEqual({ retry: 5 });
  });

  test('invalidates no token if the gateway fails', async () => {
    instance.breakDown();
    expect(kinds(await push(5))).toEqual({ retry: 5 });
  });

  test('stops with a hint if the credentials are refused, and invalidates no token', async () => {
    instance.refuseCredentials();
    const { attempts } = await push(5);
    for (const attempt of attempts)
      expect(attempt.kind === 'profile_error' && hintText(attempt.hint)).toMatch(/^[A-Z].+\.$/);
  });

  test('reports an unknown result without a reply', async () => {
    instance.hang();
    expect(kinds(await push(3, { by: fixture.shortTimeout }))).toEqual({ unknown: 3 });
  });

  test('gets a new access token if the old one is reported as expired', async (context) => {
    if (!instance.expireTokens) return context.skip();
    const shared = aContext();
    expect(kinds(await push(3, { context: shared }))).toEqual({ sent: 3 });
    instance.expireTokens();
    const callsBefore = instance.tokenCalls?.() ?? 0;
    expect(kinds(await push(3, { context: shared }))).toEqual({ sent: 3 });
    expect(instance.tokenCalls?.()).toBe(callsBefore + 1);
  });

  test('fetches one access token for all of its senders', async (context) => {
    if (!instance.expireTokens) return context.skip();
    const shared = aContext();
    await Promise.all(Array.from({ length: 5 }, () => push(2, { context: shared })));
    expect(instance.tokenCalls?.()).toBe(1);
  });

  test('caps a class whose daily quota is used up, and sends no more of it', async (context) => {
    if (!instance.useUpDay) return context.skip();
    instance.useUpDay();
    const shared = aContext();
    const first = await push(3, { context: shared });
    const { total } = instance;
    const second = await push(3, { context: shared });
    for (const { attempts } of [first, second])
      for (const attempt of attempts)
        expect(attempt).toMatchObject({ kind: 'rejected', outcome: 'capped' });
    expect(instance.total).toBe(total);
  });

  test('finds the invalid device of a refusal that does not name it', async (context) => {
    if (!instance.makeAmbiguous) return context.skip();
    instance.makeAmbiguous(fixture.deviceToken(37));
    const outcome = await push(100);
    expect(kinds(outcome).sent).toBe(99);
    expect(outcome.attempts[37]?.kind).not.toBe('sent');
  });
});
