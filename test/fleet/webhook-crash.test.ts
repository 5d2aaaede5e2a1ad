import { expect, test } from 'vitest';
import { sleep } from '../../shared/clock.ts';
import { changeMaxAgeMs } from '../../shared/ttl-cache.ts';
import { beginPush } from '../support/gateways/app-gateway.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { startWebhookReceiver, verified } from '../support/servers/webhook-receiver.ts';
import { useTestService } from '../support/service.ts';

const service = useTestService();
const dispatchers = useDispatcherProcesses(service);

const pushes = 60;

test('kill -9 of the dispatcher during deliveries loses no event', {
  timeout: 120_000,
}, async () => {
  const app = await service.api.createApp();
  await service.addApnsProfile(app);
  const receiver = await startWebhookReceiver();
  const held: (() => void)[] = [];
  receiver.respond = (response) => held.push(() => response.writeHead(204).end());
  const path = `/console/api/apps/${app.appId}/webhooks/crash`;
  const body = { url: receiver.url, events: ['push.done'] };
  const created = await service.api.request('PUT', path, { admin: true, body });
  await sleep(changeMaxAgeMs + 50);
  const first = await dispatchers.start();
  const started = Array.from({ length: pushes }, () =>
    beginPush(service, app, { where: { objectId: 'nobody' } }),
  );
  const objectIds = await Promise.all(started);
  await expect.poll(() => held.length, { timeout: 30_000 }).toBe(4);
  const ended = new Promise((resolve) => first.once('exit', resolve));
  first.kill('SIGKILL');
  await ended;
  receiver.respond = (response) => response.writeHead(204).end();
  for (const answer of held) answer();
  await dispatchers.start();
  const received = () =>
    new Set(
      receiver
        .of('push.done')
        .map((request) => verified(String(created.body.secret), request).data.push),
    );
  await expect.poll(() => received().size, { timeout: 60_000 }).toBe(pushes);
  expect([...received()].toSorted()).toEqual(objectIds.toSorted());
  // The four requests in flight are repeated with their ids.
  const ids = new Set(receiver.requests.map(({ headers }) => headers['webhook-id']));
  expect(ids.size).toBe(pushes);
  expect(receiver.requests.length).toBeLessThanOrEqual(pushes + 4);
  await receiver.close();
});
