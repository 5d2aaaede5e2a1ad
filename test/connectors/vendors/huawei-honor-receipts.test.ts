import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ReceiptsResult } from '../../../connectors/contract/connector.ts';
import { honor } from '../../../connectors/vendors/honor/index.ts';
import { huawei } from '../../../connectors/vendors/huawei/index.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { startHonorGateway } from '../../../ops/sandbox/vendors/honor/server.ts';
import { startHuaweiGateway } from '../../../ops/sandbox/vendors/huawei/server.ts';

/** Requests received over HTTP, as parsed by the connector. */
const readings: ReceiptsResult[] = [];
const keyed = { appId: '1', appSecret: '2', callbackKey: 'key', callbackUser: 'user' };

const server = createServer(async (request, response) => {
  const headers = Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
  );
  const call = { headers, body: await text(request) };
  const parsed =
    request.url === '/vendor_a' ? huawei.receipts?.(call, [keyed]) : honor.receipts?.(call, []);
  if (parsed) readings.push(parsed);
  response.statusCode = parsed?.ok ? 200 : (parsed?.status ?? 500);
  response.end(parsed?.ok ? JSON.stringify(parsed.reply) : '');
});
let url: string;

beforeAll(async () => {
  const port = await freePort();
  url = `http://127.0.0.1:${port}`;
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
});
afterAll(() => server.close());

const one = { token: 'T', biTag: 'PushRecord000001', requestId: 'm' };

test('Huawei’s gateway sends signed receipts and gets its expected reply', async () => {
  const gateway = await startHuaweiGateway();
  const signing = { key: 'key', user: 'user' };
  const reply = await gateway.sendReceipt(`${url}/vendor_a`, [{ ...one, status: 0 }], signing);
  expect(reply).toEqual({ status: 200, body: '{"code":"0","message":"success"}' });
  const unsigned = await gateway.sendReceipt(`${url}/vendor_a`, [{ ...one, status: 0 }]);
  expect(unsigned.status).toBe(401);
  expect(readings.splice(0)[0]).toMatchObject({
    ok: true,
    receipts: [{ deviceToken: 'T', event: 'delivered' }],
  });
  await gateway.close();
});

test('Honor’s gateway sends receipts and gets its expected reply', async () => {
  const gateway = await startHonorGateway();
  const reply = await gateway.sendReceipt(`${url}/vendor_f`, [{ ...one, status: 40_000_002 }]);
  expect(reply.status).toBe(200);
  expect(readings.splice(0)[0]).toMatchObject({
    ok: true,
    receipts: [{ deviceToken: 'T', event: 'delivered' }],
  });
  await gateway.close();
});
