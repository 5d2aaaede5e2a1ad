import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pushTypes } from '../../../connectors/apns/push-types.ts';
import { hasPrograms, mavenPackages, minutesMs } from '../../../ops/check/toolchains.ts';
import { freePort } from '../../../ops/local/ports.ts';
import { type ApnsCredentials, createApnsCredentials } from '../../../ops/sandbox/apns/server.ts';
import type { App } from '../../../shared/domain/apps/app.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { rightContents } from '../../support/gateways/apns-contents.ts';
import { loopbackIdentity } from '../../support/gateways/identity.ts';
import { useTestService } from '../../support/service.ts';
import { changeDevices } from '../../support/tables.ts';

/** A request as the validator saw it, and the reason if it was refused. */
interface Judged {
  token: string;
  bytes: number;
  headers: Record<string, string>;
  refused: string | null;
}

/** Mock server of pushy, an independent library for APNs, in a separate process. */
class ApnsJudge {
  readonly judged: Judged[] = [];
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(credentials: ApnsCredentials, rules: string[]): Promise<ApnsJudge> {
    const folder = await mkdtemp(join(tmpdir(), 'carillon-judge-'));
    const { server } = await loopbackIdentity();
    const { keyId, teamId, publicKey } = credentials;
    const key = `key ${keyId} ${teamId} key.pem ${allTopics(topic).join(' ')}`;
    await Promise.all([
      writeFile(join(folder, 'server.crt'), server.certificate),
      writeFile(join(folder, 'server.key'), server.privateKey),
      writeFile(join(folder, 'key.pem'), publicKey),
      writeFile(join(folder, 'rules'), [key, ...rules].join('\n')),
    ]);
    const port = await freePort();
    const classPath = await mavenPackages(new URL('./', import.meta.url));
    const program = fileURLToPath(new URL('ApnsJudge.java', import.meta.url));
    const child = spawn('java', ['-cp', classPath, program, folder, String(port)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const judge = new ApnsJudge(`https://127.0.0.1:${port}`, child, folder);
    const lines = createInterface({ input: child.stdout });
    await new Promise<void>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`the judge ended with ${code}`)));
      lines.on('line', (line) => {
        if (line === 'ready') resolve();
        else if (line.startsWith('{')) judge.judged.push(JSON.parse(line));
      });
    });
    return judge;
  }

  /** Waits for the requests of a push. Returns and clears them. */
  async take(count: number): Promise<Judged[]> {
    await expect.poll(() => this.judged.length).toBeGreaterThanOrEqual(count);
    return this.judged.splice(0);
  }

  async close(): Promise<void> {
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await once(this.#child, 'exit');
    await rm(this.#folder, { recursive: true });
  }
}

const topic = 'com.example.app';
const suffixes = [...new Set([...pushTypes.values()].map((type) => type.topicSuffix))];
const allTopics = (bundle: string): string[] => suffixes.map((suffix) => `${bundle}${suffix}`);
const usable = (bundle: string, tokens: string[]): string[] =>
  allTopics(bundle).flatMap((one) => tokens.map((token) => `device ${one} ${token}`));

const prioritiesOf = (type: string): readonly string[] => pushTypes.get(type)?.priorities ?? [];

/**
 * Each valid content with each of its priorities, with the longest collapse id, and with nearly the
 * maximum size of a request.
 */
const contents: { type: string; suffix: string; data: JsonObject; isLarge: boolean }[] =
  rightContents.flatMap(([type, data, { suffix = '' }]) => {
    // Needs a certificate, and this profile has a key.
    if (type === 'mdm') return [];
    const row = { type, suffix, data, isLarge: false };
    const pad = 'x'.repeat(3900 - JSON.stringify(data).length);
    return [
      ...prioritiesOf(type).map((priority) => ({
        ...row,
        data: { ...data, 'apns-priority': priority },
      })),
      { ...row, data: { ...data, 'apns-collapse-id': 'c'.repeat(64) } },
      { ...row, data: { ...data, pad }, isLarge: true },
    ];
  });

describe.skipIf(!hasPrograms(['java', 'mvn'], 'the judge of APNs'))(
  'requests to APNs, validated by pushy',
  () => {
    const service = useTestService();
    const credentials = createApnsCredentials([topic]);
    let judge: ApnsJudge;
    let app: App;
    let good: string[];
    const bad: Record<string, string> = {};

    beforeAll(async () => {
      app = await service.api.createApp();
      good = await service.addIosInstallations(app, 300, { mark: 'good' });
      const add = async (mark: string) =>
        (await service.addIosInstallations(app, 1, { mark }))[0] ?? '';
      for (const reason of ['Unregistered', 'DeviceTokenNotForTopic'])
        bad[reason] = await add(reason);
      // No installation of the API may have this token, because APNs considers it malformed.
      const malformed = await add('BadDeviceToken');
      bad.BadDeviceToken = malformed.slice(1);
      await changeDevices(service.db, app, { deviceToken: bad.BadDeviceToken }, [malformed]);
      judge = await ApnsJudge.start(credentials, [
        ...usable(topic, [...good, bad.Unregistered ?? '']),
        `unregistered ${bad.Unregistered} ${Date.now() + 60_000}`,
      ]);
      await putProfile(credentials);
      await service.dispatch();
    }, minutesMs);
    afterAll(() => judge?.close());

    async function putProfile({ publicKey: _, ...own }: ApnsCredentials): Promise<void> {
      const { authority } = await loopbackIdentity();
      const body = { auth: 'token', ...own, endpoint: judge.url, ca: authority.certificate };
      const path = `/console/api/apps/${app.appId}/profiles/apns/_default`;
      expect(await service.api.request('PUT', path, { admin: true, body })).toMatchObject({
        status: 200,
      });
    }

    /** Sends a push. Returns its record, the resulting requests, and the recipients that failed. */
    async function push(data: JsonObject, where: JsonObject, more: JsonObject = {}) {
      const body = { data, where, prod: 'prod', ...more };
      const sent = await service.api.request('POST', '/1.1/push', { app, master: true, body });
      expect(sent.body).toEqual({ objectId: expect.any(String), createdAt: expect.any(String) });
      const { objectId } = sent.body;
      await service.untilDone(app, objectId);
      const path = `/console/api/apps/${app.appId}/notifications/${objectId}`;
      const progress = (await service.api.request('GET', `${path}/progress`, { admin: true })).body;
      const failures = (
        await service.api.request('GET', `${path}/failures?limit=200`, { admin: true })
      ).body;
      return {
        outcomes: progress.outcomes as Record<string, number>,
        failures: failures.results as { outcome: string; reason: string }[],
      };
    }

    const oneGood = (): JsonObject => ({ deviceToken: good[0] ?? '' });

    test.each(contents)('accepts $type, number %#', async ({ type, suffix, data, isLarge }) => {
      const sent = await push(data, oneGood());
      const [request, ...others] = await judge.take(1);
      expect([request?.refused, others]).toEqual([null, []]);
      expect(sent.outcomes).toEqual({ sent: 1 });
      expect(request?.headers).toMatchObject({
        'apns-topic': `${topic}${suffix}`,
        'apns-push-type': type,
      });
      if (isLarge) expect(request?.bytes).toBeGreaterThan(3700);
    });

    test('accepts a push to many once for each token, each with its own id', async () => {
      const { outcomes } = await push({ alert: 'to many' }, { mark: 'good' });
      const judged = await judge.take(good.length);
      expect(outcomes).toEqual({ sent: good.length });
      expect(judged.map(({ token }) => token).sort()).toEqual([...good].sort());
      expect(judged.filter(({ refused }) => refused !== null)).toEqual([]);
      expect(new Set(judged.map(({ headers }) => headers['apns-id'])).size).toBe(good.length);
    });

    test('accepts an expiry, and the topic of a push', async () => {
      const { outcomes } = await push({ alert: 'a' }, oneGood(), {
        expiration_interval: 60,
        topic,
      });
      expect(outcomes).toEqual({ sent: 1 });
      expect((await judge.take(1))[0]).toMatchObject({
        refused: null,
        headers: { 'apns-topic': topic },
      });
    });

    test('refuses tokens and topics, and the records have its replies', async () => {
      const { outcomes, failures } = await push(
        { alert: 'to all' },
        { mark: { $in: ['good', ...Object.keys(bad)] } },
      );
      const judged = await judge.take(good.length + Object.keys(bad).length);
      const refused = judged.filter((one) => one.refused !== null);
      expect(Object.fromEntries(refused.map((one) => [one.refused, one.token]))).toEqual(bad);
      expect(refused).toHaveLength(Object.keys(bad).length);
      expect(Object.values(outcomes).reduce((sum, n) => sum + n, 0)).toBe(
        good.length + Object.keys(bad).length,
      );
      expect(outcomes.sent).toBe(good.length);
      expect(failures.map(({ reason }) => reason).sort()).toEqual(
        refused.map((one) => one.refused).sort(),
      );
      const left = await service.db.query<{ mark: string }>(
        "SELECT fields->>'mark' AS mark FROM installation WHERE app_id = $1 AND fields->>'mark' <> 'good'",
        [app.appId],
      );
      expect(left.rows.map(({ mark }) => mark).sort()).toEqual(['DeviceTokenNotForTopic']);
    });

    test('refuses the provider token of another key, and the records say so', async () => {
      const other = createApnsCredentials([topic]);
      await putProfile({ ...other, keyId: credentials.keyId, teamId: credentials.teamId });
      const { outcomes, failures } = await push({ alert: 'a' }, oneGood());
      expect((await judge.take(1)).every(({ refused }) => refused === 'InvalidProviderToken')).toBe(
        true,
      );
      expect(outcomes.sent ?? 0).toBe(0);
      expect(failures.map(({ reason }) => reason)).toEqual([
        expect.stringMatching(/^InvalidProviderToken: .*check teamId, keyId, privateKey/),
      ]);
    });
  },
);
