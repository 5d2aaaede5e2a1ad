import { createHash, createHmac } from 'node:crypto';
import { utcDay } from '../../shared/clock.ts';

/**
 * Request signatures of Aliyun and Tencent Cloud, and the callback signature of Twilio. They are
 * pure, so that tests compare them with the published examples and with the SDKs of the vendors
 * (test/fixtures/sms-signatures.json).
 */

const sha256 = (data: string): string => createHash('sha256').update(data).digest('hex');

/** Headers of a request by their lower-case names. */
type Headers = Readonly<Record<string, string>>;

interface CanonicalRequest {
  method: string;
  path: string;
  /** Query in its canonical form, without `?`. */
  query: string;
  headers: Headers;
  body: string;
}

/** Returns a request in the form that both clouds hash, and the names of the signed headers. */
function canonicalOf({ method, path, query, headers, body }: CanonicalRequest) {
  const names = Object.keys(headers).toSorted();
  const lines = names.map((name) => `${name}:${headers[name]?.trim()}\n`).join('');
  const signed = names.join(';');
  return { signed, text: [method, path, query, lines, signed, sha256(body)].join('\n') };
}

/** Escapes a text as RFC 3986 requires: `encodeURIComponent` leaves five characters unescaped. */
const escaped = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

/** Returns a query with escaped members, sorted by name. */
export const canonicalQuery = (members: Readonly<Record<string, string>>): string =>
  Object.keys(members)
    .toSorted()
    .map((name) => `${escaped(name)}=${escaped(members[name] ?? '')}`)
    .join('&');

/** A call of Aliyun's RPC style, whose parameters are in the query. */
export interface AliyunCall {
  host: string;
  path: string;
  action: string;
  version: string;
  parameters: Readonly<Record<string, string>>;
  epochMs: number;
  /** A text that no other request has. */
  nonce: string;
}

/**
 * Returns query and headers of a signed call (Alibaba Cloud, "Request syntax and signature method
 * V3", ACS3-HMAC-SHA256).
 */
export function signAliyun(
  call: AliyunCall,
  { keyId, secret }: { keyId: string; secret: string },
): { query: string; headers: Record<string, string> } {
  const query = canonicalQuery(call.parameters);
  const headers = {
    host: call.host,
    'x-acs-action': call.action,
    'x-acs-content-sha256': sha256(''),
    'x-acs-date': `${new Date(call.epochMs).toISOString().slice(0, 19)}Z`,
    'x-acs-signature-nonce': call.nonce,
    'x-acs-version': call.version,
  };
  const { signed, text } = canonicalOf({
    method: 'POST',
    path: call.path,
    query,
    headers,
    body: '',
  });
  const signature = createHmac('sha256', secret)
    .update(`ACS3-HMAC-SHA256\n${sha256(text)}`)
    .digest('hex');
  const { host: _, ...sent } = headers;
  const authorization = `ACS3-HMAC-SHA256 Credential=${keyId},SignedHeaders=${signed},Signature=${signature}`;
  return { query, headers: { ...sent, authorization } };
}

/** A call of Tencent Cloud's API 3.0, whose parameters are a JSON body. */
export interface TencentCall {
  host: string;
  path: string;
  /** Name of the service, the first part of its public host: `sms`. */
  service: string;
  action: string;
  version: string;
  region: string;
  body: string;
  epochMs: number;
}

/** Returns the headers of a signed call (Tencent Cloud, "Signature v3", TC3-HMAC-SHA256). */
export function signTencent(
  call: TencentCall,
  { secretId, secretKey }: { secretId: string; secretKey: string },
): Record<string, string> {
  const timestamp = String(Math.floor(call.epochMs / 1000));
  const date = utcDay(call.epochMs);
  const contentType = 'application/json; charset=utf-8';
  const { signed, text } = canonicalOf({
    method: 'POST',
    path: call.path,
    query: '',
    headers: { 'content-type': contentType, host: call.host },
    body: call.body,
  });
  const scope = `${date}/${call.service}/tc3_request`;
  const hmac = (key: string | Buffer, data: string) =>
    createHmac('sha256', key).update(data).digest();
  const key = hmac(hmac(hmac(`TC3${secretKey}`, date), call.service), 'tc3_request');
  const toSign = `TC3-HMAC-SHA256\n${timestamp}\n${scope}\n${sha256(text)}`;
  const signature = hmac(key, toSign).toString('hex');
  return {
    'content-type': contentType,
    authorization: `TC3-HMAC-SHA256 Credential=${secretId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`,
    'x-tc-action': call.action,
    'x-tc-version': call.version,
    'x-tc-region': call.region,
    'x-tc-timestamp': timestamp,
  };
}
