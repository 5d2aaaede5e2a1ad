/** Credentials of a Web Push profile: the sender's address, and its VAPID keys (RFC 8292). */
import { isIP } from 'node:net';
import { z } from 'zod';
import type { CredentialReport } from '../contract/connector.ts';
import { common, inspectTrust, proxyUrl, requiredText } from '../contract/credentials.ts';
import { isKeyPair, type KeyPair, newKeyPair } from './vapid.ts';

/** Replaced key pairs that are kept, because a subscription belongs to one key for ever. */
export const maxPreviousKeys = 8;

const key = (name: string, bytes: number) =>
  requiredText(name).regex(
    bytes === 65 ? /^B[A-Za-z0-9_-]{86}$/ : /^[A-Za-z0-9_-]{43}$/,
    `${name} must be ${bytes} bytes in base64url, without padding`,
  );
const publicKey = key('publicKey', 65);
const privateKey = key('privateKey', 32);
const notAPair = 'publicKey and privateKey must be one key pair of P-256';

/**
 * Address of the sender. Apple refuses an address that nobody can reach, with the reason
 * `BadJwtToken` (protocol/webpush.md#vapid).
 */
const subject = requiredText('subject')
  .max(500, 'subject must have at most 500 characters')
  .refine(isReachable, 'subject must be a mailto: or https: address with a public host name');

function isReachable(text: string): boolean {
  if (/[\s<>]/.test(text)) return false;
  const host = text.startsWith('mailto:')
    ? /^mailto:[^@]+@([^@?]+)$/.exec(text)?.[1]
    : text.startsWith('https://') && URL.canParse(text)
      ? new URL(text).hostname
      : undefined;
  return (
    host !== undefined &&
    isIP(host.replace(/^\[|\]$/g, '')) === 0 &&
    /^[^.]+(\.[^.]+)+$/.test(host) &&
    !/(^|\.)(localhost|local|internal|invalid|test)$/i.test(host)
  );
}

export const webPushCredentials = z
  .strictObject({
    subject,
    publicKey: publicKey.optional(),
    privateKey: privateKey.optional(),
    /** True to replace the key pair by a new one. The replaced pair is kept. */
    rotateKeys: z.boolean('rotateKeys must be true or false').optional(),
    previousKeys: z
      .array(z.strictObject({ publicKey, privateKey }).refine(isKeyPair, notAPair))
      .max(maxPreviousKeys, `previousKeys must be at most ${maxPreviousKeys} key pairs`)
      .optional(),
    proxy: proxyUrl.optional(),
    ...common,
  })
  .superRefine((sent, context) => {
    const refused = (message: string, path: string) =>
      context.addIssue({ code: 'custom', message, path: [path] });
    if (sent.publicKey === undefined && sent.privateKey === undefined) return;
    if (sent.publicKey === undefined || sent.privateKey === undefined)
      refused(
        'publicKey and privateKey must be given together',
        sent.publicKey === undefined ? 'publicKey' : 'privateKey',
      );
    else if (sent.rotateKeys) refused('rotateKeys must not be given with keys', 'rotateKeys');
    else if (!isKeyPair({ publicKey: sent.publicKey, privateKey: sent.privateKey }))
      refused(notAPair, 'privateKey');
  });

export type WebPushCredentials = z.infer<typeof webPushCredentials>;

/** Returns the key pairs of a profile, the current pair first. Empty if it has none. */
export function keyPairsOf({
  publicKey: current,
  privateKey: secret,
  previousKeys = [],
}: WebPushCredentials): KeyPair[] {
  return current === undefined || secret === undefined
    ? [...previousKeys]
    : [{ publicKey: current, privateKey: secret }, ...previousKeys];
}

/**
 * Returns the credentials to store: with the pair that was sent, the stored pair, or a new one.
 * Pairs that the profile had before are kept as previous keys. `stored` is undefined for a new
 * profile.
 */
export function completeWebPush(
  sent: WebPushCredentials,
  stored: WebPushCredentials | undefined,
): WebPushCredentials {
  const { rotateKeys, publicKey: _, privateKey: __, previousKeys: ___, ...others } = sent;
  const earlier = stored === undefined ? [] : keyPairsOf(stored);
  const [given] = keyPairsOf({ ...sent, previousKeys: [] });
  const current = given ?? (rotateKeys ? undefined : earlier[0]) ?? newKeyPair();
  const kept = new Map(
    [...(sent.previousKeys ?? []), ...earlier].map((pair) => [pair.publicKey, pair]),
  );
  kept.delete(current.publicKey);
  const previousKeys = [...kept.values()].slice(0, maxPreviousKeys);
  return { ...others, ...current, ...(previousKeys.length === 0 ? {} : { previousKeys }) };
}

/** Reports on the credentials. Keys have no expiry time, so only `ca` is checked. */
export function inspectWebPush({ ca }: WebPushCredentials, nowMs: number): CredentialReport {
  return { kind: 'VAPID keys', ...inspectTrust(ca, nowMs) };
}
