import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { guideOf } from '../../connectors/guides.ts';
import { connectors } from '../../connectors/registry.ts';
import { loopbackNetworks } from '../../shared/config/private-hosts.ts';
import { addressesIn, isAddressMember } from '../../shared/domain/addresses.ts';
import { appOptionsPatch } from '../../shared/domain/apps/app.ts';
import { isJsonObject, type Json, type JsonObject } from '../../shared/domain/json.ts';
import { setPrivateHosts } from '../../shared/http/outbound-addresses.ts';
import { aContext, recipients, sendAll } from '../support/gateways/apns.ts';
import { fixtures } from './contract/fixtures.ts';

let listener: Server;
let connections = 0;

/** Origin of the listener. */
let base = '';

beforeAll(async () => {
  listener = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).destroy();
  });
  await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
  const address = listener.address();
  if (typeof address === 'object') base = `127.0.0.1:${address?.port}`;
});
afterAll(() => listener.close());
beforeEach(() => {
  connections = 0;
});
afterEach(() => setPrivateHosts(loopbackNetworks));

/** Replaces the host of every URL in the credentials. */
function pointedAt(credentials: JsonObject, host: string): JsonObject {
  const entries = Object.entries(credentials).map(([name, value]): [string, Json] => {
    if (typeof value === 'string' && isAddressMember(name)) {
      const { protocol, pathname } = new URL(value);
      return [name, `${protocol}//${host}${pathname}`];
    }
    return [name, isJsonObject(value) ? pointedAt(value, host) : value];
  });
  return Object.fromEntries(entries);
}

describe.each(fixtures)(
  '$connector.id',
  ({ connector, shortTimeout, credentials, deviceType, deviceToken }) => {
    const to = recipients(2, { deviceType }).map((one) => ({
      ...one,
      deviceToken: deviceToken(one.index),
    }));
    const open = (more: JsonObject = {}) =>
      shortTimeout.open(
        connector.credentials.parse({ ...pointedAt(credentials, base), ...more }),
        aContext(),
      );
    const hasProxy = connector.credentials.safeParse({
      ...credentials,
      proxy: 'http://127.0.0.1:1',
    }).success;
    const ways: [string, JsonObject][] = [
      ['directly', {}],
      ...(hasProxy
        ? ([['through a proxy', { proxy: 'http://PROXY' }]] satisfies [string, JsonObject][])
        : []),
    ];

    test.each(ways)('connects to a private address only if it is allowed: %s', async (_, more) => {
      const own = more.proxy ? { proxy: `http://${base}` } : more;
      setPrivateHosts('');
      const refused = open(own);
      const { attempts } = await sendAll(refused, to);
      expect(attempts).toEqual(
        to.map(() => expect.objectContaining({ kind: 'profile_error', reason: 'address_refused' })),
      );
      expect(await refused.check?.()).toMatchObject({
        ok: false,
        attempt: { reason: 'address_refused' },
      });
      await refused.close();
      expect(connections).toBe(0);
      setPrivateHosts('127.0.0.1/32');
      const allowed = open(own);
      await allowed.check?.();
      await allowed.close();
      expect(connections).toBeGreaterThan(0);
    });

    test('has no URL to which the service would connect without a check', () => {
      const schema = z.toJSONSchema(connector.credentials, { io: 'input', unrepresentable: 'any' });
      const urls = urlMembersOf(schema);
      expect(urls.filter((name) => !isAddressMember(name))).toEqual([]);
      expect(urls).toContain('endpoint');
    });
  },
);

test('an app option has no URL to which the service would connect without a check', () => {
  const schema = z.toJSONSchema(appOptionsPatch, { io: 'input', unrepresentable: 'any' });
  const urls = urlMembersOf(schema);
  expect(urls).toEqual(['functionsUrl', 'functionsStagingUrl']);
  expect(urls.filter((name) => !isAddressMember(name))).toEqual([]);
});

test('every connector with credentials is tested here', () => {
  const withCredentials = [...connectors.values()].filter(({ id }) => guideOf(id) !== undefined);
  expect(fixtures.map(({ connector }) => connector.id).sort()).toEqual(
    withCredentials.map(({ id }) => id).sort(),
  );
  expect(
    addressesIn({ endpoint: 'https://a', inner: { token_uri: 'https://b' }, name: 'https://c' }),
  ).toEqual(
    new Map([
      ['endpoint', 'https://a'],
      ['inner.token_uri', 'https://b'],
    ]),
  );
});

/** Returns the names of the members that a JSON schema declares as URLs. */
function urlMembersOf(schema: unknown, name = ''): string[] {
  if (Array.isArray(schema)) return schema.flatMap((one) => urlMembersOf(one, name));
  if (typeof schema !== 'object' || schema === null) return [];
  if ('format' in schema && schema.format === 'uri') return [name];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === 'properties'
      ? Object.entries(value ?? {}).flatMap(([member, one]) => urlMembersOf(one, member))
      : urlMembersOf(value, name),
  );
}
