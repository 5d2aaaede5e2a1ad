import { Resvg } from '@resvg/resvg-js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { App } from '../../../shared/domain/apps/app.ts';
import { startTestApi, type TestApi } from '../../support/api.ts';
import { movableClock } from '../../support/gateways/apns.ts';
import { useTestApi } from '../../support/test-api.ts';

let secondApi: TestApi;
let app: App;
const clock = movableClock(Date.now());

const api = useTestApi({ clock });
beforeAll(async () => {
  secondApi = await startTestApi({ databaseUrl: api.databaseUrl, clock });
  app = await api.createApp({ captchaForSms: true });
});

afterAll(async () => {
  await secondApi.close();
});

const request = (query = '', more: object = {}) =>
  api.request('GET', `/1.1/requestCaptcha${query}`, { app, ...more });
const verify = (captcha_token: unknown, captcha_code: unknown, of = app) =>
  api.request('POST', '/1.1/verifyCaptcha', { app: of, body: { captcha_token, captcha_code } });

async function newCaptcha(query = '', more: object = {}): Promise<{ token: string; url: string }> {
  const { status, body } = await request(query, more);
  expect(status, JSON.stringify(body)).toBe(200);
  return { token: body.captcha_token, url: body.captcha_url };
}

async function answerOf(token: string): Promise<string> {
  const path = `/console/api/apps/${app.appId}/captchas/${token}`;
  return (await api.request('GET', path, { admin: true })).body.code;
}

async function validateToken(): Promise<string> {
  const { token } = await newCaptcha();
  return (await verify(token, await answerOf(token))).body.validate_token;
}

/** Returns the image at a captcha's URL. The URL is built from PUBLIC_URL. */
async function imageOf(url: string) {
  const response = await fetch(url.replace('http://carillon.test', api.url));
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

const sizeOf = (png: Buffer) => ({ width: png.readUInt32BE(16), height: png.readUInt32BE(20) });

describe('GET /1.1/requestCaptcha', () => {
  test('returns 119 unless messages are protected, and so does verifyCaptcha', async () => {
    const open = await api.createApp();
    const reply = await api.request('GET', '/1.1/requestCaptcha', { app: open });
    expect([reply.status, reply.body.code]).toEqual([400, 119]);
    expect((await verify('x', 'y', open)).body.code).toBe(119);
  });

  test.each([
    '?width=59',
    '?width=201',
    '?width=abc',
    '?width=',
    '?width=1e2',
    '?width=85.5',
    '?width=85&width=90',
    '?height=29',
    '?height=101',
    '?size=2',
    '?size=7',
    '?ttl=9',
    '?ttl=181',
  ])('refuses %s with 400, even with the master key', async (query) => {
    const reply = await request(query, { master: true });
    expect([reply.status, reply.body.code]).toEqual([400, 1]);
  });

  test.each(['?size=3', '?size=6', '?ttl=10', '?ttl=180'])(
    'requires the master key for %s',
    async (query) => {
      const reply = await request(query);
      expect([reply.status, reply.body.code]).toEqual([403, 403]);
      expect((await request(query, { master: true })).status).toBe(200);
    },
  );

  test('returns a token and the URL of a PNG of the default size', async () => {
    const { token, url } = await newCaptcha();
    expect(url).toBe(`http://carillon.test/1.1/captchaImage?appId=${app.appId}&token=${token}`);
    const { response, bytes } = await imageOf(url);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('image/png');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(sizeOf(bytes)).toEqual({ width: 85, height: 30 });
    expect(await answerOf(token)).toMatch(/^[A-Z0-9]{4}$/);
  });

  test('accepts the default length and time from any caller', async () => {
    expect((await request('?size=4&ttl=60&width=60&height=100')).status).toBe(200);
  });

  test('draws in the requested size, and always draws the same image for a token', async () => {
    const { token, url } = await newCaptcha('?width=200&height=100&size=6', { master: true });
    const [first, second] = [await imageOf(url), await imageOf(url)];
    expect(sizeOf(first.bytes)).toEqual({ width: 200, height: 100 });
    expect(first.bytes.equals(second.bytes)).toBe(true);
    expect(await answerOf(token)).toHaveLength(6);
  });

  test('draws varying, non-empty images', async () => {
    const pictures = await Promise.all(
      Array.from({ length: 4 }, async () => (await imageOf((await newCaptcha()).url)).bytes),
    );
    expect(new Set(pictures.map((bytes) => bytes.toString('base64'))).size).toBe(4);
    for (const bytes of pictures) expect(foregroundShare(bytes)).toBeGreaterThan(0.08);
  });

  test('returns no image for another app, an invalid token, or after expiry', async () => {
    const { token, url } = await newCaptcha();
    const other = await api.createApp({ captchaForSms: true });
    expect((await imageOf(url.replace(app.appId, other.appId))).response.status).toBe(404);
    expect((await imageOf(url.replace(token, 'made-up'))).response.status).toBe(404);
    expect((await imageOf(`${url}&token=x`)).response.status).toBe(400);
    clock.moveMs(60_000);
    expect((await imageOf(url)).response.status).toBe(404);
  });
});

describe('POST /1.1/verifyCaptcha', () => {
  test.each([
    [undefined, 'x'],
    ['x', undefined],
    [{ $ne: 1 }, 'x'],
    ['x', { $regex: '.*' }],
    [['x'], 'x'],
    ['x', true],
    ['x', null],
  ])('accepts only texts: %j, %j', async (token, code) => {
    expect((await verify(token, code)).body.code).toBe(111);
  });

  test('returns a validate token for the right answer in any case, once', async () => {
    const { token } = await newCaptcha();
    const answer = await answerOf(token);
    const reply = await verify(token, ` ${answer.toLowerCase()} `);
    expect(reply.body).toEqual({ validate_token: expect.stringMatching(/^[\w-]{24}$/) });
    expect((await verify(token, answer)).status).toBe(400);
  });

  test("refuses wrong, expired, invalid and other apps' captchas with the same error", async () => {
    const { token } = await newCaptcha();
    const answer = await answerOf(token);
    const other = await api.createApp({ captchaForSms: true });
    const replies = [
      await verify(token, '????'),
      await verify('x', answer),
      await verify(token, answer, other),
    ];
    clock.moveMs(60_000);
    replies.push(await verify(token, answer));
    for (const { status, body } of replies) {
      expect(status).toBe(400);
      expect(body).toEqual({ code: 1, error: 'The captcha code is wrong or has expired.' });
    }
  });

  test('allows three tries', async () => {
    const { token } = await newCaptcha();
    for (let i = 0; i < 3; i += 1) expect((await verify(token, '????')).status).toBe(400);
    expect((await verify(token, await answerOf(token))).status).toBe(400);
  });

  test('succeeds at most once among 50 concurrent calls', async () => {
    const { token } = await newCaptcha();
    const body = { captcha_token: token, captcha_code: await answerOf(token) };
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? api : secondApi).request('POST', '/1.1/verifyCaptcha', { app, body }),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});

describe('a message that is protected by a captcha', () => {
  let next = 0;
  const numberOf = (n: number) => `+86139${String(n * 10_007).padStart(8, '0')}`;
  const send = (validate_token: unknown, mobilePhoneNumber = numberOf(next++)) =>
    api.request('POST', '/1.1/requestSmsCode', {
      app,
      body: { mobilePhoneNumber, validate_token },
    });

  test.each([undefined, null, '', 'made-up'])(
    'is refused with 608 for the validate token %j',
    async (token) => {
      expect((await send(token)).body.code).toBe(608);
    },
  );

  test('is not sent for a captcha token', async () => {
    const { token } = await newCaptcha();
    expect((await send(token)).body.code).toBe(608);
  });

  test('is sent once for a validate token, within five minutes, in its own app', async () => {
    const token = await validateToken();
    expect((await send(token)).status).toBe(200);
    expect((await send(token)).body.code).toBe(608);
    const late = await validateToken();
    clock.moveMs(5 * 60_000);
    expect((await send(late)).body.code).toBe(608);
    const foreign = await validateToken();
    const other = await api.createApp({ captchaForSms: true });
    const body = { mobilePhoneNumber: numberOf(900), validate_token: foreign };
    expect((await api.request('POST', '/1.1/requestSmsCode', { app: other, body })).body.code).toBe(
      608,
    );
  });

  test('is sent once for one token among 50 concurrent calls with different numbers', async () => {
    const validate_token = await validateToken();
    const replies = await Promise.all(
      Array.from({ length: 50 }, (_, i) =>
        (i % 2 ? api : secondApi).request('POST', '/1.1/requestSmsCode', {
          app,
          body: { mobilePhoneNumber: numberOf(100 + i), validate_token },
        }),
      ),
    );
    expect(replies.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(replies.filter(({ body }) => body.code === 608)).toHaveLength(49);
  });

  test('refused for its number does not use up the token', async () => {
    const number = numberOf(990);
    expect((await send(await validateToken(), number)).status).toBe(200);
    const token = await validateToken();
    expect((await send(token, number)).body.code).toBe(1);
    expect((await send(token)).status).toBe(200);
  });
});

describe('GET /console/api/apps/:appId/captchas/:token', () => {
  test('is only for tests and operators', async () => {
    const { token } = await newCaptcha();
    const path = `/console/api/apps/${app.appId}/captchas/${token}`;
    expect((await api.request('GET', path, { app, master: true })).status).toBe(401);
    const production = await startTestApi({
      databaseUrl: api.databaseUrl,
      env: { NODE_ENV: 'production' },
    });
    try {
      expect((await production.request('GET', path, { admin: true })).status).toBe(404);
    } finally {
      await production.close();
    }
    expect((await api.request('GET', path.replace(token, 'x'), { admin: true })).status).toBe(404);
  });
});

/** Returns the share of pixels that differ from the background. */
function foregroundShare(png: Buffer): number {
  const { width, height } = sizeOf(png);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><image width="${width}" height="${height}" href="data:image/png;base64,${png.toString('base64')}"/></svg>`;
  const { pixels } = new Resvg(svg).render();
  let dark = 0;
  for (let i = 0; i < pixels.length; i += 4) if ((pixels[i + 1] ?? 255) < 160) dark += 1;
  return dark / (width * height);
}
