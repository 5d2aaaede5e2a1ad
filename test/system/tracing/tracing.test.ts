import { SpanKind } from '@opentelemetry/api';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { useTestService } from '../../support/service.ts';
import { type EndedSpan, registerMemoryTraces, removeMemoryTraces } from './memory-traces.ts';

/** Timeout for a machine under load. */
const waitFor = { timeout: 10_000 };
const caller = 'b7ad6b7169203331';
const ended = registerMemoryTraces();
const service = useTestService();
let app: App;
let tokens: string[];

beforeAll(async () => {
  app = await service.api.createApp();
  await service.addApnsProfile(app);
  tokens = await service.addIosInstallations(app, 2_500);
  await service.dispatch();
});
afterAll(removeMemoryTraces);

/** Sends a push inside a trace. Returns the spans of that trace after the record is done. */
async function pushWithin(traceId: string, count: number, target: object): Promise<EndedSpan[]> {
  const { body } = await service.api.request('POST', '/1.1/push', {
    app,
    master: true,
    headers: { traceparent: `00-${traceId}-${caller}-01` },
    body: { data: { alert: 'a text of the message' }, ...target },
  });
  await service.untilDone(app, body.objectId);
  const spans = () => ended.filter((span) => span.traceId === traceId);
  // The spans in which the record is closed end after it.
  await vi.waitFor(() => {
    const recipients = tokensSent(spans());
    expect(recipients).toBe(count);
    expect(named(spans(), 'plan')).not.toEqual([]);
    expect(orphans(spans())).toEqual([]);
  }, waitFor);
  return spans();
}

/** Returns the number of requests that the gateway spans name. */
const tokensSent = (spans: EndedSpan[]): number =>
  named(spans, 'gateway')
    .flatMap(({ attributes }) => attributes['carillon.answers'])
    .reduce<number>((sum, answer) => sum + Number.parseInt(String(answer), 10), 0);

/** Returns spans whose parent has not ended. The caller's span is not a span of Carillon. */
const orphans = (spans: EndedSpan[]): string[] =>
  spans
    .filter(
      ({ parentId }) => parentId !== caller && !spans.some(({ spanId }) => spanId === parentId),
    )
    .map(({ name }) => name);

const named = (spans: EndedSpan[], name: string) => spans.filter((span) => span.name === name);

it('continues the trace of a call to the replies of the gateway, batch by batch', async () => {
  const spans = await pushWithin('0af7651916cd43dd8448eb211c80319c', tokens.length, {
    where: { deviceType: 'ios' },
  });
  const [request] = named(spans, 'POST /1.1/push');
  const [push] = named(spans, 'push');
  expect(request).toMatchObject({
    parentId: caller,
    kind: SpanKind.SERVER,
    attributes: {
      'http.route': '/1.1/push',
      'http.response.status_code': 200,
      'carillon.app': app.appId,
    },
  });
  expect(push?.parentId).toBe(request?.spanId);
  const batches = named(spans, 'batch');
  expect(batches.length).toBeGreaterThan(1);
  for (const { parentId } of [...named(spans, 'plan'), ...batches])
    expect(parentId).toBe(push?.spanId);
  const ids = batches.map(({ spanId }) => spanId);
  for (const { parentId } of named(spans, 'gateway')) expect(ids).toContain(parentId);
});

it('continues it in the job that plans and sends a push to one device', async () => {
  const spans = await pushWithin('1af7651916cd43dd8448eb211c80319d', 1, {
    where: { deviceToken: tokens[0] },
  });
  const [plan] = named(spans, 'plan');
  const [batch] = named(spans, 'batch');
  expect(plan?.parentId).toBe(named(spans, 'push')[0]?.spanId);
  expect(batch?.parentId).toBe(plan?.spanId);
  expect(named(spans, 'gateway')[0]).toMatchObject({
    parentId: batch?.spanId,
    kind: SpanKind.CLIENT,
  });
});

it('writes no text, key or device token into spans', () => {
  const text = JSON.stringify(ended);
  expect(text).toContain(app.appId);
  for (const secret of ['a text of the message', app.masterKey, app.appKey, ...tokens.slice(0, 1)])
    expect(text).not.toContain(secret);
});
