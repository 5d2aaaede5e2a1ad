/** Bodies of a push whose texts differ between recipients (protocol/push.md#variables). */
import { randomBytes } from 'node:crypto';
import type { Values } from '../../shared/domain/pushes/variables.ts';
import type { PersonalTexts, Recipient, Rendering, SendRequest } from '../contract/connector.ts';
import { failed, reportAll } from '../kit/response-rules.ts';
import { type ApnsText, renderApnsText, tooLarge } from './payload.ts';

/** Recipients whose requests have the same headers, with the body of each by `index`. */
export interface BodyGroup {
  shared: ApnsText;
  recipients: Recipient[];
  bodies: Map<number, string>;
}

/** Body split into parts between its variables. */
interface BodyTemplate {
  shared: ApnsText;
  /** Texts before the first variable and after each variable. */
  parts: string[];
  /** Names of the variables between the parts. */
  names: string[];
  /** Size of the body without the values. */
  bytes: number;
}

/**
 * Renders each text once and groups the recipients by headers. The headers may differ, because an
 * empty value may leave nothing to show, which changes the push type. Reports recipients whose text
 * APNs would refuse.
 */
export function renderTexts(
  { message, report }: Pick<SendRequest, 'message' | 'report'>,
  texts: PersonalTexts,
): BodyGroup[] {
  const groups = new Map<string, BodyGroup>();
  const template = bodyTemplateOf(message, texts);
  for (const { recipients, values } of texts.groups) {
    const isFull = template && ![...values.values()].includes('');
    const rendering = isFull
      ? fill(template, values)
      : renderApnsText({ ...message, data: texts.dataOf(values) });
    if (!rendering.ok) {
      reportAll({ recipients, report }, failed(0, rendering.error));
      continue;
    }
    const group = groupOf(groups, rendering.payload);
    for (const recipient of recipients) {
      group.recipients.push(recipient);
      group.bodies.set(recipient.index, bodyFor(recipient, rendering.payload));
    }
  }
  return [...groups.values()];
}

function groupOf(groups: Map<string, BodyGroup>, shared: ApnsText): BodyGroup {
  const { collapseId, expiration, isRepeatHidden, priority, pushType } = shared;
  const key = [pushType, priority, expiration, isRepeatHidden, collapseId].join(' ');
  const group = groups.get(key) ?? { shared, recipients: [], bodies: new Map() };
  groups.set(key, group);
  return group;
}

/** Returns the body with the badge of its recipient. A device without a stored badge shows 1. */
const bodyFor = ({ badge }: Recipient, { text, badgeAt }: ApnsText): string =>
  badgeAt === undefined ? text : `${text.slice(0, badgeAt)}${badge ?? 1}${text.slice(badgeAt)}`;

/**
 * Renders the push with a placeholder for each variable, and splits the body at the placeholders.
 * Rendering depends only on the size of values and on whether they are empty. So the parts are
 * valid for all texts without an empty value. Returns undefined if APNs would refuse the push with
 * placeholders, which may be longer than the values.
 */
function bodyTemplateOf(
  message: SendRequest['message'],
  texts: PersonalTexts,
): BodyTemplate | undefined {
  // Random, so that no text of a push contains it. JSON does not escape its characters.
  const placeholder = randomBytes(9).toString('base64url');
  const placeholders = new Map(texts.names.map((name, i) => [name, `${placeholder}${i}.`]));
  const rendering = renderApnsText({ ...message, data: texts.dataOf(placeholders) });
  if (!rendering.ok) return undefined;
  const [first = '', ...others] = rendering.payload.text.split(placeholder);
  const names: string[] = [];
  const parts = [first];
  for (const other of others) {
    const end = other.indexOf('.');
    names.push(texts.names[Number(other.slice(0, end))] ?? '');
    parts.push(other.slice(end + 1));
  }
  const { bytes, text } = rendering.payload;
  const markBytes = Buffer.byteLength(text) - Buffer.byteLength(parts.join(''));
  return { shared: rendering.payload, parts, names, bytes: bytes - markBytes };
}

/** Returns the body with the values inserted. Each value is escaped as JSON. */
function fill({ shared, parts, names, bytes }: BodyTemplate, values: Values): Rendering<ApnsText> {
  let text = parts[0] ?? '';
  let filledBytes = bytes;
  for (const [i, name] of names.entries()) {
    const value = JSON.stringify(values.get(name) ?? '').slice(1, -1);
    filledBytes += Buffer.byteLength(value);
    text += value + parts[i + 1];
  }
  if (filledBytes > shared.maxBytes)
    return { ok: false, error: tooLarge(filledBytes, shared.maxBytes) };
  return { ok: true, payload: { ...shared, text, bytes: filledBytes } };
}
