import type { App } from '../../../shared/domain/apps/app.ts';
import { refuse } from '../../../shared/domain/errors/errors.ts';
import type { Json, JsonObject } from '../../../shared/domain/json.ts';
import { isDomesticPhone, type Phone } from '../../../shared/domain/messages/phone.ts';
import { containsLink, plainText, type SmsType } from '../../../shared/domain/messages/sms.ts';
import { parseTemplate, type Template } from '../../../shared/template.ts';

/** Maximum length of a message: seven parts of a long SMS. */
const maxTextChars = 500;
const maxValueChars = 100;

/** Variables that Carillon sets in every message (protocol/codes.md#templates). */
export const reservedVariables: ReadonlySet<string> = new Set([
  'name',
  'code',
  'ttl',
  'op',
  'sign',
  'template',
]);

/**
 * Control characters, links (which would allow advertising and phishing), and the delimiters of
 * signatures.
 */
const forbidden = /\p{Cc}|[【】]|:\/\/|www\./iu;

const defaultTexts = {
  zh: '{{#if op}}您正在{{name}}进行{{op}}，{{else}}{{name}}：您的{{/if}}验证码是 {{code}}，{{ttl}} 分钟内有效，请勿告诉他人。',
  en:
    'Your {{name}} code{{#if op}} for {{op}}{{/if}} is {{code}}. It is valid for {{ttl}} ' +
    'minutes. Tell it to nobody.',
};

/** Templates of the default texts, parsed with the first message: many services send none. */
const defaults = new Map<keyof typeof defaultTexts, Template>();

/** Operation that the text names if the caller names none. */
const operations: Record<SmsType, { zh: string; en: string }> = {
  general: { zh: '', en: '' },
  notification: { zh: '', en: '' },
  login: { zh: '登录', en: 'signing in' },
  verifyPhone: { zh: '手机号验证', en: 'verifying your number' },
  changePhone: { zh: '手机号更换', en: 'changing your number' },
  resetPassword: { zh: '密码重置', en: 'resetting your password' },
};

function defaultTemplate(language: keyof typeof defaultTexts): Template {
  const cached = defaults.get(language);
  if (cached) return cached;
  const parsed = parseTemplate(defaultTexts[language], { format: 'text' });
  if (!parsed.ok) throw new Error(parsed.hint);
  defaults.set(language, parsed.template);
  return parsed.template;
}

/** Parameters of a message text. */
export interface TextParameters {
  app: App;
  phone: Phone;
  type: SmsType;
  sign: string;
  ttlMinutes: number;
  name?: string | undefined;
  op?: string | undefined;
  /** Custom template and the caller's values for it. */
  custom?: { name: string; template: Template; values: JsonObject } | undefined;
}

/**
 * Renders the text of a message and returns it with its variables. The text begins with the
 * signature. Throws errors 1, 111 and 606.
 */
export function renderMessage(
  parameters: TextParameters,
  code: string | undefined,
): { text: string; variables: Record<string, string> } {
  const { app, phone, type, sign, ttlMinutes, custom } = parameters;
  const language = isDomesticPhone(phone) ? 'zh' : 'en';
  const values: Record<string, string> = {
    ...(custom ? callerValues(custom.template, custom.values) : {}),
    name:
      parameters.name === undefined
        ? requirePlain('name', app.name)
        : requireNoLink('name', parameters.name),
    op:
      parameters.op === undefined ? operations[type][language] : requireNoLink('op', parameters.op),
    ttl: String(ttlMinutes),
    sign,
    template: custom?.name ?? '',
    ...(code === undefined ? {} : { code }),
  };
  const body = (custom?.template ?? defaultTemplate(language)).render(values);
  if (body === undefined || body.length > maxTextChars) throw refuse('smsTemplateFailed');
  return {
    text: language === 'zh' ? `【${sign}】${body}` : `[${sign}] ${body}`,
    variables: values,
  };
}

/** Returns the caller's values for the variables of the template. */
function callerValues(template: Template, submitted: JsonObject): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name of template.variables) {
    if (reservedVariables.has(name) || !Object.hasOwn(submitted, name)) continue;
    values[name] = requirePlain(name, textOf(name, submitted[name]));
  }
  return values;
}

function textOf(name: string, value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint' || typeof value === 'boolean')
    return String(value);
  throw refuse('incorrectType', `${name}: expected a text or a number`);
}

function requirePlain(name: string, value: string): string {
  if (value.length > maxValueChars)
    throw refuse('invalidParameter', `${name}: must be at most ${maxValueChars} characters`);
  if (forbidden.test(value))
    throw refuse('invalidParameter', `${name}: must not hold links, 【】 or control characters`);
  return value;
}

/**
 * Returns a text as plain text. A caller with an app key can send it to any number, so links are
 * refused. Throws error 1 if the text contains any form of a link.
 */
function requireNoLink(name: string, value: string): string {
  if (containsLink(value))
    throw refuse('invalidParameter', `${name}: must not hold links or addresses`);
  return requirePlain(name, plainText(value));
}

/** Returns whether a text is allowed in a message. */
export const isAllowedInMessages = (text: string): boolean => !forbidden.test(text);
