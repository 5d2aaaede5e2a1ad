import { type Agent, request } from 'node:http';
import type { Targets } from './generators/credentials.ts';
import type { FuzzRequest } from './generators/requests.ts';

export interface FuzzReply {
  status: number;
  type: string;
  text: string;
}

const timeoutMs = 20_000;

/** Sends a request unchanged. Rejects if there is no complete response in time. */
export function exchange(agent: Agent, port: number, sent: FuzzRequest): Promise<FuzzReply> {
  const { method, path, headers, body } = sent;
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'Content-Length': String(body.length) };
    const call = request(
      { agent, port, host: '127.0.0.1', method, path, headers: { ...headers, ...length } },
      (reply) => {
        const chunks: Buffer[] = [];
        reply.on('data', (chunk: Buffer) => chunks.push(chunk));
        reply.once('error', reject);
        reply.once('end', () =>
          resolve({
            status: reply.statusCode ?? 0,
            type: reply.headers['content-type'] ?? '',
            text: Buffer.concat(chunks).toString(),
          }),
        );
      },
    );
    call.setTimeout(timeoutMs, () => call.destroy(new Error(`no response within ${timeoutMs} ms`)));
    call.once('error', reject);
    call.end(body);
  });
}

/**
 * Valid statuses above 499: the app's own function host is unreachable or does not respond in time.
 */
const hostStatuses = new Set([502, 503, 524]);

/** Texts of source files, stack traces, PostgreSQL and its tables. No generator produces them. */
const internals =
  /node_modules|node:internal|\.ts:\d+|\n\s+at |syntax error at or near|violates|app_user|app_id\b.*=|SQLSTATE|pg_|\bjsonb\b|relation "|column "|\$argon2|invalid input syntax|operator does not exist/;

/** Returns the defect of a reply, or undefined if the reply is valid. */
export function replyDefect(
  sent: FuzzRequest,
  reply: FuzzReply,
  targets: Targets,
): string | undefined {
  const { status, text } = reply;
  // The management server of broadcast channels is unreachable, too.
  const usesHost =
    sent.headers['X-LC-Id'] === targets.hostless.appId || /liveActivities/i.test(sent.path);
  if (status >= 500 && !(usesHost && hostStatuses.has(status))) return `a ${status}`;
  if (status < 200 || (status >= 300 && status < 400 && status !== 304)) return `a ${status}`;
  if (status >= 400) return refusalDefect(sent, reply);
  return secretIn(sent, text, targets);
}

function refusalDefect(sent: FuzzRequest, { text, type }: FuzzReply): string | undefined {
  if (internals.test(text)) return 'a refusal with internal details';
  // HTML routes refuse with pages, and HEAD has no body.
  if (
    sent.method === 'HEAD' ||
    (type.startsWith('text/html') && /verifyEmail|resetPassword|console\/oidc/.test(sent.path))
  )
    return undefined;
  if (!type.startsWith('application/json')) return `a refusal of the type ${type}`;
  const { code, error, ...rest } = JSON.parse(text);
  if (!Number.isInteger(code) || typeof error !== 'string' || error === '')
    return 'a refusal without code or message';
  return Object.keys(rest).length > 0 ? 'a refusal with more than code and error' : undefined;
}

/**
 * Returns a secret in a reply: a password hash or, for a caller without the master key, keys and
 * the victim's session.
 */
function secretIn(sent: FuzzRequest, text: string, { app, secrets }: Targets): string | undefined {
  if (text.includes('$argon2')) return 'a password hash';
  if (
    sent.headers.Authorization !== undefined ||
    JSON.stringify(sent.headers).includes(app.masterKey)
  )
    return undefined;
  if (sent.body?.includes(app.masterKey)) return undefined;
  if ([app.masterKey, app.hookKey].some((key) => text.includes(key))) return 'a key of the app';
  return secrets.some((secret) => text.includes(secret)) ? "another user's session" : undefined;
}
