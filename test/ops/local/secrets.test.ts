import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ensureSecrets,
  readRunInfo,
  readSecrets,
  removeRunInfo,
  writeRunInfo,
} from '../../../ops/local/data-files.ts';
import { carillon } from '../../support/cli.ts';

let parent: string;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'carillon-secrets-'));
});
afterAll(() => rm(parent, { recursive: true }));

let count = 0;
const newFolder = () => {
  count += 1;
  return join(parent, `data-${count}`);
};

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe('ensureSecrets', () => {
  test('creates both with mode 600 for any umask; the second start reads them', async () => {
    const folder = newFolder();
    const umask = process.umask(0);
    const first = await ensureSecrets(folder);
    process.umask(umask);
    expect(first.created).toEqual(['adminToken', 'secret']);
    expect(first.adminToken).toMatch(/^[\w-]{32}$/);
    expect(Buffer.from(first.secret, 'base64')).toHaveLength(32);
    expect((await readdir(folder)).sort()).toEqual(['admin-token', 'secret']);
    for (const name of ['admin-token', 'secret'])
      expect(await modeOf(join(folder, name))).toBe(0o600);
    expect(await ensureSecrets(folder)).toEqual({ ...first, created: [] });
    expect(await readSecrets(folder)).toEqual({
      adminToken: first.adminToken,
      secret: first.secret,
    });
  });

  test('uses the same secrets for concurrent starts', async () => {
    const folder = newFolder();
    const all = await Promise.all(Array.from({ length: 20 }, () => ensureSecrets(folder)));
    expect(new Set(all.map(({ adminToken, secret }) => `${adminToken} ${secret}`)).size).toBe(1);
    expect(all.flatMap(({ created }) => created).sort()).toEqual(['adminToken', 'secret']);
    expect((await readdir(folder)).sort()).toEqual(['admin-token', 'secret']);
  });

  test('prefers the environment, which is not written to files', async () => {
    const folder = newFolder();
    const given = { adminToken: 'from the environment', secret: 'as well' };
    expect(await ensureSecrets(folder, given)).toEqual({ ...given, created: [] });
    expect(await readdir(folder)).toEqual([]);
    await ensureSecrets(folder);
    expect(await readSecrets(folder, given)).toEqual(given);
    const { secret } = await readSecrets(folder, { adminToken: 'mine' });
    expect(secret).toBe((await readFile(join(folder, 'secret'), 'utf8')).trim());
  });

  test('refuses an empty file, because a new secret could not decrypt the data', async () => {
    const folder = newFolder();
    await ensureSecrets(folder);
    await writeFile(join(folder, 'secret'), '\n');
    await expect(ensureSecrets(folder)).rejects.toThrow('secret is empty');
  });

  test('sets mode 600 on a file that others can read', async () => {
    const folder = newFolder();
    await ensureSecrets(folder);
    await chmod(join(folder, 'secret'), 0o644);
    await readSecrets(folder);
    expect(await modeOf(join(folder, 'secret'))).toBe(0o600);
  });

  test.runIf(process.getuid?.() === 0)('reports the owner to another user', async () => {
    const folder = newFolder();
    await ensureSecrets(folder);
    await chmod(parent, 0o755);
    const module = new URL('../../../ops/local/data-files.ts', import.meta.url).href;
    // The child changes its user after it has loaded the sources, because the other user may not be
    // able to read them.
    const script = `import('${module}').then((m) => {
      process.setgroups([]); process.setgid(65534); process.setuid(65534);
      return m.readSecrets('${folder}');
    }).then(() => console.log('read them'), (e) => console.log(e.message))`;
    const child = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8', cwd: '/' });
    expect(child).toMatchObject({ status: 0, signal: null, stderr: '' });
    expect(child.error).toBeUndefined();
    expect(child.stdout).toContain('belongs to another user');
  });
});

describe('the run info of a service', () => {
  test('can be read only by its owner, and is removed at the end', async () => {
    const folder = newFolder();
    await ensureSecrets(folder);
    expect(await readRunInfo(folder)).toEqual({});
    const where = {
      url: 'http://127.0.0.1:1',
      databaseUrl: 'postgresql://x',
      metricsUrl: 'http://127.0.0.1:2',
    };
    await writeRunInfo(folder, { ...where, url: 'http://127.0.0.1:9' });
    await writeRunInfo(folder, where);
    expect(await readRunInfo(folder)).toEqual(where);
    expect(await modeOf(join(folder, 'database-url'))).toBe(0o600);
    await removeRunInfo(folder);
    expect(await readRunInfo(folder)).toEqual({});
    expect((await readdir(folder)).sort()).toEqual(['admin-token', 'secret']);
  });

  test('is used by a command in the same folder, unless the environment overrides it', async () => {
    const cwd = newFolder();
    const folder = join(cwd, '.carillon');
    await ensureSecrets(folder);
    await writeRunInfo(folder, {
      url: 'http://127.0.0.1:9',
      databaseUrl: 'postgresql://x',
      metricsUrl: 'http://127.0.0.1:9',
    });
    expect((await carillon(['app', 'list'], { cwd })).stderr).toContain('at http://127.0.0.1:9:');
    const elsewhere = await carillon(['app', 'list'], { cwd, env: { PORT: '11' } });
    expect(elsewhere.stderr).toContain('at http://127.0.0.1:11:');
  });
});
