import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { freePort } from '../../../ops/local/ports.ts';
import { testEnvironment } from '../../support/api.ts';
import { readDevices } from '../../support/tables.ts';
import { useTestApi } from '../../support/test-api.ts';

const api = useTestApi();

test('an api that is killed during many saves has confirmed only stored saves', async () => {
  const app = await api.createApp();
  const port = await freePort();
  const env = { ...process.env, ...testEnvironment(api.databaseUrl), PORT: String(port) };
  const child = fork(fileURLToPath(new URL('../../../api/main.ts', import.meta.url)), { env });
  await once(child, 'message');
  const headers = {
    'X-LC-Id': app.appId,
    'X-LC-Key': app.appKey,
    'Content-Type': 'application/json',
  };
  const answered: string[] = [];
  const client = async (number: number) => {
    for (let i = 0; ; i += 1) {
      const body = JSON.stringify({
        deviceType: 'android',
        installationId: `device-${number}-${i}`,
      });
      const reply = await fetch(`http://127.0.0.1:${port}/1.1/installations`, {
        method: 'POST',
        headers,
        body,
      });
      answered.push(((await reply.json()) as { objectId: string }).objectId);
      if (answered.length === 500) child.kill('SIGKILL');
    }
  };
  const ended = await Promise.allSettled(Array.from({ length: 16 }, (_, number) => client(number)));
  expect(ended.every(({ status }) => status === 'rejected')).toBe(true);
  expect(answered.length).toBeGreaterThanOrEqual(500);
  const stored = new Set((await readDevices(api.db, app)).map(({ objectId }) => objectId));
  expect(answered.filter((objectId) => !stored.has(objectId))).toEqual([]);
});
