import { readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { openApiDocument } from '../../../api/openapi/document.ts';
import type { Examples } from '../../../api/openapi/operation.ts';
import { descriptionOf } from '../../../api/requests/checked.ts';
import type { Route } from '../../../api/route.ts';
import { loadRoutes } from '../../../api/route-loader.ts';
import { testConfig } from '../../support/api.ts';
import {
  answerWith,
  startFunctionHost,
  type TestFunctionHost,
} from '../../support/servers/function-host.ts';
import { useTestService } from '../../support/service.ts';
import * as accounts from './examples/accounts.ts';
import * as apps from './examples/apps.ts';
import { recordLiveActivities } from './examples/live-activities.ts';
import * as pushes from './examples/pushes.ts';
import { ExampleRecorder } from './examples/recorder.ts';
import { stableExamples } from './examples/stable-values.ts';
import { recordWebhooks } from './examples/webhooks.ts';

/**
 * Calls every operation and compares the recorded calls with the examples of the description,
 * `docs/examples.json`. With `UPDATE_EXAMPLES=1` it writes the file.
 */
const file = fileURLToPath(new URL('../../../docs/examples.json', import.meta.url));

/** Operations without an example, and the reason. */
const withoutExample: Record<string, string> = {
  getCaptchaImage: 'an image',
  verifyEmail: 'an HTML page',
  showPasswordForm: 'an HTML page',
  submitPasswordForm: 'an HTML page',
  streamEvents: 'an event stream',
  getMetrics: 'the text format of Prometheus',
  getOpenApiDocument: 'the description itself',
  getUnknownClass: 'always refused',
  postUnknownClass: 'always refused',
  putUnknownClass: 'always refused',
  deleteUnknownClass: 'always refused',
  startOidcLogin: 'leads to the page of a provider',
  completeOidcLogin: 'leads to the console, or an HTML page',
  takeTwilioReceipt: 'needs an account of Twilio in SMS_URL',
};

const content = z.record(z.string(), z.looseObject({ example: z.json().optional() }));
const document = z.looseObject({
  paths: z.record(
    z.string(),
    z.record(
      z.string(),
      z.looseObject({
        operationId: z.string(),
        requestBody: z.looseObject({ content }).optional(),
        responses: z.record(z.string(), z.looseObject({ content: content.optional() })),
      }),
    ),
  ),
});
const hasExample = (types: z.infer<typeof content> = {}): boolean =>
  Object.values(types).some(({ example }) => example !== undefined);

const service = useTestService();
const routes = await loadRoutes();
const startedAtMs = Date.now();
let calls: ExampleRecorder;
let recorded: Examples;

async function newRecorder({ url }: TestFunctionHost): Promise<ExampleRecorder> {
  const options = {
    functionsUrl: url,
    smsBalance: 1000,
    emailVerification: true,
    allowUserQuery: true,
    allowInstallationQuery: true,
    allowInstallationDelete: true,
    allowRoleCreate: true,
    reportOpens: true,
  };
  const app = await service.api.services.apps.create({ name: 'News', plan: 'commercial', options });
  await service.addApnsProfile(app);
  for (const [i, deviceToken] of pushes.tokens.entries()) {
    const body = { deviceType: 'ios', deviceToken, channels: i === 0 ? ['news', 'vip'] : ['news'] };
    await service.api.request('POST', '/1.1/installations', { app, body });
  }
  return new ExampleRecorder(service.api, routes, app);
}

/** Records the examples. Pushes after the first step wait, because no dispatcher runs then. */
async function record(authEndpoint: string): Promise<void> {
  const dispatcher = await service.dispatch();
  await pushes.recordSentPushes(calls, service);
  await apps.recordProcesses(calls);
  await dispatcher.stack.close();
  await pushes.recordRepeatedPushes(calls);
  await pushes.recordWaitingPushes(calls);
  await pushes.recordScheduledPushes(calls);
  await accounts.recordUsers(calls);
  await accounts.recordUserSupport(calls);
  await accounts.recordCodes(calls);
  await accounts.recordCaptchas(calls, service);
  await accounts.recordInstallations(calls);
  await accounts.recordBatches(calls);
  await recordLiveActivities(calls);
  await apps.recordProfiles(calls, authEndpoint);
  await apps.recordReceipts(calls, service);
  await apps.recordSavedItems(calls);
  await recordWebhooks(calls);
  await apps.recordOperators(calls);
  await apps.recordApps(calls);
  await apps.recordService(calls);
}

/** Starts a host of cloud functions. */
async function startFunctions(): Promise<TestFunctionHost> {
  const host = await startFunctionHost();
  const path = '/1.1/functions';
  host.answers.set(`${path}/_ops/metadatas`, answerWith(200, { result: ['averageStars'] }));
  for (const at of [path, '/1.1/call'])
    host.answers.set(`${at}/averageStars`, answerWith(200, { result: 4.5 }));
  return host;
}

/** Starts a host that issues access tokens for vendor_d. */
async function startTokenHost(): Promise<TestFunctionHost> {
  const host = await startFunctionHost();
  const data = { auth_token: 'a-token', create_time: startedAtMs };
  host.answers.set('/server/v1/auth', answerWith(200, { code: 0, message: 'success', data }));
  return host;
}

beforeAll(async () => {
  const [functions, tokens] = [await startFunctions(), await startTokenHost()];
  calls = await newRecorder(functions);
  await record(tokens.url);
  await Promise.all([functions.close(), tokens.close()]);
  const address = service.api.url.replace('http://', '');
  const texts = {
    [service.api.url]: 'https://push.example.com',
    [`ws://${address}`]: 'wss://push.example.com',
    [address]: 'push.example.com',
    [functions.url]: 'https://functions.example.com',
    [tokens.url]: 'https://oppo.example.com',
    [service.apns.url]: 'https://apns.example.com',
    [service.apns.channels.url]: 'https://apns-manage.example.com',
  };
  recorded = stableExamples(calls.examples, { startedAtMs, texts });
  if (process.env.UPDATE_EXAMPLES === '1') await writeFile(file, textOf(recorded));
}, 120_000);

function textOf(examples: Examples): string {
  const sorted = Object.entries(examples).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`;
}

describe('the examples of the description', () => {
  test('exist for every operation, or there is a reason for having none', () => {
    const known = [...Object.keys(recorded), ...Object.keys(withoutExample)];
    expect(known.toSorted()).toEqual(routes.map(({ operation }) => operation).toSorted());
  });

  test('match what the service accepts and returns', async () => {
    const known = JSON.parse(await readFile(file, 'utf8'));
    expect(withoutNumbers(recorded), 'UPDATE_EXAMPLES=1 writes docs/examples.json').toEqual(
      withoutNumbers(known),
    );
  });

  test.each(routes.filter(({ operation }) => !(operation in withoutExample)))(
    'match the schemas of $operation',
    ({ operation, query, body, replies }: Route) => {
      const example = recorded[operation] ?? expect.fail();
      const { status, reply } = example;
      const declared = replies[status] ?? replies.default;
      const texts = Object.entries(example.query ?? {}).map(([name, value]) => [
        name,
        String(value),
      ]);
      expectValid(query, Object.fromEntries(texts));
      if (body && example.body !== undefined)
        expectValid(descriptionOf(body) ?? body, example.body);
      if (declared && !('contentType' in declared)) expectValid(declared, reply);
    },
  );

  test("are at every operation's body and success in the description", () => {
    const { paths } = document.parse(openApiDocument(routes, recorded));
    const operations = Object.values(paths).flatMap((path) => Object.values(path));
    const examined = operations.filter(
      ({ operationId }) => !(operationId.replace(/Alias\d*$/, '') in withoutExample),
    );
    const lacking = examined.flatMap(({ operationId, requestBody, responses }) => {
      const successes = Object.entries(responses).filter(([status]) =>
        /^(2..|default)$/.test(status),
      );
      const hasReply = successes.some(([, { content }]) => hasExample(content));
      const hasBody = !requestBody || hasExample(requestBody.content);
      return [
        ...(hasReply ? [] : [`${operationId} reply`]),
        ...(hasBody ? [] : [`${operationId} body`]),
      ];
    });
    // The body of a deletion is only for function hosts (`__ignore_hooks`).
    expect(lacking).toEqual(['deleteUser body', 'deleteUserAlias body']);
  });

  test('contain no address or key of a run', () => {
    const text = JSON.stringify(recorded);
    expect(text.match(/127\.0\.0\.1(:\d+)?/g)).toBeNull();
    const { appId, appKey, masterKey, hookKey } = calls.app;
    const { adminToken } = testConfig(service.databaseUrl);
    const keys = [appId, appKey, masterKey, hookKey, adminToken];
    expect(keys.filter((key) => text.includes(key))).toEqual([]);
  });
});

/**
 * Replaces numbers, because counts depend on when a process writes them. So only their type is
 * compared.
 */
const withoutNumbers = (value: object): unknown =>
  JSON.parse(JSON.stringify(value), (_, one) => (typeof one === 'number' ? 0 : one));

function expectValid(schema: z.ZodType | undefined, value: unknown): void {
  expect(schema?.safeParse(value).error?.message).toBeUndefined();
}
