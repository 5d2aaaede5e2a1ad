import { z } from 'zod';
import { unstorableText } from '../../../shared/domain/json.ts';
import { jsonValue } from '../../../shared/domain/json-schema.ts';
import { empty } from '../../replies/common.ts';
import { ofCode, ofCodeRequest } from '../../replies/refusals.ts';
import { numberOnly, phone, ttlMinutes } from '../../requests/accounts.ts';
import { optional, presentMembers } from '../../requests/checked.ts';
import { json, route, smallBody } from '../../route.ts';

const text = optional(
  z
    .string('expected a text')
    .max(1000, 'must be at most 1000 characters')
    .refine(
      (given) => unstorableText(given, '') === undefined,
      'must not hold NUL or half of a character',
    ),
);

/** Body of a request for a code. Other members fill in the template. */
const smsCodeRequest = z
  .object({
    mobilePhoneNumber: phone,
    smsType: optional(z.enum(['sms', 'voice'], 'expected sms or voice')).describe(
      '`voice` calls the number and reads the code. The default is `sms`.',
    ),
    ttl: optional(ttlMinutes).describe(
      'Minutes for which the code is valid: 1 to 30. The default is 10.',
    ),
    name: text.describe('Name of the app in the text. By default the name of the app.'),
    op: text.describe('What the code is for, in the default text.'),
    template: text.describe('Name of an approved template.'),
    sign: text.describe('Name of an approved signature.'),
    validate_token: text.describe('Token of a solved captcha.'),
  })
  // Refuses values that are not JSON, such as 1e999, which becomes Infinity.
  .catchall(jsonValue);

/** The general code service (protocol/codes.md#general-code-service). */
export default [
  route({
    method: 'POST',
    path: '/1.1/requestSmsCode',
    operation: 'requestSmsCode',
    summary:
      'Sends a code by SMS or voice call to a number. Other members of the body fill in a ' +
      'template.',
    auth: 'app',
    limit: smallBody,
    body: smsCodeRequest,
    reply: empty,
    refusals: [...ofCodeRequest],
    handle: async ({ app, isMaster, remoteAddress, body }, { sms }) => {
      await sms.request({ app, isMaster, ipAddress: remoteAddress }, body, presentMembers(body));
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: '/1.1/verifySmsCode/:code',
    operation: 'verifySmsCode',
    summary: 'Checks a code. Each code is valid once.',
    auth: 'app',
    limit: smallBody,
    acceptsNullBody: true,
    body: numberOnly,
    reply: empty,
    refusals: [...ofCode, 'notForClients'],
    handle: async ({ app, params, body }, { sms }) => {
      await sms.verify(app, params.code ?? '', body.mobilePhoneNumber);
      return json({});
    },
  }),
];
