import { z } from 'zod';
import { captchaText } from '../../replies/admin/apps.ts';
import { captcha, verifiedCaptcha } from '../../replies/common.ts';
import { wholeNumber } from '../../requests/queries.ts';
import { json, noBody, route, smallBody } from '../../route.ts';

const within = (low: number, high: number) => {
  const rule = `expected a number from ${low} to ${high}`;
  return wholeNumber(z.int(rule).min(low, rule).max(high, rule)).optional();
};

const captchaQuery = z.object({
  width: within(60, 200).describe('Width in pixels. The default is 85.'),
  height: within(30, 100).describe('Height in pixels. The default is 30.'),
  size: within(3, 6).describe(
    'Number of characters. The default is 4. Other numbers need the master key.',
  ),
  ttl: within(10, 180).describe(
    'Seconds for which the captcha is valid. The default is 60. Other times need the master key.',
  ),
});

const text = z.string('expected a text').max(100, 'must be at most 100 characters');
const imageQuery = z.object({
  appId: text.describe('Id of the app.'),
  token: text.describe('`captcha_token` of the captcha.'),
});
const answer = z.looseObject({
  captcha_code: text.describe('Characters that the user read.'),
  captcha_token: text.describe('`captcha_token` of the captcha.'),
});

/** Image captchas (protocol/codes.md#captchas). */
export default [
  route({
    method: 'GET',
    path: '/1.1/requestCaptcha',
    operation: 'requestCaptcha',
    summary: 'Creates an image captcha and returns `captcha_token` and `captcha_url`.',
    auth: 'app',
    writes: true,
    limit: noBody,
    query: captchaQuery,
    reply: captcha,
    refusals: ['masterKeyRequired', 'notForClients', 'tooManyRequests'],
    handle: async (call, { captchas }) => json(await captchas.request(call, call.query)),
  }),
  // An HTML page loads the image, so the token in the URL replaces the headers.
  route({
    method: 'GET',
    path: '/1.1/captchaImage',
    operation: 'getCaptchaImage',
    summary: 'Returns the image of a captcha as PNG.',
    auth: 'none',
    limit: noBody,
    query: imageQuery,
    reply: { 200: { contentType: 'image/png' } },
    refusals: ['notFound', 'incorrectType'],
    handle: async ({ query }, { captchas }) => ({
      body: await captchas.image(query.appId, query.token),
      type: 'image/png',
      headers: { 'Cache-Control': 'no-store' },
    }),
  }),
  route({
    method: 'POST',
    path: '/1.1/verifyCaptcha',
    operation: 'verifyCaptcha',
    summary:
      'Checks the characters that a person read and returns `validate_token`, which a request ' +
      'for a code may need.',
    auth: 'app',
    limit: smallBody,
    body: answer,
    reply: verifiedCaptcha,
    refusals: ['notForClients', 'wrongCaptcha'],
    handle: async ({ app, body }, { captchas }) =>
      json(await captchas.verify(app, body.captcha_token, body.captcha_code)),
  }),
  route({
    method: 'GET',
    path: '/console/api/apps/:appId/captchas/:token',
    operation: 'revealCaptcha',
    summary: 'Returns the characters of a captcha, in tests only (`NODE_ENV=test`).',
    auth: 'admin',
    role: 'owner',
    limit: noBody,
    reply: captchaText,
    refusals: ['notFound'],
    handle: async ({ params }, { captchas }) =>
      json(await captchas.reveal(params.appId ?? '', params.token ?? '')),
  }),
];
