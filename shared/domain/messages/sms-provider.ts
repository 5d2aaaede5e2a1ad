import { z } from 'zod';

/**
 * SMS providers: the forms of `SMS_URL` (operate/mail-and-sms.md#sms-providers), and the providers'
 * templates for an SMS template of an app.
 */

/** A parsed `SMS_URL`. `endpoint` is a base URL without a slash at its end. */
export type SmsProviderUrl =
  | { provider: 'webhook'; url: string }
  | { provider: 'aliyun'; keyId: string; secret: string; region: string; endpoint: string }
  | {
      provider: 'tencent';
      secretId: string;
      secretKey: string;
      region: string;
      sdkAppId: string;
      endpoint: string;
    }
  | {
      provider: 'twilio';
      accountSid: string;
      authToken: string;
      /** A phone number in E.164 form, a sender id, or the `MG…` id of a messaging service. */
      from: string;
      endpoint: string;
    };

/** Result of parsing. `error` never quotes the URL, because it contains a secret. */
export type SmsUrlResult = { ok: true; value: SmsProviderUrl } | { ok: false; error: string };

const forms =
  'expected aliyun://<key id>:<secret>@<region>, tencent://<secret id>:<secret key>@<region>?appId=<sdk app id>, ' +
  'twilio://<account sid>:<auth token>@?from=<number or service>, or an http:// or https:// URL';

/** Regions of Aliyun whose host is not the common one (endpoint list of Dysmsapi 2017-05-25). */
const aliyunHosts: Readonly<Record<string, string>> = {
  'ap-southeast-1': 'dysmsapi.ap-southeast-1.aliyuncs.com',
  'ap-southeast-5': 'dysmsapi.ap-southeast-5.aliyuncs.com',
  'cn-beijing': 'dysmsapi-proxy.cn-beijing.aliyuncs.com',
  'cn-hongkong': 'dysmsapi-xman.cn-hongkong.aliyuncs.com',
  'eu-central-1': 'dysmsapi.eu-central-1.aliyuncs.com',
  'us-east-1': 'dysmsapi.us-east-1.aliyuncs.com',
};

const parameters: Readonly<Record<'aliyun' | 'tencent' | 'twilio', readonly string[]>> = {
  aliyun: ['endpoint'],
  tencent: ['appId', 'endpoint'],
  twilio: ['from', 'endpoint'],
};

const regionPattern = /^[a-z0-9][a-z0-9-]{0,62}$/;
const senderPattern = /^(?:\+[1-9]\d{4,14}|MG[0-9a-f]{32}|[A-Za-z0-9 ]{1,11}|[0-9]{3,8})$/;

class Invalid extends Error {}

/** Parses `SMS_URL`. */
export function parseSmsUrl(text: string): SmsUrlResult {
  try {
    return { ok: true, value: read(text) };
  } catch (error) {
    if (error instanceof Invalid) return { ok: false, error: error.message };
    throw error;
  }
}

function read(text: string): SmsProviderUrl {
  if (/^https?:/i.test(text)) {
    if (!URL.canParse(text)) throw new Invalid(forms);
    return { provider: 'webhook', url: text };
  }
  const scheme = /^(aliyun|tencent|twilio):\/\//.exec(text)?.[1];
  if (scheme !== 'aliyun' && scheme !== 'tencent' && scheme !== 'twilio') throw new Invalid(forms);
  // A URL with a user must have a host (WHATWG URL, "authority state"). Twilio's form has none.
  const url = URL.parse(text.replace(/^(twilio:\/\/[^/?#]*@)(?=[/?#]|$)/, '$1-'));
  if (url === null) throw new Invalid(forms);
  const { query, endpoint } = parametersOf(scheme, url);
  const user = decoded(url.username);
  const secret = decoded(url.password);
  const region = url.host;
  if (user === '' || secret === '') throw new Invalid(`expected user and secret in ${scheme}://`);
  if (scheme === 'twilio') {
    if (region !== '-')
      throw new Invalid('expected nothing between @ and ? in twilio://; use ?endpoint=');
    if (!/^AC[0-9a-f]{32}$/.test(user))
      throw new Invalid('expected the account sid, AC and 32 hexadecimal digits, in twilio://');
    // Query strings write `+` as a blank.
    const from = (query.get('from') ?? '').replace(/^ (?=\d)/, '+');
    if (!senderPattern.test(from))
      throw new Invalid('expected ?from=<number such as +15550006789, or MG… of a service>');
    const base = endpoint ?? 'https://api.twilio.com';
    return { provider: scheme, accountSid: user, authToken: secret, from, endpoint: base };
  }
  if (!regionPattern.test(region))
    throw new Invalid(
      `expected a region after @ in ${scheme}://, such as ${exampleRegions[scheme]}`,
    );
  if (scheme === 'aliyun') {
    const base = endpoint ?? `https://${aliyunHosts[region] ?? 'dysmsapi.aliyuncs.com'}`;
    return { provider: scheme, keyId: user, secret, region, endpoint: base };
  }
  const sdkAppId = query.get('appId') ?? '';
  if (!/^\d{1,20}$/.test(sdkAppId)) throw new Invalid('expected ?appId=<sdk app id, digits>');
  const base = endpoint ?? 'https://sms.tencentcloudapi.com';
  return { provider: scheme, secretId: user, secretKey: secret, region, sdkAppId, endpoint: base };
}

const exampleRegions = { aliyun: 'cn-hangzhou', tencent: 'ap-guangzhou' } as const;

function parametersOf(scheme: keyof typeof parameters, url: URL) {
  const query = url.searchParams;
  const known = parameters[scheme];
  for (const name of query.keys())
    if (!known.includes(name) || query.getAll(name).length > 1)
      throw new Invalid(`expected only ${known.join(' and ')}, each once, after ? in ${scheme}://`);
  if ((url.pathname !== '' && url.pathname !== '/') || url.hash !== '')
    throw new Invalid(`expected no path and no fragment in ${scheme}://`);
  const given = query.get('endpoint');
  if (given === null) return { query, endpoint: undefined };
  const base = URL.parse(given);
  const isBase =
    base !== null &&
    /^https?:$/.test(base.protocol) &&
    base.username === '' &&
    base.search === '' &&
    base.hash === '';
  if (!isBase) throw new Invalid('expected ?endpoint=<http:// or https:// URL without a query>');
  return { query, endpoint: base.href.replace(/\/+$/, '') };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw new Invalid('expected UTF-8 in the escapes of user and secret (`%25` is `%`)');
  }
}

const variable = z
  .string('expected the name of a variable')
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, 'expected the name of a variable');

const maxParameters = 30;

/**
 * Templates of the providers for a template of an app. `params` says which of our variables the
 * provider's template gets. Without `params`, it gets the variables of the text: Aliyun by their
 * names, Tencent Cloud in the order of the text.
 */
export const providersShape = z.strictObject({
  aliyun: z
    .strictObject({
      code: z
        .string('expected the code of the template')
        .regex(/^SMS_\d{1,20}$/, 'expected the code of the template, such as SMS_153055065')
        .describe('Code of the template in the console of Aliyun.'),
      params: z
        .record(variable, variable)
        .refine((map) => Object.keys(map).length <= maxParameters, `at most ${maxParameters}`)
        .refine(
          (map) => new Set(Object.values(map)).size === Object.keys(map).length,
          'expected each parameter of the provider once',
        )
        .optional()
        .describe('Parameter of the provider by our variable.'),
    })
    .optional()
    .describe('Template of Aliyun.'),
  tencent: z
    .strictObject({
      id: z
        .string('expected the id of the template')
        .regex(/^\d{1,20}$/, 'expected the id of the template, digits')
        .describe('Id of the template in the console of Tencent Cloud.'),
      params: z
        .array(variable, 'expected a list of variables')
        .max(maxParameters, `at most ${maxParameters}`)
        .optional()
        .describe('Our variables, in the order of the parameters of the provider.'),
    })
    .optional()
    .describe('Template of Tencent Cloud.'),
});
export type TemplateProviders = z.infer<typeof providersShape>;

/** Returns our variables that the templates of the providers get. */
export const variablesOf = ({ aliyun, tencent }: TemplateProviders): string[] => [
  ...Object.keys(aliyun?.params ?? {}),
  ...(tencent?.params ?? []),
];

/**
 * Names of the templates of messages that name no template. `_abroad` is for numbers outside of
 * +86, because providers want a template of its own for them. Without such a template, the message
 * has the built-in text.
 */
export const defaultTemplates = { home: '_default', abroad: '_abroad' } as const;

/** Returns the templates of a message that names none, the first that exists counts. */
export const defaultTemplateNames = (isDomestic: boolean): readonly string[] =>
  isDomestic ? [defaultTemplates.home] : [defaultTemplates.abroad, defaultTemplates.home];
