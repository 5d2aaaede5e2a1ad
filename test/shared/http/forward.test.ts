import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ForwardClient, type ForwardLimits } from '../../../shared/http/client.ts';
import {
  answerWith,
  startFunctionHost,
  type TestFunctionHost,
} from '../../support/servers/function-host.ts';

let host: TestFunctionHost;
beforeAll(async () => {
  host = await startFunctionHost();
});
afterAll(() => host.close());

const post = {
  method: 'POST',
  path: '/x',
  headers: { 'content-type': 'application/json' },
} as const;

async function withClient(
  limits: Partial<ForwardLimits>,
  work: (client: ForwardClient) => Promise<void>,
) {
  const client = new ForwardClient(host.url, limits);
  await work(client);
  await client.close();
}

const failed = (reason: string) => ({ kind: 'failed', reason });

describe('a forwarded request', () => {
  test('times out if the server does not respond, and frees its slot', async () => {
    host.answers.set('/x', (request) => void request.resume());
    await withClient({ waitMs: 50, inFlight: 1 }, async (client) => {
      for (let i = 0; i < 3; i += 1)
        expect(await client.forward({ ...post, body: '{}' })).toEqual(failed('timeout'));
    });
    host.answers.delete('/x');
  });

  test('fails if it is too large', async () => {
    await withClient({ requestBytes: 100 }, async (client) => {
      expect(await client.forward({ ...post, body: 'x'.repeat(101) })).toEqual(
        failed('request_too_large'),
      );
    });
  });

  test('is refused above the limit of concurrent requests', async () => {
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

  test('is not sent after close, or with an invalid path', async () => {
    const client = new ForwardClient(host.url);
    for (const path of ['x', '/a b', '/a\r\nX: y', '/é'])
      expect(await client.forward({ ...post, path, body: '{}' })).toEqual(failed('bad_request'));
    await client.close();
    expect(await client.forward({ ...post, body: '{}' })).toEqual(failed('closed'));
  });
});
