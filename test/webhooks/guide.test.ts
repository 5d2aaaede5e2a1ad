import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../ops/local/ports.ts';
import { blocksOf } from '../ops/docs/pages.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
let folder: string;

beforeAll(async () => {
  await service.dispatch();
  folder = await mkdtemp(join(tmpdir(), 'carillon-receiver-'));
  const modules = fileURLToPath(new URL('../../node_modules', import.meta.url));
  await symlink(modules, join(folder, 'node_modules'));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

test('the receiver of the guide verifies events, and refuses forged ones', async () => {
  const [program = ''] = await blocksOf('webhooks.md', 'js');
  const file = join(folder, 'receiver.mjs');
  await writeFile(file, program);
  const app = await service.api.createApp();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const path = `/console/api/apps/${app.appId}/webhooks/guide`;
  const endpoint = { admin: true, body: { url, events: ['push.done'] } };
  const { body } = await service.api.request('PUT', path, endpoint);
  const env = { ...process.env, PORT: String(port), WEBHOOK_SECRET: String(body.secret) };
  const receiver = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  receiver.stdout.on('data', (chunk) => {
    output += chunk;
  });
  try {
    const forged = () =>
      fetch(url, { method: 'POST', body: '{}' }).then(
        (reply) => reply.status,
        () => undefined,
      );
    await expect.poll(forged).toBe(401);
    await service.api.request('POST', `${path}/test`, { admin: true });
    await expect.poll(() => output).toContain(`webhook.test ${app.appId} {"webhook":"guide"}`);
  } finally {
    receiver.kill();
    await once(receiver, 'exit');
  }
});
