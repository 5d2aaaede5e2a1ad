/**
 * The process of one file: gives up what the file must not have, loads it and runs its default export, once per call.
 * Arguments and results cross as text, so that reading and writing them costs the host nothing.
 */
import { syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isJsonObject } from '../../shared/domain/json.ts';
import { decodeDates, encodeDates } from './encoding.ts';
import type { CallContext, CallMessage, CallOutcome, FromProcess, ToProcess } from './messages.ts';

type Work = (argument: unknown, context: object) => unknown;

const [, , path = '', user = ''] = process.argv;
/** Taken before the file is loaded, which could put something else in its place. */
const send = process.send?.bind(process);
process.title = 'carillon function';
// Without a host there is nobody to work for.
process.on('disconnect', () => process.exit(0));
confine();

/**
 * Leaves root for the user of functions, where root starts it, and takes away what the permission model leaves open:
 * signals to other processes of the same user, one of which would open a debugger in them.
 */
function confine(): void {
  if (user !== '') becomeUser(Number(user));
  for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', '_debugPause'])
    Reflect.deleteProperty(process, name);
  syncBuiltinESMExports();
}

/** Loaded once; a file that cannot be loaded says so to every call. */
const loading: Promise<Work> = (async () => {
  const module: unknown = await import(pathToFileURL(path).href);
  const work =
    typeof module === 'object' && module !== null && 'default' in module ? module.default : undefined;
  if (typeof work !== 'function') throw new Error(`${path} has no default export that is a function`);
  return (argument, context) => work(argument, context);
})();
loading.catch((error: unknown) => console.error('cannot be loaded:', error));

process.on('message', async (message: ToProcess) => {
  if ('ping' in message) tell({ pong: message.ping });
  else tell({ id: message.id, outcome: await answer(message) });
});

function tell(message: FromProcess): void {
  send?.(message, undefined, undefined, () => undefined);
}

/** Stays root in a user namespace that has no such user: that root has the powers of the user who made the namespace. */
function becomeUser(id: number): void {
  try {
    process.setgroups?.([]);
    process.setgid?.(id);
    process.setuid?.(id);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EINVAL')) throw error;
    console.error(`cannot run as user ${id}, which does not exist in this namespace`);
  }
}

async function answer(message: CallMessage): Promise<CallOutcome> {
  try {
    const work = await loading;
    return { text: await run(work, message) };
  } catch (error) {
    return { error: errorOf(error) };
  }
}

async function run(work: Work, { text, kind, isTyped, context }: CallMessage): Promise<string> {
  const sent: unknown = JSON.parse(text);
  const shown = contextOf(context);
  if (kind === 'function') {
    const result = await work(isTyped ? decodeDates(sent) : sent, shown);
    return JSON.stringify({ result: isTyped ? encodeDates(result) : result });
  }
  const { object, user, authData } = isJsonObject(sent) ? sent : {};
  if (kind === 'authData') return JSON.stringify({ result: await work(authData, shown) });
  const { _updatedKeys: updatedKeys, ...document } = isJsonObject(object) ? object : {};
  const result = await work(document, { ...shown, caller: user ?? null, updatedKeys: updatedKeys ?? [] });
  if (kind !== 'before') return '{"result":"ok"}';
  return JSON.stringify(isJsonObject(result) ? result : document);
}

/** What a function may do: ask who calls, and call the service as the app. */
function contextOf({ appKey, masterKey, apiUrl, ...shown }: CallContext) {
  const api = async (method: string, target: string, body?: unknown, { master = false } = {}) => {
    const response = await fetch(`${apiUrl}/1.1${target}`, {
      method,
      headers: {
        'X-LC-Id': shown.appId,
        'X-LC-Key': master ? `${masterKey},master` : appKey,
        ...(shown.sessionToken ? { 'X-LC-Session': shown.sessionToken } : {}),
        'Content-Type': 'application/json',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const reply: unknown = await response.json();
    if (response.ok) return reply;
    const { code, error } = isJsonObject(reply) ? reply : {};
    throw Object.assign(new Error(String(error ?? 'the service refused')), { code, status: response.status });
  };
  return {
    ...shown,
    api,
    /** The user of the session that the call came with; null without one. */
    user: async () => (shown.sessionToken ? api('GET', '/users/me') : null),
  };
}

/**
 * An error with a `code` was meant for the caller and goes there with its words. Any other is a defect: its words stay
 * here.
 */
function errorOf(error: unknown): { code: number; status: number; message: string } {
  if (error instanceof Error && 'code' in error && Number.isInteger(error.code)) {
    const status = 'status' in error ? Number(error.status) : 400;
    return {
      code: Number(error.code),
      status: status >= 400 && status <= 599 ? status : 400,
      message: error.message,
    };
  }
  console.error(error);
  return { code: 1, status: 500, message: 'The cloud function failed.' };
}
