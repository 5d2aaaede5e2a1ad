import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../ops/local/ports.ts';
import { beginPush, createAppOn } from '../support/gateways/app-gateway.ts';
import { useDispatcherProcesses } from '../support/servers/dispatcher-processes.ts';
import { useTestService } from '../support/service.ts';

// Few streams, so that a dispatcher waits for the gateway and not for the CPU. So a second
// dispatcher doubles the speed.
const service = useTestService({ gateway: { maxStreams: 100 } });
const processes = useDispatcherProcesses(service);
afterEach(() => service.apns.behave());

interface Dispatcher {
  child: ChildProcess;
  /** Returns the number of an app's recipients in the batches that it has sent and recorded. */
  sentTo(appId: string): Promise<number>;
}

async function startDispatcher(): Promise<Dispatcher> {
  const port = await freePort();
  const child = await processes.start({ METRICS_PORT: String(port), DISPATCHER_THREADS: '1' });
  return {
    child,
    async sentTo(appId) {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      const line = new RegExp(
        `^carillon_recipients_total\\{app="${appId}".*outcome="sent"\\} (\\d+)$`,
        'm',
      );
      return Number(line.exec(text)?.[1] ?? 0);
    },
  };
}

const slow = (delayMs: number) => service.apns.misbehave({ kind: 'slow', delayMs });

async function untilAllSent(
  app: Parameters<typeof beginPush>[1],
  objectId: string,
  tokens: string[],
) {
  expect(await service.untilDone(app, objectId, 200_000)).toMatchObject({
    status: 'done',
    devices: tokens.length,
    outcomes: { sent: tokens.length },
    repeats: 0,
  });
  expect(tokens.filter((token) => service.apns.seen(token) !== 1)).toEqual([]);
}

describe('a running push', { timeout: 300_000 }, () => {
  let first: Dispatcher;
  let second: Dispatcher;
  beforeAll(async () => {
    first = await startDispatcher();
  });

  test('is shared with a dispatcher that starts in the middle of it', async () => {
    // When the gateway becomes faster, the first dispatcher has up to 12 batches of 5,000 in work.
    // The rest is shared.
    const devices = 160_000;
    const { app, tokens } = await createAppOn(service, null, devices);
    // Until the second dispatcher works, most of the push has to wait.
    slow(200);
    const objectId = await beginPush(service, app);
    await service.apns.waitFor(1000);
    second = await startDispatcher();
    const own = await first.sentTo(app.appId);
    expect(own).toBeLessThan(devices / 2);
    slow(20);
    await untilAllSent(app, objectId, tokens);
    const shares = [(await first.sentTo(app.appId)) - own, await second.sentTo(app.appId)];
    expect(shares[0]).toBe(devices - own - (shares[1] ?? 0));
    expect(Math.min(...shares), `shares ${shares}`).toBeGreaterThan((devices - own) / 4);
  });

  test('continues on another dispatcher if one is stopped', async () => {
    const { app, tokens } = await createAppOn(service, null, 20_000);
    const before = service.apns.total;
    slow(50);
    const objectId = await beginPush(service, app);
    await service.apns.waitFor(before + 3000);
    const exited = once(first.child, 'exit');
    first.child.kill('SIGTERM');
    expect(await exited).toEqual([0, null]);
    const own = await second.sentTo(app.appId);
    const left = tokens.length - (service.apns.total - before);
    expect(left).toBeGreaterThan(0);
    await untilAllSent(app, objectId, tokens);
    expect((await second.sentTo(app.appId)) - own).toBeGreaterThanOrEqual(left);
  });
});
