import { z } from 'zod';
import { unstorableText } from '../../../shared/domain/json.ts';
import { jsonObject, jsonValue } from '../../../shared/domain/json-schema.ts';
import { phone, ttlMinutes } from '../../openapi/requests/accounts.ts';
import { empty } from '../../replies/common.ts';
import { ofCode, ofCodeRequest } from '../../replies/refusals.ts';
import { json, route, smallBody } from '../../route.ts';

const text = z
  .string('expected a text')
  .max(1000, 'must be at most 1000 characters')
  .refine((given) => unstorableText(given, '') === undefined, 'must not hold NUL or half of a character')
  .nullish();
const withoutNull = (value: string | null | undefined) => value ?? undefined;

/** Request for a code. The service checks the number; other members fill in a template. */
const smsCodeRequest = z
  .object({
    mobilePhoneNumber: jsonValue.optional(),
    smsType: z.enum(['sms', 'voice'], 'expected sms or voice').nullish(),
    ttl: ttlMinutes.nullish(),
    name: text,
    op: text,
    template: text,
    sign: text,
    validate_token: text,
  })
  // Refuses a number such as 1e999: it becomes Infinity, which is not JSON.
  .catchall(jsonValue);

const numberOnly = z.looseObject({ mobilePhoneNumber: jsonValue.optional() });

/** The general code service (protocol/codes.md#general-code-service). */
export default [
  route({
    method: 'POST',
    path: '/1.1/requestSmsCode',
    operation: 'requestSmsCode',
    summary: 'Sends a code by SMS or voice call to a number; members beyond those below fill in a template.',
    auth: 'app',
    limit: smallBody,
    body: smsCodeRequest,
    // A missing number is 212.
    documentedBody: smsCodeRequest.extend({ mobilePhoneNumber: phone }),
    reply: empty,
    refusals: [...ofCodeRequest],
    handle: async ({ app, isMaster, remoteAddress, body }, { sms }) => {
      const { mobilePhoneNumber, smsType, ttl, name, op, template, sign, validate_token } = body;
      const request = {
        mobilePhoneNumber,
        smsType: smsType ?? undefined,
        ttl: ttl ?? undefined,
        name: withoutNull(name),
        op: withoutNull(op),
        template: withoutNull(template),
        sign: withoutNull(sign),
        validate_token: withoutNull(validate_token),
      };
      await sms.request({ app, isMaster, ipAddress: remoteAddress }, request, jsonObject.parse(body));
      return json({});
    },
  }),
  route({
    method: 'POST',
    path: '/1.1/verifySmsCode/:code',
    operation: 'verifySmsCode',
    summary: 'Checks a code; each code is valid once.',
    auth: 'app',
    limit: smallBody,
    acceptsNullBody: true,
    body: numberOnly,
    documentedBody: numberOnly.extend({ mobilePhoneNumber: phone }),
    reply: empty,
    refusals: [...ofCode, 'notForClients'],
    handle: async ({ app, params, body }, { sms }) => {
      await sms.verify(app, params.code ?? '', body.mobilePhoneNumber);
      return json({});
    },
  }),
];
