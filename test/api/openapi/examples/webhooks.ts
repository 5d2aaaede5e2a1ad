import type { ExampleRecorder } from './recorder.ts';

/** Records the calls of webhooks of an app and of the service. No dispatcher may run. */
export async function recordWebhooks(calls: ExampleRecorder): Promise<void> {
  const events = ['push.done', 'push.failed', 'recipients.outcome'];
  await recordEndpoint(calls, 'Webhook', {
    name: 'backend',
    body: { url: 'https://example.com/hooks', events },
  });
  const url = 'https://hooks.slack.com/services/T0000/B0000/example';
  await recordEndpoint(calls, 'ServiceWebhook', {
    name: 'team',
    body: { url, events: ['breaker.opened', 'credentials.ending'], format: 'slack' },
  });
}

async function recordEndpoint(
  calls: ExampleRecorder,
  noun: string,
  { name, body }: { name: string; body: object },
): Promise<void> {
  const path = { name };
  await calls.send(`put${noun}`, { path, body });
  await calls.send(`list${noun}s`);
  await calls.send(`get${noun}`, { path });
  await calls.send(`rotate${noun}`, { path });
  const { id } = await calls.send(`test${noun}`, { path });
  await calls.send(`list${noun}Deliveries`, { path, query: { state: 'waiting', limit: 20 } });
  await calls.send(`redeliver${noun}Delivery`, { path: { ...path, id } });
  await calls.send(`delete${noun}`, { path });
}
