import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { useTestService } from '../../support/service.ts';
import { blocksOf, runShell, serviceEnvironment } from './pages.ts';

const service = useTestService();
const docs = new URL('../../../docs/', import.meta.url);
const pages = (await readdir(new URL('credentials/', docs))).filter((one) => one !== 'README.md');

/** Files that a reader has downloaded from the vendor, with invented keys. */
async function downloadFiles(folder: string): Promise<void> {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey;
  const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  const pem = (key: typeof rsa) => String(key.export({ type: 'pkcs8', format: 'pem' }));
  const google = {
    type: 'service_account',
    project_id: 'example-app',
    client_email: 'firebase-adminsdk@example-app.iam.gserviceaccount.com',
    private_key: pem(rsa),
    private_key_id: '0123456789abcdef',
    token_uri: 'https://oauth2.googleapis.com/token',
  };
  const huawei = { project_id: '1', key_id: '2', sub_account: '3', private_key: pem(rsa) };
  await writeFile(join(folder, 'AuthKey_ABCDE12345.p8'), pem(ec));
  await writeFile(join(folder, 'example-app-firebase-adminsdk.json'), JSON.stringify(google));
  await writeFile(join(folder, 'service-account.json'), JSON.stringify(huawei));
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'carillon-credentials-'));
  await downloadFiles(folder);
});
afterAll(() => rm(folder, { recursive: true }));

test.each(pages)('the commands of credentials/%s store credentials', async (page) => {
  const app = await service.api.createApp();
  const blocks = await blocksOf(`credentials/${page}`, 'sh');
  // A check asks the vendor.
  const commands = blocks.filter((block) => !block.includes('profile check'));
  expect(commands.length).toBeLessThan(blocks.length);
  const result = await runShell([`APP_ID=${app.appId}`, ...commands], {
    cwd: folder,
    env: serviceEnvironment(service),
  });
  expect(result, result.stderr).toMatchObject({ code: 0 });
  expect(result.stdout).toContain('_default');
});

/** Texts that Carillon reports, in a language, with their parameters as `*`. */
async function reportedTexts(language: string): Promise<string[]> {
  const catalogue = JSON.parse(
    await readFile(
      new URL(`../../../shared/domain/texts/${language}.json`, import.meta.url),
      'utf8',
    ),
  );
  return ['hints', 'reasons', 'details'].flatMap((part) =>
    Object.values<string>(catalogue[part]).filter((text) => typeof text === 'string'),
  );
}

const escaped = (text: string) => text.replaceAll(/[.*+?^$()|[\]\\]/g, '\\$&');

test.each([
  ['en', 'credentials/', '| Carillon says |'],
  ['zh', 'zh/credentials/', '| Carillon 的提示 |'],
])('the problems in the %s pages are texts that Carillon reports', async (language, path, head) => {
  const known = (await reportedTexts(language)).map(
    (text) => new RegExp(`^${escaped(text).replaceAll(/\{\w+\}/g, '.+')}$`),
  );
  for (const page of pages) {
    const content = await readFile(new URL(path + page, docs), 'utf8');
    const [, table = ''] = content.split(head);
    const rows = [...(table.split('\n\n')[0] ?? '').matchAll(/^\| (?!-)(.+?) \| /gm)];
    const texts = rows.map(([, text = '']) => text);
    expect(texts.length, page).toBeGreaterThan(1);
    const unknown = texts.filter((text) => !known.some((form) => form.test(text)));
    expect(unknown, page).toEqual([]);
  }
});
