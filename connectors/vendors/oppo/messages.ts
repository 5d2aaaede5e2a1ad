/**
 * Requests of messages to one device, and of batches of messages (protocol/oppo.md#single-device,
 * protocol/oppo.md#batch).
 */
import { formPost, type HttpRequest } from '../../../shared/http/client.ts';
import type { OppoPayload } from './payload.ts';

/** Message encoded for a form around its device, the only part in which the messages of a request differ. */
export interface EncodedMessage {
  /** Until the quote before the device. */
  head: string;
  /** From the quote after the device on. */
  tail: string;
  /** Approximate length of one message with its device. */
  chars: number;
}

const quote = encodeURIComponent('"');
const comma = encodeURIComponent(',');

/** Encodes the message of a push. */
export function encodeMessage({ envelope, notification }: OppoPayload): EncodedMessage {
  const rest = JSON.stringify({ ...envelope, notification }).slice(1);
  const head = encodeURIComponent('{"target_type":2,"target_value":"');
  const tail = encodeURIComponent(`",${rest}`);
  return { head, tail, chars: head.length + tail.length + 100 };
}

/** Builds the request of one message to one device, or of a batch of messages. */
export function messagesTo(
  deviceTokens: readonly string[],
  message: EncodedMessage,
  options: { root: string; token: string },
): HttpRequest {
  const { root, token } = options;
  const isOne = deviceTokens.length === 1;
  return {
    ...formPost(`${root}/${isOne ? 'unicast' : 'unicast_batch'}`, {}),
    body: joined(deviceTokens.map(encodeDevice), {
      before: `auth_token=${encodeURIComponent(token)}&${isOne ? 'message=' : 'messages=%5B'}${message.head}`,
      between: `${message.tail}${comma}${message.head}`,
      after: `${message.tail}${isOne ? '' : '%5D'}`,
    }),
  };
}

/** Registration ids that need no escape. */
const plain = /^[\w-]+$/;

const encodeDevice = (deviceToken: string): string =>
  plain.test(deviceToken)
    ? deviceToken
    : encodeURIComponent(JSON.stringify(deviceToken)).slice(quote.length, -quote.length);

/** Joins parts as bytes: a text of a megabyte per request would be copied three times. All are ASCII. */
function joined(parts: readonly string[], texts: { before: string; between: string; after: string }): Buffer {
  const { after, before } = texts;
  const between = Buffer.from(texts.between, 'latin1');
  const length =
    parts.reduce((sum, part) => sum + part.length, 0) +
    before.length +
    between.length * Math.max(0, parts.length - 1) +
    after.length;
  const bytes = Buffer.allocUnsafe(length);
  let at = bytes.write(before, 0, 'latin1');
  for (const [i, part] of parts.entries()) {
    if (i > 0) {
      bytes.set(between, at);
      at += between.length;
    }
    at += bytes.write(part, at, 'latin1');
  }
  bytes.write(after, at, 'latin1');
  return bytes;
}
