import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useTestService } from '../../support/service.ts';
import { blocksOf, runShell, serviceEnvironment } from './pages.ts';

const service = useTestService();

test('docs/opens.md has commands and code that count an opened message', async () => {
  await service.dispatch();
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const installationId = 'a-device';
  const device = { deviceType: 'ios', deviceToken: 'ab'.repeat(32), installationId };
  await service.api.request('POST', '/1.1/installations', { app, body: device });
  const [option = '', report = '', read = ''] = await blocksOf('opens.md', 'sh');
  const folder = await mkdtemp(join(tmpdir(), 'carillon-opens-'));
  const shell = (...commands: string[]) =>
    runShell(commands, {
      cwd: folder,
      env: serviceEnvironment(service),
    });
  const variables = `URL=${service.api.url} APP_ID=${app.appId} APP_KEY=${app.appKey}`;
  try {
    expect(await shell(variables, option)).toMatchObject({ code: 0 });
    let push = '';
    // A changed option takes effect on every process within one second.
    await expect
      .poll(async () => {
        const body = { data: { alert: 'Hello' } };
        const sent = await service.api.request('POST', '/1.1/push', { app, master: true, body });
        push = sent.body.objectId;
        return (await service.untilDone(app, push)).events;
      })
      .toEqual({ received: 0, opened: 0, dismissed: 0 });
    const own = report.replace('Zk3vQ0pWm7xYtR1b', push);
    expect(await shell(variables, own)).toMatchObject({ code: 0, stdout: '{}' });
    const [code = ''] = await blocksOf('opens.md', 'js');
    const start = `const [URL, APP_ID, APP_KEY] = ['${service.api.url}', '${app.appId}', '${app.appKey}'];`;
    const module = `${start}\n${code}\nexport { report };`;
    const { report: send } = await import(`data:text/javascript,${encodeURIComponent(module)}`);
    await send(installationId, push, 'received');
    await send(installationId, undefined, 'received');
    const { stdout } = await shell(variables, `PUSH=${push}`, read);
    expect(JSON.parse(stdout).events).toEqual({ received: 1, opened: 1, dismissed: 0 });
  } finally {
    await rm(folder, { recursive: true });
  }
});
