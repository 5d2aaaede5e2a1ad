import { describe, expect, test } from 'vitest';
import { apns } from '../../connectors/apns/index.ts';
import type { Connector } from '../../connectors/connector.ts';
import { createApnsCredentials } from '../../ops/sandbox/apns/credentials.ts';
import type { JsonObject } from '../../shared/domain/json.ts';
import { profileConnectorIds } from '../../shared/domain/labels.ts';
import { aContext, aMessage, recipients, sendAll } from '../support/apns.ts';

/** A connector with credentials of the right form; nothing listens at the endpoint. */
interface Entry {
  connector: Connector;
  credentials: JsonObject;
}

const nowhere = 'https://127.0.0.1:9';

function tokenOfApns(): JsonObject {
  const { publicKey: _, ...token } = createApnsCredentials();
  return { auth: 'token', ...token, endpoint: nowhere };
}

const entries: Entry[] = [{ connector: apns, credentials: tokenOfApns() }];

/** What callers may send: none of it may make a connector throw. */
const oddData: JsonObject[] = [
  {},
  { alert: '' },
  { alert: null },
  { alert: ['a'] },
  { alert: { body: {} } },
  { alert: 'a', badge: 'increment' },
  { alert: 'a', ios: [], android: 5, hms: 'x', mi: null },
  { aps: { aps: { aps: 1 } } },
  { alert: '\u0000\ud800 ☃', 'k\u2028': '\u2029' },
  { alert: 'a'.repeat(100_000) },
  { silent: true, action: 'x', k: [[[[1]]]] },
];

describe.each(entries)('connector $connector.id', ({ connector, credentials }) => {
  test('is known by its id and says what it can', () => {
    expect(profileConnectorIds).toContain(connector.id);
    expect(connector.limits.recipientsPerRequest).toBeGreaterThan(0);
    expect(connector.limits.bodyBytes).toBeGreaterThan(0);
  });

  test('takes right credentials and refuses everything else', () => {
    expect(connector.credentials.safeParse(credentials).success).toBe(true);
    for (const wrong of [null, 5, 'x', [], {}, { ...credentials, surplus: 1 }])
      expect(connector.credentials.safeParse(wrong).success).toBe(false);
    for (const name of Object.keys(credentials))
      expect(connector.credentials.safeParse({ ...credentials, [name]: 5 }).success).toBe(false);
  });

  test('reports on credentials without showing them', () => {
    const report = JSON.stringify(connector.inspect(connector.credentials.parse(credentials), 0));
    const secrets = Object.values(credentials).filter((value) => JSON.stringify(value).length > 10);
    for (const value of secrets) expect(report).not.toContain(JSON.stringify(value));
  });

  test.each(oddData.map((data) => [JSON.stringify(data).slice(0, 40), data] as const))(
    'renders %s, or says why not, always the same',
    (_, data) => {
      const before = structuredClone(data);
      const message = aMessage(data);
      const first = connector.render(message, 'ios');
      if (!first.ok) expect(first.problem).toMatch(/\w/);
      expect(connector.render(message, 'ios')).toEqual(first);
      expect(message.data).toEqual(before);
    },
  );

  test('reports each recipient once when the gateway cannot be reached, as worth another try', async () => {
    const sender = connector.open(connector.credentials.parse(credentials), aContext());
    const { attempts, reports } = await sendAll(sender, recipients(7));
    await sender.close();
    expect(reports).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(attempts.every(({ kind }) => kind === 'retry')).toBe(true);
  });

  test('reports each recipient once when it is aborted before, and sends nothing after its end', async () => {
    const sender = connector.open(connector.credentials.parse(credentials), aContext());
    const aborted = await sendAll(sender, recipients(3), aMessage(), AbortSignal.abort());
    await sender.close();
    await sender.close();
    const closed = await sendAll(sender, recipients(3));
    for (const { attempts, reports } of [aborted, closed]) {
      expect(reports).toEqual([1, 1, 1]);
      expect(attempts.every(({ kind }) => kind === 'retry')).toBe(true);
    }
  });

  test('gives up an expired message without asking the gateway', async () => {
    const sender = connector.open(connector.credentials.parse(credentials), aContext());
    const { attempts } = await sendAll(sender, recipients(2), aMessage({ alert: 'a' }, { expiresAtMs: 1 }));
    await sender.close();
    expect(attempts.every((one) => one.kind === 'rejected' && one.outcome === 'expired')).toBe(true);
  });

  test('does nothing for nobody', async () => {
    const sender = connector.open(connector.credentials.parse(credentials), aContext());
    expect((await sendAll(sender, [])).attempts).toEqual([]);
    await sender.close();
  });
});
