/** Events as messages for a group chat: Feishu, DingTalk, WeCom and Slack. */
import { createHmac } from 'node:crypto';
import type { JsonObject } from '../json.ts';
import { isCode, type Language, textIn } from '../texts/catalogue.ts';
import type { EndpointSecrets, WebhookFormat } from './endpoint.ts';

export type ChatFormat = Exclude<WebhookFormat, 'standard'>;

/** Returns the language of an endpoint's messages, if it sets none. */
export const languageOf = (format: WebhookFormat, set: Language | null): Language =>
  set ?? (format === 'slack' ? 'en' : 'zh');

/** An event to show. */
interface ShownEvent {
  type: string;
  /** Null for an event of the service. */
  app: string | null;
  data: JsonObject;
}

/** Maximum characters of a message. DingTalk, the strictest, takes 20,000 bytes. */
const maxCharacters = 2000;

/** Writes an event as a short text. */
export function chatText({ type, app, data }: ShownEvent, language: Language): string {
  if (!isCode('webhookMessages', type)) return type;
  const outcomes = data.outcomes;
  const sent =
    typeof outcomes === 'object' && outcomes !== null && 'sent' in outcomes ? outcomes.sent : 0;
  const values: JsonObject = { ...data, app, sent: sent ?? 0 };
  const text = textIn(language, 'webhookMessages', type, (name) => {
    const value = values[name] ?? null;
    return value === null ? null : String(value);
  });
  return text.slice(0, maxCharacters).toWellFormed();
}

/**
 * Escapes what the text of a chat can contain as markup. A reason that somebody typed must not call
 * all members of a group (`<!channel>` of Slack, `<at user_id="all">` of Feishu) or hide a link.
 * Slack takes entities. Feishu has no escapes, so a full-width sign replaces the `<` of a tag.
 */
function escaped(format: ChatFormat, text: string): string {
  if (format === 'slack')
    return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return format === 'feishu' ? text.replace(/<(?=\s*\/?\s*at\b)/gi, '＜') : text;
}

/** Body and additional query of a chat message. */
interface ChatMessage {
  body: JsonObject;
  query: Record<string, string>;
}

/**
 * Returns the request of a chat. Signatures: Feishu signs an empty text with
 * `<seconds>\n<secret>` as key, DingTalk signs `<milliseconds>\n<secret>` with the secret (their
 * pages "custom robot", security settings).
 */
export function chatMessage(
  format: ChatFormat,
  eventText: string,
  { signingSecret: secret, epochMs }: Pick<EndpointSecrets, 'signingSecret'> & { epochMs: number },
): ChatMessage {
  const text = escaped(format, eventText);
  switch (format) {
    case 'feishu': {
      const timestamp = String(Math.floor(epochMs / 1000));
      const signed = secret && {
        timestamp,
        sign: createHmac('sha256', `${timestamp}\n${secret}`).digest('base64'),
      };
      return { body: { ...signed, msg_type: 'text', content: { text } }, query: {} };
    }
    case 'dingtalk': {
      const timestamp = String(epochMs);
      const query: Record<string, string> = secret
        ? {
            timestamp,
            sign: createHmac('sha256', secret).update(`${timestamp}\n${secret}`).digest('base64'),
          }
        : {};
      return { body: { msgtype: 'text', text: { content: text } }, query };
    }
    case 'wecom':
      return { body: { msgtype: 'text', text: { content: text } }, query: {} };
    case 'slack':
      return { body: { text }, query: {} };
  }
}

/**
 * Returns the error code in a response of a chat; undefined if the message was taken. The Chinese
 * chats answer 200 with a code in the body.
 */
export function chatError(format: ChatFormat, body: string): string | undefined {
  if (format === 'slack') return undefined;
  let reply: unknown;
  try {
    reply = JSON.parse(body);
  } catch {
    return 'unreadable';
  }
  if (typeof reply !== 'object' || reply === null) return 'unreadable';
  const members = new Map<string, unknown>(Object.entries(reply));
  const names = format === 'feishu' ? ['code', 'StatusCode'] : ['errcode'];
  const code = names.map((name) => members.get(name)).find((value) => value !== undefined);
  if (code === 0) return undefined;
  return typeof code === 'number' ? String(code) : 'unreadable';
}
