import { expect, test } from 'vitest';
import { Breakers } from '../../../dispatcher/breakers/breakers.ts';
import { defaultBreakerTiming } from '../../../shared/breaker.ts';
import { systemClock } from '../../../shared/clock.ts';
import { Vault } from '../../../shared/crypto.ts';
import { AppCache } from '../../../shared/db/app-cache.ts';
import { WebhookEvents } from '../../../shared/db/webhook-events.ts';
import type { BreakerKey } from '../../../shared/domain/breaker.ts';
import { createLogger } from '../../../shared/process/logging.ts';
import { testConfig } from '../../support/api.ts';
import { openTestDatabase } from '../../support/database.ts';

const { db, url } = await openTestDatabase();
const appCache = new AppCache(db, new Vault(testConfig(url).secrets), systemClock);
const failed = { health: { requests: 60, failed: 60 }, failureReason: 'connect_failed' };
const answered = { health: { requests: 60, failed: 0 }, failureReason: null };

/** Returns the breakers of a dispatcher with a short cooldown. */
function aDispatcher({ coolDownMs = 20 } = {}): Breakers {
  return new Breakers({
    db,
    webhooks: new WebhookEvents(db, appCache),
    clock: systemClock,
    log: createLogger({ level: 'silent', name: 'test' }),
    timing: { ...defaultBreakerTiming, coolDownMs, maxCooldownMs: coolDownMs },
    maxSlow: 4,
    wakeWaiting: () => Promise.resolve(),
  });
}

async function sendBatch(
  breakers: Breakers,
  key: BreakerKey,
  health: typeof failed | typeof answered,
) {
  const slot = await breakers.acquire(key);
  if (slot.kind !== 'permit') throw new Error('the breaker lets no batch pass');
  await slot.release(health);
}

async function statesOf({ appId }: BreakerKey): Promise<string[]> {
  const { rows } = await db.query<{ state: string }>(
    'SELECT state FROM breaker_state WHERE app_id = $1 ORDER BY state',
    [appId],
  );
  return rows.map(({ state }) => state);
}

/** Returns a dispatcher whose breaker is half-open. */
async function aHalfOpen(key: BreakerKey): Promise<Breakers> {
  const breakers = aDispatcher();
  await sendBatch(breakers, key, failed);
  await untilHalfOpen(breakers, key);
  return breakers;
}

async function untilHalfOpen(breakers: Breakers, key: BreakerKey): Promise<void> {
  const states = async () => {
    await breakers.maintain();
    return statesOf(key);
  };
  await expect.poll(states).toEqual(['half-open']);
}

test('a half-open breaker without traffic closes if another dispatcher gets a reply', async () => {
  const key: BreakerKey = { appId: 'answered', connector: 'apns', profile: '_default' };
  const peer = aDispatcher();
  const halfOpen = await aHalfOpen(key);
  await sendBatch(peer, key, answered);
  await peer.maintain();
  await halfOpen.maintain();
  await halfOpen.maintain();
  expect(await statesOf(key)).toEqual(['closed', 'closed']);
  await Promise.all([halfOpen.close(), peer.close()]);
});

test('it stays half-open if the last reply elsewhere is older than its own failure', async () => {
  const key: BreakerKey = { appId: 'older', connector: 'apns', profile: '_default' };
  const peer = aDispatcher();
  await sendBatch(peer, key, answered);
  const halfOpen = await aHalfOpen(key);
  await peer.maintain();
  await halfOpen.maintain();
  await halfOpen.maintain();
  expect(await statesOf(key)).toEqual(['closed', 'half-open']);
  await Promise.all([halfOpen.close(), peer.close()]);
});

test('it waits for its own probe while it has waiting batches', async () => {
  const key: BreakerKey = { appId: 'waiting', connector: 'apns', profile: '_default' };
  const peer = aDispatcher();
  const breakers = aDispatcher({ coolDownMs: 500 });
  await sendBatch(breakers, key, failed);
  // Batches that arrive during the cooldown return after at least half a second, 10 ms apart.
  for (let batch = 0; batch < 500; batch++) expect(await breakers.waitMs(key)).toBeGreaterThan(0);
  await untilHalfOpen(breakers, key);
  await sendBatch(peer, key, answered);
  await peer.maintain();
  await breakers.maintain();
  expect(await statesOf(key)).toEqual(['closed', 'half-open']);
  await sendBatch(breakers, key, answered);
  await breakers.maintain();
  expect(await statesOf(key)).toEqual(['closed', 'closed']);
  await Promise.all([breakers.close(), peer.close()]);
});
