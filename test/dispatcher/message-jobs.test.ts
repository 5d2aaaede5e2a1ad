import { getEventListeners } from 'node:events';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openProviders, type Providers } from '../../connectors/providers.ts';
import { type MessengerDeps, sendMessage } from '../../dispatcher/messages/messenger.ts';
import { systemClock } from '../../shared/clock.ts';
import { Vault } from '../../shared/crypto.ts';
import { AppCache } from '../../shared/db/app-cache.ts';
import { WebhookEvents } from '../../shared/db/webhook-events.ts';
import { createMetrics } from '../../shared/metrics.ts';
import { messageJob } from '../../shared/queue/jobs.ts';
import { enqueueMessage } from '../../shared/queue/message-jobs.ts';
import { JobQueue } from '../../shared/queue/queue.ts';
import { silentLog, testConfig } from '../support/api.ts';
import { openTestDatabase } from '../support/database.ts';
import { type SmsWebhook, startSmsWebhook } from '../support/servers/sms-webhook.ts';

const { db, url } = await openTestDatabase();
let deps: MessengerDeps;
let providers: Providers;
let webhook: SmsWebhook;
const metrics = createMetrics();
const queue = new JobQueue(db, silentLog, { supervise: false });

beforeAll(async () => {
  await queue.start();
  webhook = await startSmsWebhook();
  const config = testConfig(url, { SMS_WEBHOOK_URL: webhook.url });
  const vault = new Vault(config.secrets);
  const webhooks = new WebhookEvents(db, new AppCache(db, vault, systemClock));
  deps = { db, vault, queue, clock: systemClock, log: silentLog, metrics, webhooks };
  providers = openProviders(config, deps);
});
afterAll(async () => {
  await providers?.sms?.close();
  await webhook?.close();
  await queue.stop();
});

/** Writes a message, and takes its job. */
async function takeMessage() {
  await db.transaction((tx) =>
    enqueueMessage(deps, tx, 'app', {
      kind: 'sms',
      to: '+8613800000001',
      type: 'general',
      text: '123456',
      code: '123456',
      sms: { isVoice: false, sign: 'My app', variables: {} },
    }),
  );
  const [job] = await queue.fetch(messageJob, 1);
  if (!job) throw new Error('no job');
  return job;
}

const counted = async () =>
  (await metrics.messages.get()).values.reduce((sum, { value }) => sum + value, 0);

test('a message leaves no listener on the signal of its consumer', async () => {
  const { signal } = new AbortController();
  expect(await sendMessage(deps, providers, await takeMessage(), { signal })).toBe('done');
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});

test('a message whose job another consumer has taken over is not counted', async () => {
  const job = await takeMessage();
  const before = await counted();
  const late = { ...job, retryCount: job.retryCount + 1 };
  const { signal } = new AbortController();
  await sendMessage(deps, providers, late, { signal });
  expect(await counted()).toBe(before);
  await sendMessage(deps, providers, job, { signal });
  expect(await counted()).toBe(before + 1);
});
