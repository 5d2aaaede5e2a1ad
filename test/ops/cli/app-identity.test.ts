import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newKey } from '../../../shared/domain/ids.ts';
import { testEnvironment } from '../../support/api.ts';
import { type CliOptions, carillon } from '../../support/cli.ts';
import { useTestApi } from '../../support/test-api.ts';

/** Tests `carillon app create --app-id … --keys-file …`. */
let folder: string;

const api = useTestApi();
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-identity-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true });
});

const create = (args: string[], options: CliOptions = {}) => {
  const env = { ...testEnvironment(api.databaseUrl), PUBLIC_URL: api.url };
  return carillon(['app', 'create', 'Shop', ...args, '--json'], { cwd: folder, env, ...options });
};
const newKeys = () => ({ appKey: newKey(), masterKey: newKey(), hookKey: newKey() });

describe('carillon app create', () => {
  test('reads id and keys from a file or standard input, and generates missing keys', async () => {
    const first = { appId: `${newKey()}-gzGzoHsz`, ...newKeys() };
    const { appId, ...keys } = first;
    await writeFile(join(folder, 'keys.json'), JSON.stringify(keys));
    const created = await create([
      'hybridPush=true',
      '--app-id',
      appId,
      '--keys-file',
      'keys.json',
    ]);
    expect(created).toMatchObject({ code: 0, stderr: '' });
    expect(created.json()).toMatchObject({
      ...first,
      options: { hybridPush: true, trustUnverifiedNumbers: true },
    });

    const { masterKey } = newKeys();
    const stdin = JSON.stringify({ masterKey });
    const other = (await create(['--app-id', newKey(), '--keys-file', '-'], { stdin })).json();
    expect(other).toMatchObject({ masterKey, appKey: expect.stringMatching(/^\w{24}$/) });

    const again = await create(['--app-id', appId, '--keys-file', 'keys.json']);
    expect(again.code).toBe(1);
    expect(again.json()).toEqual({ code: 409, error: 'There is an app with this id already.' });
  });

  test('exits with 2 for an invalid id, and names the option', async () => {
    const { code, json } = await create(['--app-id', 'a shop']);
    expect(code).toBe(2);
    expect(json().error).toMatch(/^--app-id must be /);
  });

  test.each([
    [
      'a member that is not a key',
      { appKey: newKey(), restKey: 'SESAME' },
      'standard input: there is no member restKey.',
    ],
    [
      'a malformed key',
      { appKey: 'SESAME' },
      'standard input: appKey must be 16 to 64 letters, digits, - and _.',
    ],
    ['equal keys', { appKey: 'SESAME'.repeat(3), hookKey: 'SESAME'.repeat(3) }, 'must differ'],
    ['a list', ['SESAME'], 'holds no JSON dictionary'],
  ])('exits with 1 for %s and quotes no key', async (_case, keys, message) => {
    const { code, stdout, json } = await create(['--keys-file', '-'], {
      stdin: JSON.stringify(keys),
    });
    expect(code).toBe(1);
    expect(json().error).toContain(message);
    expect(stdout).not.toContain('SESAME');
  });
});
