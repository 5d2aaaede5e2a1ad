/**
 * Process of one function file. It drops its privileges, loads the file and runs its default export
 * once per call. Arguments and results are sent as JSON text, so the host does not parse them.
 */
import { syncBuiltinESMExports } from 'node:module';
import { pathToFileURL } from 'node:url';
import { isJsonObject, parseExactly } from '../../shared/domain/json.ts';
import { decodeDates, encodeDates } from './encoding.ts';
import type { CallContext, CallMessage, CallOutcome, FromProcess, ToProcess } from './messages.ts';

type FunctionHandler = (argument: unknown, context: object) => unknown;

const [, , path = '', user = ''] = process.argv;
/** Bound before the file is loaded, because the file could replace `process.send`. */
const send = process.send?.bind(process);
process.title = 'carillon function';
// Exits with the host, even if the host exited while this file was loading. `whenSupervisorExits`
// cannot be used, because this process can read only a few source files.
process.on('disconnect', () => process.exit(0));
if (!process.connected) process.exit(0);
confine();

/**
 * Changes the user from root to the functions' user. Removes the functions that send signals to
 * other processes of the same user, because the permission model does not restrict them. Such a
 * signal can also open a debugger in the other process.
 */
function confine(): void {
  if (user !== '') becomeUser(Number(user));
  for (const name of ['kill', '_kill', '_debugProcess', '_debugEnd', '_debugPause'])
    Reflect.deleteProperty(process, name);
  syncBuiltinESMExports();
}

/** Loads the file once. If this fails, every call fails with the same error. */
const loading: Promise<FunctionHandler> = (async () => {
  const module: unknown = await import(pathToFileURL(path).href);
  const handler =
    typeof module === 'object' && module !== null && 'default' in module
      ? module.default
      : undefined;
  if (typeof handler !== 'function')
    throw new Error(`${path} has no default export that is a function`);
  return (argument, context) => handler(argument, context);
})();
loading.catch((error: unknown) => console.error('cannot be loaded:', error));

process.on('message', async (message: ToProcess) => {
  if ('ping' in message) post({ pong: message.ping });
  else post({ id: message.id, outcome: await answer(message) });
});

function post(message: FromProcess): void {
  send?.(message, undefined, undefined, () => undefined);
}

/**
 * Changes the user. Remains root in a user namespace that does not have this user. Such a root has
 * only the privileges of the user who created the namespace.
 */
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
    const handler = await loading;
    return { text: await run(handler, message) };
  } catch (error) {
    return { error: errorOf(error) };
  }
}

async function run(
  handler: FunctionHandler,
  { text, kind, isTyped, context }: CallMessage,
): Promise<string> {
  const sent = parseExactly(text);
  const visibleContext = contextOf(context);
  if (kind === 'function') {
    const result = await handler(isTyped ? decodeDates(sent) : sent, visibleContext);
    return JSON.stringify({ result: isTyped ? encodeDates(result) : result });
  }
  const { object, user, authData } = isJsonObject(sent) ? sent : {};
  if (kind === 'authData')
    return JSON.stringify({ result: await handler(authData, visibleContext) });
  const {
    _updatedKeys: updatedKeys,
    // Signatures for hosts without a hook key.
    __before: _b,
    __after: _a,
    __sign: _s,
    ...document
  } = isJsonObject(object) ? object : {};
  const result = await handler(document, {
    ...visibleContext,
    caller: user ?? null,
    updatedKeys: updatedKeys ?? [],
  });
  if (kind !== 'before') return '{"result":"ok"}';
  return JSON.stringify(isJsonObject(result) ? result : document);
}

/**
 * Creates the context of a function: information about the caller, and methods that call the
 * service as the app.
 */
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
    const reply = parseExactly(await response.text());
    if (response.ok) return reply;
    const { code, error } = isJsonObject(reply) ? reply : {};
    throw Object.assign(new Error(String(error ?? 'the service refused')), {
      code,
      status: response.status,
    });
  };
  return {
    ...shown,
    api,
    /** Returns the user of the call's session, or null without a session. */
    user: async () => (shown.sessionToken ? api('GET', '/users/me') : null),
  };
}

/**
 * Converts an error of a function. If the error has a `code`, its message goes to the caller. Any
 * other error is a defect, and its message goes only to the log.
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
