import { describe, expect, test } from 'vitest';
import { newKey } from '../../../shared/domain/ids.ts';
import { useTestApi } from '../../support/test-api.ts';

/** Tests the creation of apps that keep their id and keys (protocol/admin-api.md#apps). */

const api = useTestApi();
const create = (body: object) =>
  api.request('POST', '/console/api/apps', { admin: true, body: { name: 'Shop', ...body } });

const newIdentity = (end = '-gzGzoHsz') => ({
  appId: `${newKey()}${end}`,
  appKey: newKey(),
  masterKey: newKey(),
  hookKey: newKey(),
});

describe('an app that moves in', () => {
  test.each([
    ['with the end of a region', newIdentity()],
    ['of the international edition', newIdentity('-MdYXbMMI')],
    ['of the east', newIdentity('-9Nh9j0Va')],
    ['without an end', newIdentity('')],
    ['of the longest id and keys', { ...newIdentity(newKey()), appKey: newKey() + newKey() }],
  ])('keeps its id and keys: %s', async (_case, identity) => {
    const { status, body } = await create(identity);
    expect({ status, body }).toMatchObject({ status: 201, body: identity });
    expect((await api.request('GET', '/1.1/installations/none', { app: body })).status).toBe(200);
    expect((await api.request('GET', '/1.1/users', { app: body, master: true })).status).toBe(200);
  });

  test('gets generated keys for the missing ones', async () => {
    const { appId, masterKey } = newIdentity();
    const { body } = await create({ appId, masterKey });
    expect(body).toMatchObject({ appId, masterKey, appKey: expect.stringMatching(/^\w{24}$/) });
    expect(new Set([body.appKey, body.masterKey, body.hookKey]).size).toBe(3);
  });

  test('trusts the phone numbers of its users, unless its options say otherwise', async () => {
    const trusts = async (body: object) => (await create(body)).body.options.trustUnverifiedNumbers;
    expect(await trusts(newIdentity())).toBe(true);
    expect(await trusts({ ...newIdentity(), options: { trustUnverifiedNumbers: false } })).toBe(
      false,
    );
    expect(await trusts({})).toBe(false);
    expect(await trusts({ appKey: newKey() })).toBe(false);
  });

  test('returns 409 and changes nothing if its id is taken', async () => {
    const identity = newIdentity();
    await create(identity);
    const { status, body } = await create({ ...newIdentity(), appId: identity.appId });
    expect({ status, body }).toEqual({
      status: 409,
      body: { code: 409, error: 'There is an app with this id already.' },
    });
    const path = `/console/api/apps/${identity.appId}`;
    expect((await api.request('GET', path, { admin: true })).body).toMatchObject(identity);
  });

  test('is created once by two concurrent calls', async () => {
    const { appId } = newIdentity();
    const statuses = (await Promise.all([create({ appId }), create({ appId })])).map(
      ({ status }) => status,
    );
    expect(statuses.sort()).toEqual([201, 409]);
  });

  test('is found immediately, even after a recent lookup of its id', async () => {
    const identity = newIdentity();
    const ask = () => api.request('GET', '/1.1/users', { app: identity, master: true });
    expect((await ask()).status).toBe(401);
    await create(identity);
    expect((await ask()).status).toBe(200);
  });

  test.each([
    ['an id that is short', { appId: 'shop' }],
    ['an id that is long', { appId: 'x'.repeat(65) }],
    ['an id of other characters', { appId: `${newKey()}/../x` }],
    ['an id that begins like an option', { appId: `-${newKey()}` }],
    ['an id that is not a text', { appId: 12345678 }],
    ['an empty key', { appKey: '' }],
    ['a short key', { masterKey: 'x'.repeat(15) }],
    ['a long key', { masterKey: 'x'.repeat(65) }],
    ['a key with the mark of the master key', { appKey: `${newKey()},master` }],
    ['a key of lines', { hookKey: `${newKey()}\n` }],
    ['an unknown key', { restKey: newKey() }],
  ])('%s is refused with 400', async (_case, sent) => {
    const { status, body } = await create(sent);
    expect({ status, code: body.code }).toEqual({ status: 400, code: 111 });
    for (const value of Object.values(sent))
      if (String(value).length > 8) expect(body.error).not.toContain(String(value));
  });

  test.each([
    ['appKey', 'masterKey'],
    ['masterKey', 'hookKey'],
    ['appKey', 'hookKey'],
  ])('%s and %s must differ', async (one, other) => {
    const key = newKey();
    const { status, body } = await create({ [one]: key, [other]: key });
    expect({ status, body }).toEqual({
      status: 400,
      body: { code: 1, error: 'appKey, masterKey and hookKey must differ from each other.' },
    });
  });
});
