import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createForwardClient, type ForwardLimits } from '../../../shared/http/forward.ts';
import { answerWith, startFunctionHost, type TestFunctionHost } from '../../support/servers/function-host.ts';

let host: TestFunctionHost;
beforeAll(async () => {
  host = await startFunctionHost();
});
afterAll(() => host.close());

const post = { method: 'POST', path: '/x', headers: { 'content-type': 'application/json' } } as const;

async function withClient(
  limits: Partial<ForwardLimits>,
  work: (client: ReturnType<typeof createForwardClient>) => Promise<void>,
) {
  const client = createForwardClient(host.url, limits);
  await work(client);
  await client.close();
}

const failed = (reason: string) => ({ kind: 'failed', reason });

describe('a request that goes on', () => {
  test('is given up when the server does not answer in time, and its place is free again', async () => {
    host.answers.set('/x', (request) => void request.resume());
    await withClient({ waitMs: 50, inFlight: 1 }, async (client) => {
      for (let i = 0; i < 3; i += 1)
        expect(await client.forward({ ...post, body: '{}' })).toEqual(failed('timeout'));
    });
    host.answers.delete('/x');
  });

  test('whose sender is slow is given up, and the wait for the answer begins with its end', async () => {
    await withClient({ uploadMs: 100, waitMs: 20_000 }, async (client) => {
      const stalled = new PassThrough();
      stalled.write('{');
      expect(await client.forward({ ...post, body: stalled })).toEqual(failed('upload_timeout'));
    });
    await withClient({ uploadMs: 20_000, waitMs: 100 }, async (client) => {
      host.answers.set('/x', (request) => void request.resume());
      const whole = new PassThrough();
      whole.end('{}');
      expect(await client.forward({ ...post, body: whole })).toEqual(failed('timeout'));
      host.answers.delete('/x');
    });
  });

  test('whose sender goes away, or sends too much, fails; the sender can still be answered', async () => {
    await withClient({ requestBytes: 100 }, async (client) => {
      const gone = new PassThrough();
      gone.write('{');
      const reply = client.forward({ ...post, body: gone });
      gone.destroy();
      expect(await reply).toEqual(failed('upload_broken'));
      const long = new PassThrough();
      long.end('x'.repeat(1000));
      expect(await client.forward({ ...post, body: long })).toEqual(failed('request_too_large'));
      expect(long.destroyed && long.errored !== null).toBe(false);
      expect(await client.forward({ ...post, body: 'x'.repeat(101) })).toEqual(failed('request_too_large'));
    });
  });

  test('waits in no line: beyond the limit it is refused', async () => {
    const waiting: (() => void)[] = [];
    host.answers.set('/x', (request, response) => {
      waiting.push(() => answerWith(200, {})(request, response));
    });
    await withClient({ inFlight: 2 }, async (client) => {
      const first = [1, 2].map(() => client.forward({ ...post, body: '{}' }));
      expect(await client.forward({ ...post, body: '{}' })).toEqual(failed('busy'));
      await expect.poll(() => waiting.length).toBe(2);
      for (const answer of waiting) answer();
      host.answers.delete('/x');
      for (const reply of await Promise.all(first)) {
        expect(reply).toMatchObject({ kind: 'response', status: 200 });
        if (reply.kind === 'response') await text(reply.body);
      }
      expect(await client.forward({ ...post, body: '{}' })).toMatchObject({ kind: 'response' });
    });
  });

  test('is taken no faster than the server reads', async () => {
    let read: (() => void) | undefined;
    host.answers.set('/x', (request, response) => {
      read = () => answerWith(200, {})(request, response);
    });
    await withClient({ requestBytes: 256 * 1024 * 1024 }, async (client) => {
      const source = new PassThrough();
      const piece = Buffer.alloc(1024 * 1024);
      let taken = 0;
      const reply = client.forward({ ...post, body: source });
      // The server reads nothing: what its and our buffers do not hold stays with the sender.
      while (taken < 128 && source.write(piece)) taken += 1;
      while (taken < 128) {
        const isTaken = await Promise.race([
          new Promise((resolve) => source.once('drain', () => resolve(true))),
          new Promise((resolve) => setTimeout(resolve, 500, false)),
        ]);
        if (!isTaken) break;
        source.write(piece);
        taken += 1;
      }
      expect(taken).toBeLessThan(64);
      source.end();
      read?.();
      const end = await reply;
      expect(end).toMatchObject({ kind: 'response', status: 200 });
      if (end.kind === 'response') await text(end.body);
    });
    host.answers.delete('/x');
  });

  test('is not sent by a closed door, nor by a path that is none', async () => {
    const client = createForwardClient(host.url);
    for (const path of ['x', '/a b', '/a\r\nX: y', '/é'])
      expect(await client.forward({ ...post, path, body: '{}' })).toEqual(failed('bad_request'));
    await client.close();
    expect(await client.forward({ ...post, body: '{}' })).toEqual(failed('closed'));
  });
});
