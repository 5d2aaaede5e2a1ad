import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FunctionHost } from '../../../ops/functions/host.ts';
import { RawRequest } from '../../support/raw-request.ts';

/** Tests the input that the function host accepts from a direct client. */
const token = 'a token of both of them';
const kb = 1024;
const limits = { bytesBelow: 100 * kb, totalBytes: 150 * kb };

let dir: string;
let url: string;
/** URL of a host with a short timeout for bodies. */
let hastyUrl: string;
const hosts: FunctionHost[] = [];

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'carillon-arguments-'));
  await writeFile(
    join(dir, 'length.js'),
    'export default (params) => JSON.stringify(params).length;',
  );
  const start = async (argumentLimits: object) => {
    const host = new FunctionHost({
      dir,
      port: 0,
      token,
      apiUrl: url,
      log: () => undefined,
      argumentLimits,
    });
    hosts.push(host);
    return `http://127.0.0.1:${await host.start()}`;
  };
  url = await start(limits);
  hastyUrl = await start({ ...limits, bodyMs: 100 });
});
afterAll(async () => {
  for (const host of hosts) await host.close();
  await rm(dir, { recursive: true });
});

function open(headers: string[], { to = url, by = token } = {}): RawRequest {
  const head = [
    'POST /1.1/functions/length HTTP/1.1',
    'Host: x',
    `X-Carillon-Functions-Token: ${by}`,
  ];
  return new RawRequest(to, [...head, ...headers]);
}
const chunked = 'Transfer-Encoding: chunked';

async function answerOf(request: RawRequest) {
  const { status, body, headers } = await request.answer();
  request.end();
  return { status, code: body.code, headers };
}

test('checks the token before the body, which must not be compressed or too long', async () => {
  const foreign = open([`Content-Length: ${50 * kb}`], { by: 'x' });
  expect(await answerOf(foreign)).toMatchObject({ status: 401, code: 401 });
  const packed = open(['Content-Encoding: gzip', chunked]).chunk(gzipSync('{}'));
  expect(await answerOf(packed)).toMatchObject({ status: 415, code: 415 });
  expect(await answerOf(open([`Content-Length: ${100 * kb}`]))).toMatchObject({
    status: 413,
    code: 413,
  });
  const growing = open([chunked]);
  for (let i = 0; i < 10; i += 1) growing.chunk(`"${'x'.repeat(10 * kb - 2)}"`);
  expect(await answerOf(growing)).toMatchObject({ status: 413, code: 413 });
});

test.each([
  ['no JSON', 'hello'],
  ['lists without an end', '['.repeat(90 * kb)],
  ['a list 101 deep', '['.repeat(101) + ']'.repeat(101)],
])('%s is 107', async (_, body) => {
  const request = open([`Content-Length: ${body.length}`]);
  request.socket.write(body);
  expect(await answerOf(request)).toMatchObject({ status: 400, code: 107 });
});

test('returns 408 if arguments do not arrive, and closes the connection', async () => {
  const request = open(['Content-Length: 100'], { to: hastyUrl });
  request.socket.write('{');
  expect(await request.reply).toMatch(/^HTTP\/1\.1 408 [\s\S]*connection: close[\s\S]*"code":408/i);
});

test('limits the arguments of all calls together: 503 until a call ends', async () => {
  const text = JSON.stringify('x'.repeat(90 * kb));
  const call = () =>
    fetch(`${url}/1.1/functions/length`, {
      method: 'POST',
      headers: { 'X-Carillon-Functions-Token': token },
      body: text,
    });
  const openCall = open([`Content-Length: ${text.length}`]);
  openCall.socket.write(text.slice(0, -1));
  await expect.poll(async () => (await call()).status).toBe(503);
  const refused = await call();
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toEqual({ code: 503, error: expect.any(String) });
  openCall.socket.write('"');
  expect((await answerOf(openCall)).status).toBe(200);
  expect((await call()).status).toBe(200);
});
